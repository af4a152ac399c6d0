import { buildCommand } from "@stricli/core";
import { chat } from "./commands/chat.ts";
import { sessionFlags, type SessionFlags, toggle } from "./config/flags.ts";
import { runCommand } from "./io.ts";

/** `resume` and `fork`: the same door to an earlier session, as itself or as a copy. */
export function buildResumeCommand(brief: string, fork: boolean) {
  return buildCommand({
    docs: { brief },
    parameters: {
      flags: { ...sessionFlags, plain: toggle("lines only, no drawing") },
      positional: {
        kind: "tuple",
        parameters: [{ brief: "an id, its beginning, or 'last'", parse: String, placeholder: "ID" }],
      },
    },
    func: (flags: SessionFlags & { readonly plain?: boolean }, id: string) =>
      runCommand(() => chat({ ...flags, resume: id, fork })),
  });
}
