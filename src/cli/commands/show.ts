import { buildCommand } from "@stricli/core";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { recordingPage } from "../../store/recording-page.ts";
import { toMarkdown } from "../chat/transcript.ts";
import { toggle } from "../config/flags.ts";
import { openSession } from "../find-session.ts";
import { print, printJson, runCommand } from "../io.ts";
import { openBrowser } from "../open-browser.ts";

interface ShowFlags {
  readonly json?: boolean;
  readonly web?: boolean;
}

export const command = buildCommand({
  docs: { brief: "show a recorded session" },
  parameters: {
    flags: {
      json: toggle("its records as JSON lines"),
      web: toggle("in the browser, as the service shows it; conversations of the gateway too"),
    },
    positional: {
      kind: "tuple",
      parameters: [{ brief: "an id, its beginning, or 'last'", parse: String, placeholder: "ID" }],
    },
  },
  func: (flags: ShowFlags, id: string) =>
    runCommand(async () => {
      const { summary, journal } = openSession(id);
      if (flags.web) {
        // A folder that nobody else can read, because the page holds everything that was said.
        const path = join(mkdtempSync(join(tmpdir(), "callgate-show-")), `${summary.id}.html`);
        writeFileSync(path, recordingPage(summary.title || summary.id, journal.records), { mode: 0o600 });
        const address = pathToFileURL(path);
        print(address.href);
        if (process.stdout.isTTY) void openBrowser(address);
      } else if (flags.json) for (const record of journal.records) printJson(record, false);
      else process.stdout.write(toMarkdown(summary, journal.records));
    }),
});
