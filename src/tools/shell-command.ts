import { defineTool } from "../index.ts";
import {
  commandAccess,
  describeSandbox,
  elevation,
  escalationProperties,
  runCommand,
  unlistedEscalation,
} from "./command.ts";

/** `shell_command`: one line for the user's shell. */
export const shellCommand = defineTool({
  name: "shell_command",
  description: (situation) => `Runs a shell command line and returns its output. ${describeSandbox(situation)}`,
  input: {
    type: "object",
    properties: {
      command: { type: "string", description: "The command line." },
      workdir: { type: "string", description: "Folder to run in." },
      timeout_ms: { type: "number", minimum: 1, description: "Time limit (10000)." },
      login: { type: "boolean", description: "With the login environment. Default: true." },
      ...escalationProperties,
    },
    required: ["command"],
    additionalProperties: false,
  },
  unlisted: (situation, short) => [...(short ? ["login"] : []), ...unlistedEscalation(situation, short)],
  elevation,
  access: (input, at) => commandAccess({ shell: input.command, cwd: input.workdir }, at.cwd, input),
  mutates: true,
  repeatable: true,
  run: ({ command, workdir, timeout_ms: timeoutMs, login }, ctx) =>
    runCommand({ shell: command, cwd: workdir, timeoutMs, login }, ctx),
});
