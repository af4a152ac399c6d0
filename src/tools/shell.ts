import { defineTool } from "../index.ts";
import {
  commandAccess,
  describeSandbox,
  elevation,
  escalationProperties,
  runCommand,
  unlistedEscalation,
} from "./command.ts";

/** `shell`: a command as an array of words, as gpt-5 was taught it. */
export const shell = defineTool({
  name: "shell",
  aliases: ["container.exec"],
  description: (situation) =>
    `Runs a command, given as its words, and returns its output. For shell syntax use ["bash", "-lc", "…"]. ${describeSandbox(situation)}`,
  input: {
    type: "object",
    properties: {
      command: { type: "array", items: { type: "string" }, description: "The program and its arguments." },
      workdir: { type: "string", description: "Folder to run in." },
      timeout_ms: { type: "number", minimum: 1, description: "Time limit in milliseconds. Default: 10000." },
      ...escalationProperties,
    },
    required: ["command"],
    additionalProperties: false,
  },
  unlisted: unlistedEscalation,
  elevation,
  access: (input, at) => commandAccess({ argv: input.command, cwd: input.workdir }, at.cwd, input),
  mutates: true,
  repeatable: true,
  run: (input, ctx) => runCommand({ argv: input.command, cwd: input.workdir, timeoutMs: input.timeout_ms }, ctx),
});
