import { buildCommand } from "@stricli/core";
import { writeFileSync } from "node:fs";
import { runCommand, say, UsageError } from "../io.ts";
import { openSession } from "../find-session.ts";
import { toMarkdown } from "../chat/transcript.ts";
import { recordingPage } from "../../store/recording-page.ts";

interface ExportFlags {
  readonly format: "markdown" | "html" | "json";
  readonly output?: string;
}

export const command = buildCommand({
  docs: { brief: "write a recorded session as Markdown, as a self-contained HTML page, or as JSON" },
  parameters: {
    flags: {
      format: { kind: "enum", values: ["markdown", "html", "json"], default: "markdown", brief: "the form" },
      output: {
        kind: "parsed",
        parse: String,
        optional: true,
        brief: "write to this file instead of stdout",
        placeholder: "FILE",
      },
    },
    positional: {
      kind: "tuple",
      parameters: [{ brief: "an id, its beginning, or 'last'", parse: String, placeholder: "ID" }],
    },
  },
  func: (flags: ExportFlags, id: string) =>
    runCommand(async () => {
      const { summary, journal } = openSession(id);
      const { path: _path, ...about } = summary;
      const text = {
        markdown: () => toMarkdown(summary, journal.records),
        html: () => recordingPage(summary.title || summary.id, journal.records),
        json: () => `${JSON.stringify({ ...about, records: journal.records }, null, 2)}\n`,
      }[flags.format]();
      if (flags.output === undefined) process.stdout.write(text);
      else {
        writeTo(flags.output, text);
        say(`wrote ${flags.output}`);
      }
    }),
});

function writeTo(file: string, text: string): void {
  try {
    writeFileSync(file, text);
  } catch (error) {
    throw new UsageError(`cannot write ${file}: ${error instanceof Error ? error.message : String(error)}`);
  }
}
