import { defineTool } from "../../../index.ts";
import { commandAccess, describeSandbox, runCommand } from "../../command.ts";

/** `internal_system_execute`: a shell line, in the set of tools that is loaded from folders. */
export default defineTool({
  name: "internal_system_execute",
  group: "system",
  description: (situation) => `Executes a system command. ${describeSandbox({ ...situation, canEscalate: false })}`,
  input: {
    type: "object",
    properties: {
      command: { type: "string", description: "The command line." },
      cwd: { type: "string", description: "Folder to run in." },
      timeout: { type: "number", minimum: 1, description: "Time limit in milliseconds. Default: 30000." },
    },
    required: ["command"],
    additionalProperties: false,
  },
  access: (input, at) => commandAccess({ shell: input.command, cwd: input.cwd }, at.cwd),
  mutates: true,
  repeatable: true,
  run: ({ command, cwd, timeout = 30_000 }, ctx) => runCommand({ shell: command, cwd, timeoutMs: timeout }, ctx),
});
