import { buildCommand } from "@stricli/core";
import { toggle } from "../config/flags.ts";
import { printJson, runCommand } from "../io.ts";
import { openSession } from "../find-session.ts";
import { toMarkdown } from "../chat/transcript.ts";

export const command = buildCommand({
  docs: { brief: "a recorded session, readable" },
  parameters: {
    flags: { json: toggle("its records as JSON lines") },
    positional: {
      kind: "tuple",
      parameters: [{ brief: "an id, its beginning, or 'last'", parse: String, placeholder: "ID" }],
    },
  },
  func: (flags: { readonly json?: boolean }, id: string) =>
    runCommand(async () => {
      const { summary, journal } = openSession(id);
      if (flags.json) for (const record of journal.records) printJson(record, false);
      else process.stdout.write(toMarkdown(summary, journal.records));
    }),
});
