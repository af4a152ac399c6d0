/** `write_stdin`: words for a process that `exec_command` left running, or only a look at it. */
import { CallError, defineTool } from "../index.ts";
import { clamp, defaultMaxTokens, rethrow, viewResult } from "./exec-command.ts";

/** How long a call without input may wait at most. A process in the background may take minutes. */
const longestPollMs = 300_000;

/** `write_stdin`: talk to a process that exec_command left running, or only look at it. */
export const writeStdin = defineTool({
  name: "write_stdin",
  description:
    "Writes characters to a running exec_command session and returns what it printed since. " +
    "Empty chars only waits and looks. Control characters work: \\u0003 is Ctrl-C, \\u0004 end of input.",
  input: {
    type: "object",
    properties: {
      session_id: { type: "number", description: "From exec_command." },
      chars: { type: "string", description: "What to type; end a line with \\n. Default: empty." },
      yield_time_ms: {
        type: "number",
        description: "How long to wait for output. Default: 250 after typing, else 5000.",
      },
      max_output_tokens: { type: "number", minimum: 0, description: "Output beyond this is cut. Default: 10000." },
    },
    required: ["session_id"],
    additionalProperties: false,
  },
  access({ session_id: id, chars = "" }, { terminals }) {
    if (isQuiet(chars)) return {};
    const terminal = terminals.find((one) => one.id === id);
    if (terminal === undefined)
      throw new CallError("invalid_input", `Unknown process id ${id}`, {
        hint: `running: ${terminals.map((one) => one.id).join(", ") || "none"}`,
      });
    const { argv, cwd, grant } = terminal;
    const justification = "it is typed into a process that runs outside the sandbox";
    return {
      commands: [{ shell: chars, cwd, typed: argv }],
      // The process was allowed to leave the sandbox, but that did not cover each line that is typed into it later.
      ...(grant.confined ? {} : { escalation: { justification } }),
    };
  },
  mutates: ({ chars = "" }) => !isQuiet(chars),
  parallel: true,
  async run(input, ctx) {
    const chars = input.chars ?? "";
    const wanted = input.yield_time_ms ?? 250;
    const yieldMs = chars === "" ? clamp(wanted, 5000, longestPollMs) : clamp(wanted, 250, 30_000);
    const view = await ctx.exec.terminals
      .write(input.session_id, { chars, yieldMs })
      .catch((error: unknown) => rethrow(error, "write_stdin failed"));
    return viewResult(view, input.max_output_tokens ?? defaultMaxTokens);
  },
});

/** Ctrl-C, Ctrl-D and Ctrl-\\. */
const quietKeys = new Set(["\u0003", "\u0004", "\u001C"]);

/** True if the call only looks, or only sends the keys that stop a program or end its input. */
function isQuiet(chars: string): boolean {
  return [...chars].every((character) => quietKeys.has(character));
}
