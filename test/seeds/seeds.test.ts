/** docs/seeds.md is true: every row's program, command or test is there, and says the line that decides. */
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { beforeAll, expect, test } from "vitest";
import { cli, ensureBuilt } from "../cli/run.ts";
import { has, type Need } from "../needs.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const run = promisify(execFile);

interface Row {
  readonly id: string;
  readonly how: string;
  /** Each of them decides. */
  readonly lines: readonly string[];
}

const rows: readonly Row[] = [
  ...readFileSync(join(root, "docs/seeds.md"), "utf8").matchAll(/^\| ([A-E]\d+) \| (.*) \|$/gm),
].map(([, id = "", rest = ""]) => {
  const cells = rest.split(/(?<!\\) \| /).map((cell) => cell.replaceAll("\\|", "|"));
  return {
    id,
    how: cells.at(-2) ?? "",
    lines: [...(cells.at(-1) ?? "").matchAll(/`([^`]+)`/g)].map(([, line = ""]) => line),
  };
});

const printed = new Map<string, Promise<string>>();

/** What an example prints; each is run once. */
function runExample(name: string): Promise<string> {
  const known = printed.get(name);
  if (known !== undefined) return known;
  const cwd = mkdtempSync(join(tmpdir(), "callgate-seeds-"));
  const started = run(process.execPath, ["scripts/run-example.mjs", join("examples/seeds", name)], {
    cwd: root,
    env: { ...process.env, CALLGATE_HOME: cwd, EXAMPLE_CWD: cwd },
    timeout: 120_000,
  }).then(({ stdout }) => stdout);
  printed.set(name, started);
  return started;
}

/** What a command line says, run by a shell that knows `callgate`. */
async function runLine(line: string): Promise<string> {
  const cwd = mkdtempSync(join(tmpdir(), "callgate-seeds-"));
  const env = { PATH: process.env["PATH"] ?? "", HOME: cwd, CALLGATE_HOME: join(cwd, "home"), CLI: cli };
  const script = line.replace(/^callgate/, `"${process.execPath}" "$CLI"`);
  const { stdout, stderr } = await run("bash", ["-c", `${script} || true`], { cwd, env, timeout: 120_000 });
  return stdout + stderr;
}

beforeAll(ensureBuilt, 300_000);

test("every row of what was asked for is there, once", () => {
  const count = { A: 25, B: 22, C: 13, D: 11, E: 16 };
  const wanted = Object.entries(count).flatMap(([group, last]) =>
    Array.from({ length: last }, (_, index) => `${group}${index + 1}`),
  );
  expect(rows.map(({ id }) => id)).toEqual(wanted);
});

/** What a row needs beyond Node: those in which a sandbox refuses something, and the database of Node 20. */
const needs: Readonly<Record<string, Need>> = {
  ...Object.fromEntries(["A19", "A23", "B5", "B15"].map((id) => [id, "bubblewrap"])),
  ...(process.getBuiltinModule("node:sqlite") === undefined ? { C4: "sqlite3" } : {}),
};
const missing = ({ id }: Row) => needs[id] !== undefined && !has(needs[id]);

/** What running a row gives: what its program prints for it, what its command says, or the file of its test. */
async function evidence({ id, how }: Row): Promise<string> {
  const example = /\]\(\.\.\/examples\/seeds\/([\w-]+\.ts)\)/.exec(how)?.[1];
  const page = /^\[[\w.-]+\]\(([\w-]+\.md)\)$/.exec(how)?.[1];
  const code = /^`(.*)`$/.exec(how)?.[1] ?? "";
  if (example !== undefined) {
    const said = (await runExample(example)).split("\n").filter((one) => one.split(" ").includes(id));
    return said.join("\n");
  }
  if (page !== undefined) return readFileSync(join(root, "docs", page), "utf8");
  // A test of this folder runs with it; here only that it is still there under its name.
  return code.startsWith("test/seeds/") ? readFileSync(join(root, code), "utf8") : runLine(code);
}

for (const row of rows) {
  const title = needs[row.id] === undefined ? row.id : `${row.id} (needs ${needs[row.id]})`;
  test.skipIf(missing(row))(title, { timeout: 150_000 }, async () => {
    const seen = await evidence(row);
    expect(row.lines).not.toEqual([]);
    for (const line of row.lines) expect(seen).toContain(line);
  });
}
