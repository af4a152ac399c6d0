import { existsSync } from "node:fs";
import { join } from "node:path";
import { buildCommand, buildRouteMap } from "@stricli/core";
import { stateDir } from "../../base/paths.ts";
import { verifyAudit } from "../../store/audit.ts";
import { toggle } from "../config/flags.ts";
import { exitCodes, print, printJson, runCommand, say, UsageError } from "../io.ts";

/** Where decisions are recorded unless said otherwise. */
export function auditFile(env: NodeJS.ProcessEnv): string {
  return join(stateDir(env), "audit.jsonl");
}

const verify = buildCommand<{ readonly json?: boolean; readonly head?: string }, [string?]>({
  docs: { brief: "check that no recorded decision was changed, taken out or put in" },
  parameters: {
    flags: {
      json: toggle("print JSON"),
      head: {
        kind: "parsed",
        parse: String,
        optional: true,
        placeholder: "HASH",
        brief: "the last hash as it was noted elsewhere: shows a log that was cut short",
      },
    },
    positional: {
      kind: "tuple",
      parameters: [{ parse: String, placeholder: "FILE", brief: "the log; left out: the user's own", optional: true }],
    },
  },
  func: (flags, file) =>
    runCommand(async () => {
      const path = file ?? auditFile(process.env);
      if (!existsSync(path)) throw new UsageError(`there is no audit log at ${path}`);
      const found = verifyAudit(path);
      const cut = found.ok && flags.head !== undefined && flags.head !== found.head;
      const report = cut
        ? { ...found, ok: false, problem: { line: found.entries, what: "the log does not end with the hash you gave" } }
        : found;
      if (flags.json) printJson(report);
      else if (report.ok) print(`${report.entries} entries, unbroken. Last hash: ${report.head}`);
      else
        say(
          `callgate: ${path}, line ${report.problem?.line ?? 0}: ${report.problem?.what ?? ""} (${report.entries} good entries)`,
        );
      return report.ok ? exitCodes.done : exitCodes.failed;
    }),
});

export const command = buildRouteMap({ docs: { brief: "the log of decisions" }, routes: { verify } });
