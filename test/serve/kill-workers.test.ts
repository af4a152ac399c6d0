/** Real workers that are killed, frozen and cut off: the script does it, at length by hand, briefly here. */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { ensureBuilt } from "../cli/run.ts";
import { has } from "../needs.ts";

const brief = [
  "--minutes",
  "3",
  "--sessions",
  "40",
  "--calls",
  "4",
  "--kills",
  "4",
  "--freezes",
  "1",
  "--restarts",
  "1",
  "--cuts",
  "1",
];

describe.skipIf(!has("PostgreSQL") || !has("bubblewrap"))("many workers (needs PostgreSQL and bubblewrap)", () => {
  test("no call runs twice, none is lost, no answer is lost, and folders go with their sessions", async () => {
    ensureBuilt();
    const root = fileURLToPath(new URL("../..", import.meta.url));
    const args = process.env["CALLGATE_KILLS"]?.split(" ") ?? brief;
    const script = ["scripts/kill-workers.mjs", ...args];
    const { stdout: said } = await promisify(execFile)(process.execPath, script, { cwd: root });
    expect(JSON.parse(said.split("\n")[0]!)).toMatchObject({ twice: 0, lost: 0, answersLost: 0, foldersWrong: 0 });
  }, 400_000);
});
