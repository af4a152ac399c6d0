import { existsSync } from "node:fs";
import { join } from "node:path";
import { buildCommand, buildRouteMap } from "@stricli/core";
import { defined } from "../../base/json.ts";
import { stateDir } from "../../base/paths.ts";
import { verifyAudit } from "../../store/audit.ts";
import { toggle } from "../config/flags.ts";
import { exitCodes, print, printJson, runCommand, say, UsageError } from "../io.ts";

/** Where decisions are recorded unless said otherwise. */
function auditFile(env: NodeJS.ProcessEnv): string {
  return join(stateDir(env), "audit.jsonl");
}

const verify = buildCommand<{ readonly json?: boolean; readonly head?: string }, [string?]>({
  docs: { brief: "check that no recorded decision was changed, removed, inserted or cut off" },
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
      const report = verifyAudit(path, defined({ head: flags.head }));
      const { tornBytes = 0, problem } = report;
      if (flags.json) printJson(report);
      else if (problem === undefined) print(`${report.entries} entries, unbroken. Last hash: ${report.head}`);
      else say(`callgate: ${path}, line ${problem.line}: ${problem.what} (${report.entries} good entries)`);
      if (!flags.json && tornBytes > 0)
        say(
          `callgate: the last line is incomplete (${tornBytes} bytes), the sign of a kill; its call did not run. The next entry cuts it off.`,
        );
      return report.ok ? exitCodes.done : exitCodes.failed;
    }),
});

export const command = buildRouteMap({ docs: { brief: "the log of decisions" }, routes: { verify } });
