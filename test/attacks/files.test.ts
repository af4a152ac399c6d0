/** Every row of kinds path and patch: through the built command, and our own path rows through an engine like its. */
import { mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { beforeAll, describe, expect, test } from "vitest";
import { createEngine } from "../../src/index.ts";
import { parseRules } from "../../src/gate/rules-file.ts";
import { builtins } from "../../src/tools/index.ts";
import { ensureBuilt, lines, run } from "../cli/run.ts";
import { own, prepare, rowsOf, shared, toText, treeOf, type Folders, type Row, type Text } from "./rows.ts";

beforeAll(ensureBuilt);

/** Told in words in the data: played at the end of this file, and in startup.test.ts. */
const inWords = new Set(["path-toctou-swap", "path-undo-symlink"]);
const paths = rowsOf("path").filter(([id, row]) => !inWords.has(id) && row.policy !== "startup");

interface Outcome {
  readonly ok: boolean;
  readonly content: unknown;
}

/** Every tool that would do it. */
function callsOf(op: string, path: string): readonly { readonly tool: string; readonly arguments: object }[] {
  return op === "read"
    ? [
        { tool: "internal_file_read", arguments: { path } },
        { tool: "read_file", arguments: { file_path: path } },
        { tool: "grep_files", arguments: { pattern: ".", path, lines: true } },
        { tool: "list_dir", arguments: { dir_path: path } },
        { tool: "view_image", arguments: { path } },
      ]
    : [
        { tool: "internal_file_write", arguments: { path, content: "attacker" } },
        { tool: "str_replace_editor", arguments: { command: "create", path, file_text: "attacker" } },
        { tool: "apply_patch", arguments: { input: `*** Begin Patch\n*** Add File: ${path}\n+x\n*** End Patch\n` } },
      ];
}

async function byCommand({ ws, env }: Folders, calls: ReturnType<typeof callsOf>): Promise<readonly Outcome[]> {
  const input = calls.map((call, id) => `${JSON.stringify({ id, ...call })}\n`).join("");
  const { stdout } = await run(["call", "--batch", "--profile", "internal"], { cwd: ws, env, input });
  return lines(stdout) as unknown as readonly Outcome[];
}

async function byEngine({ ws, home, state }: Folders, calls: ReturnType<typeof callsOf>): Promise<readonly Outcome[]> {
  const file = join(state, "rules.toml");
  const text = ((): string => {
    try {
      return readFileSync(file, "utf8");
    } catch {
      return "";
    }
  })();
  const engine = createEngine({ workspace: ws, tools: builtins, gate: { home, rules: await parseRules(text, file) } });
  try {
    const ended: Outcome[] = [];
    for (const call of calls) ended.push(await engine.call(call.tool, call.arguments as never));
    return ended;
  } finally {
    await engine.close();
  }
}

async function check(row: Row, play: typeof byCommand): Promise<void> {
  const folders = prepare(row);
  const look = () => ({
    out: treeOf(folders.out),
    git: treeOf(join(folders.ws, ".git")),
    home: treeOf(folders.home),
  });
  const before = look();
  const { op, path } = row.input as { readonly op: string; readonly path: Text };
  const ended = await play(folders, callsOf(op, folders.fill(toText(path))));
  expect(look()).toEqual(before);
  expect(JSON.stringify(ended)).not.toMatch(/THE SECRET|PATH=/);
  const succeeded = ended.filter(({ ok }) => ok);
  if (/^should_(read|write)$/.test(row.expected)) expect(succeeded.length).toBeGreaterThan(0);
  else if (/^must_(be_denied|not_auto_approve|not_read|be_reported)/.test(row.expected)) expect(succeeded).toEqual([]);
}

test.concurrent.each(paths.filter(([, row]) => shared.includes(row)))("path, by the command: %s", (_id, row) =>
  check(row, byCommand),
);

test.each(paths.filter(([, row]) => own.includes(row)))("path: %s", (_id, row) => check(row, byEngine));

describe("patch", () => {
  const played = rowsOf("patch").map(([id, row]) => ({ id, row, folders: prepare(row) }));
  const befores = played.map(({ folders: { ws, out } }) => ({ out: treeOf(out), ws: treeOf(ws) }));
  let answers: readonly { readonly ok: boolean; readonly error?: string }[] = [];

  beforeAll(async () => {
    const input = played.map(({ id, row, folders }) => {
      const patch = folders.fill(toText((row.input as { readonly patch: Text }).patch));
      return `${JSON.stringify({ id, dir: folders.ws, patch })}\n`;
    });
    const { stdout } = await run(["patch", "--batch"], { input: input.join("") });
    answers = lines(stdout) as unknown as typeof answers;
  });

  test.each(played.map(({ id, row, folders }, index) => [id, row, folders, index] as const))(
    "%s",
    (_id, { expected }, { ws, out }, index) => {
      const answer = answers[index]!;
      const before = befores[index]!;
      expect(treeOf(out)).toEqual(before.out);
      const git = (tree: Readonly<Record<string, string>>) =>
        Object.entries(tree).filter(([name]) => /^\.git(\/|$)/i.test(name));
      expect(git(treeOf(ws))).toEqual(git(before.ws));
      if (!answer.ok) {
        expect(answer.error).toMatch(/\S/);
        expect(treeOf(ws)).toEqual(before.ws);
      }
      if (expected === "should_apply") expect(answer).toMatchObject({ ok: true });
      else if (expected === "must_keep_readme") expect(readFileSync(join(ws, "README.md"), "utf8")).toMatch("hello");
      else if (!/_or_|outside/.test(expected)) expect(answer.ok).toBe(false);
    },
  );
});

test("what a rule denies by name is not met by a search or a recursive command either", async () => {
  const setup = [
    "mkdir -p src/deep; echo THE SECRET > src/deep/key.pem; echo THE SECRET > notes.env; echo public > src/b",
  ];
  const folders = prepare({ setup, policy: "deny-read:key.pem" });
  writeFileSync(
    join(folders.state, "rules.toml"),
    '[[rule]]\npath = "key.pem"\ndecision = "deny"\n[[rule]]\npath = "*.env"\ndecision = "deny"\n',
  );
  const ended = await byEngine(folders, [
    { tool: "grep_files", arguments: { pattern: "SECRET|public", path: ".", lines: true } },
    { tool: "shell_command", arguments: { command: "grep -r -e SECRET -e public . ; cat notes.env src/*/key.pem" } },
    { tool: "shell_command", arguments: { command: "grep -r -e SECRET -e public ." } },
  ]);
  expect(JSON.stringify(ended)).not.toContain("THE SECRET");
  // Told what may be told: the rest of the folder.
  expect(JSON.stringify(ended[0]?.content)).toContain("public");
  expect(JSON.stringify(ended[2]?.content)).toContain("public");
  expect(ended.map(({ ok }) => ok).slice(0, 2)).toEqual([true, false]);
});

test("path-toctou-swap: a folder swapped for a link all the time never takes a write outside", async () => {
  const folders = prepare({ setup: ["mkdir d"] });
  const before = treeOf(folders.out);
  const swapper = new Worker(
    `const { renameSync, rmSync, symlinkSync } = require("node:fs");
     const [ws, out] = require("node:worker_threads").workerData;
     symlinkSync(out, ws + "/l");
     const end = Date.now() + 1500;
     while (Date.now() < end) {
       try {
         renameSync(ws + "/d", ws + "/e"); renameSync(ws + "/l", ws + "/d");
         renameSync(ws + "/d", ws + "/l"); renameSync(ws + "/e", ws + "/d");
       } catch { rmSync(ws + "/e", { recursive: true, force: true }); }
     }`,
    { eval: true, workerData: [folders.ws, folders.out] },
  );
  const ended = await byEngine(
    folders,
    Array.from({ length: 300 }, () => callsOf("write", "d/f.txt")[0]!),
  );
  await swapper.terminate();
  expect(treeOf(folders.out)).toEqual(before);
  expect(ended.some(({ ok }) => ok)).toBe(true);
});

test.each([
  ["a link", (path: string, target: string) => symlinkSync(target, path)],
  ["a folder", (path: string) => mkdirSync(path)],
])("path-undo-symlink: undo does nothing through %s planted since", async (_name, plant) => {
  const { ws, out, env } = prepare({ setup: ["echo before > link.txt"] });
  const prompt = "replace before with after in link.txt";
  await run(["exec", "--model", "offline", "--approval", "never", prompt], { cwd: ws, env });
  expect(readFileSync(join(ws, "link.txt"), "utf8")).toBe("after\n");
  rmSync(join(ws, "link.txt"));
  writeFileSync(join(out, "target.txt"), "after\n");
  plant(join(ws, "link.txt"), join(out, "target.txt"));
  const before = treeOf(out);
  const { code } = await run(["undo"], { cwd: ws, env });
  expect(code).not.toBe(0);
  expect(treeOf(out)).toEqual(before);
});
