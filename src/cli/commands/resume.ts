import { buildCommand } from "@stricli/core";
import { sessionFlags, type SessionFlags } from "../flags.ts";
import { runCommand } from "../io.ts";
import { chat } from "./chat.ts";

export const command = buildCommand({
  docs: { brief: "go on with a recorded session, interactively ('exec --resume ID PROMPT' does it headless)" },
  parameters: {
    flags: { ...sessionFlags, plain: { kind: "boolean", default: false, brief: "lines only, no drawing" } },
    positional: {
      kind: "tuple",
      parameters: [{ brief: "an id, its beginning, or 'last'", parse: String, placeholder: "ID" }],
    },
  },
  func: (flags: SessionFlags & { readonly plain: boolean }, id: string) =>
    runCommand(() => chat({ ...flags, resume: id, fork: false })),
});
