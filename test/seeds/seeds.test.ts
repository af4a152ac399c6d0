/** docs/seeds.md is true: every row's program, command or test is there, and says the line that decides. */
import { execFile } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { beforeAll, expect, test } from "vitest";
import { cli, ensureBuilt } from "../cli/run.ts";
import { has } from "../needs.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const run = promisify(execFile);

interface Row {
  readonly id: string;
  readonly how: string;
  readonly line: string;
}

const rows: readonly Row[] = [
  ...readFileSync(join(root, "docs/seeds.md"), "utf8").matchAll(/^\| ([A-E]\d+) \| (.*) \|$/gm),
].map(([, id = "", rest = ""]) => {
  const cells = rest.split(/(?<!\\) \| /).map((cell) => cell.replaceAll("\\|", "|"));
  return { id, how: cells.at(-2) ?? "", line: (cells.at(-1) ?? "").replace(/^`|`$/g, "") };
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

const runnable = (row: Row) => !row.how.startsWith("`callgate sandbox") || has("bubblewrap");

test.each(rows.filter(runnable))("$id", { timeout: 150_000 }, async ({ id, how, line }) => {
  const example = /\]\(\.\.\/examples\/seeds\/([\w-]+\.ts)\)/.exec(how)?.[1];
  const page = /^\[[\w.-]+\]\(([\w-]+\.md)\)$/.exec(how)?.[1];
  const code = /^`(.*)`$/.exec(how)?.[1] ?? "";
  if (example !== undefined) {
    const said = (await runExample(example)).split("\n").filter((one) => one.split(" ").includes(id));
    expect(said.join("\n")).toContain(line);
  } else if (page !== undefined) expect(readFileSync(join(root, "docs", page), "utf8")).toContain(line);
  else if (code.startsWith("test/")) {
    expect(existsSync(join(root, code))).toBe(true);
    expect(readFileSync(join(root, code), "utf8")).toContain(line);
  } else expect(await runLine(code)).toContain(line);
});
