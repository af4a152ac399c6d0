import { execFileSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import fc from "fast-check";
import { expect, test } from "vitest";
import { createFolderStates } from "../../src/workspace/folder-states.ts";

const newFolder = () => mkdtempSync(join(tmpdir(), "callgate-states-"));

/** A folder with its repository beside it, and what it has handed out so far. */
function machine() {
  const root = newFolder();
  const folder = join(root, "work");
  mkdirSync(folder);
  return { folder, states: createFolderStates(folder, join(root, "states")) };
}

/** Path to bytes, mode or target, of everything but folders. */
function read(folder: string, below = ""): Record<string, string> {
  const found: Record<string, string> = {};
  for (const name of readdirSync(join(folder, below))) {
    const path = join(below, name);
    const stats = lstatSync(join(folder, path));
    if (stats.isDirectory()) Object.assign(found, read(folder, path));
    else if (stats.isSymbolicLink()) found[path] = `-> ${readlinkSync(join(folder, path))}`;
    else found[path] = `${stats.mode & 0o100} ${readFileSync(join(folder, path)).toString("base64")}`;
  }
  return found;
}

async function* each(packs: readonly Uint8Array[]): AsyncGenerator<Uint8Array> {
  yield* packs;
}

type Write = { readonly path: string; readonly bytes: Uint8Array; readonly kind: "file" | "program" | "link" | "gone" };

function apply(folder: string, { path, bytes, kind }: Write): void {
  const full = join(folder, path);
  rmSync(full, { recursive: true, force: true });
  if (kind === "gone") return;
  // A file may stand where a folder is wanted.
  for (let above = dirname(full); above !== folder; above = dirname(above))
    if (existsSync(above) && !lstatSync(above).isDirectory()) rmSync(above, { force: true });
  mkdirSync(dirname(full), { recursive: true });
  if (kind === "link") return symlinkSync(`target-${bytes.length}`, full);
  writeFileSync(full, bytes);
  if (kind === "program") chmodSync(full, 0o755);
}

const nowhere = async () => undefined;

test("a folder comes to be on another machine as it was after any step, byte for byte", async () => {
  const path = fc.constantFrom("a", "b.txt", "sub/c", "sub/deep/d", "with space", "ü\nline", "-dash", "a.crlf");
  const write = fc.record({
    path,
    bytes: fc.uint8Array({ maxLength: 40 }),
    kind: fc.constantFrom("file", "file", "program", "link", "gone"),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(fc.array(write, { maxLength: 4 }), { minLength: 1, maxLength: 3 }), async (steps) => {
      const here = machine();
      const packs: Uint8Array[] = [];
      const seen: { readonly state: string; readonly files: Record<string, string> }[] = [];
      // Words of the folder that would change bytes on their way.
      writeFileSync(join(here.folder, ".gitattributes"), "*.crlf text eol=crlf\n* ident filter=x\n");
      for (const step of steps) {
        for (const one of step) apply(here.folder, one as Write);
        const state = await here.states.keep(async (pack) => void packs.push(pack));
        seen.push({ state, files: read(here.folder) });
      }
      const there = machine();
      writeFileSync(join(there.folder, "not-of-the-session"), "x");
      for (const { state, files } of seen.toReversed()) {
        await there.states.restore(state, () => each(packs));
        expect(read(there.folder)).toEqual(files);
        expect(await there.states.last).toBe(state);
      }
    }),
    { numRuns: 4 },
  );
}, 60_000);

test("a state whose piece could not be stored is not kept: the next try stores it, also in a new process", async () => {
  const { folder, states } = machine();
  writeFileSync(join(folder, "a"), "1");
  const fails = async () => Promise.reject(new Error("the database is away"));
  await expect(states.keep(fails)).rejects.toThrow("away");
  expect(await states.last).toBeUndefined();
  const packs: Uint8Array[] = [];
  const state = await states.keep(async (pack) => void packs.push(pack));
  const there = machine();
  await there.states.restore(state, () => each(packs));
  expect(readFileSync(join(there.folder, "a"), "utf8")).toBe("1");
});

test("what nothing has changed is not kept again; what is ignored is left alone", async () => {
  const { folder, states } = machine();
  writeFileSync(join(folder, ".gitignore"), "made/\n");
  writeFileSync(join(folder, "a"), "1");
  const packs: Uint8Array[] = [];
  const store = async (pack: Uint8Array) => void packs.push(pack);
  const first = await states.keep(store);
  mkdirSync(join(folder, "made"));
  writeFileSync(join(folder, "made", "x"), "made again by whoever needs it");
  expect(await states.keep(store)).toBe(first);
  expect(packs).toHaveLength(1);
  writeFileSync(join(folder, "a"), "2");
  await states.restore(first, () => each([]));
  expect(readFileSync(join(folder, "a"), "utf8")).toBe("1");
  expect(existsSync(join(folder, "made", "x"))).toBe(true);
});

test("repositories in the folder and the machine's settings have no say", async () => {
  const { folder, states } = machine();
  const marker = join(folder, "..", "ran");
  execFileSync("git", ["init", "--quiet", folder]);
  writeFileSync(join(folder, ".git", "hooks", "post-index-change"), `#!/bin/sh\ntouch ${marker}\n`, { mode: 0o755 });
  execFileSync("git", ["-C", folder, "config", "core.fsmonitor", `touch ${marker}`]);
  execFileSync("git", ["init", "--quiet", join(folder, "inner")]);
  writeFileSync(join(folder, "inner", "file"), "x");
  writeFileSync(join(folder, "own"), "1");
  const state = await states.keep(nowhere);
  writeFileSync(join(folder, "own"), "2");
  await states.restore(state, () => each([]));
  expect(readFileSync(join(folder, "own"), "utf8")).toBe("1");
  expect(existsSync(join(folder, ".git", "HEAD"))).toBe(true);
  expect(existsSync(marker)).toBe(false);
});

test("a state that nobody has kept is an error, and the folder stays as it is", async () => {
  const { folder, states } = machine();
  writeFileSync(join(folder, "a"), "1");
  await states.keep(nowhere);
  await expect(states.restore("0".repeat(40), () => each([]))).rejects.toThrow("not kept anywhere");
  expect(readFileSync(join(folder, "a"), "utf8")).toBe("1");
});

/** A repository in the folder whose settings leave a mark when git does as they say. */
function plantRepository(path: string, mark: string): void {
  mkdirSync(path, { recursive: true });
  const git = (...args: readonly string[]) =>
    execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@b", ...args], { cwd: path, stdio: "ignore" });
  git("init", "-q");
  writeFileSync(join(path, "a"), "a");
  git("add", "a");
  git("commit", "-qm", "one");
  const filter = `[filter "x"]\n\tclean = "touch ${mark}; cat"\n\tsmudge = "touch ${mark}; cat"\n`;
  writeFileSync(join(path, ".git", "config"), `[core]\n\tfsmonitor = "touch ${mark};:"\n${filter}`, { flag: "a" });
  writeFileSync(join(path, ".gitattributes"), "* filter=x\n");
}

test("nothing that a repository inside the folder says is run", async () => {
  const { folder, states } = machine();
  const mark = join(folder, "..", "mark");
  const keep = () => states.keep(async () => undefined);
  writeFileSync(join(folder, "was-a-file"), "f");
  plantRepository(join(folder, "sub [1]"), mark);
  const first = await keep();
  writeFileSync(join(folder, "sub [1]", "a"), "b");
  rmSync(join(folder, "was-a-file"));
  plantRepository(join(folder, "was-a-file"), mark);
  writeFileSync(join(folder, "b"), "b");
  await keep();
  writeFileSync(join(folder, "was-a-file", "a"), "b");
  writeFileSync(join(folder, "b"), "c");
  await keep();
  await states.restore(first, async function* () {});
  await keep();
  expect(existsSync(mark)).toBe(false);
  expect(existsSync(join(folder, "sub [1]", "a"))).toBe(true);
});

test("nor is it where an earlier version has kept such a repository", async () => {
  const { folder, states } = machine();
  const mark = join(folder, "..", "mark");
  await states.keep(async () => undefined);
  plantRepository(join(folder, "sub"), mark);
  const env = { PATH: process.env["PATH"], GIT_DIR: join(folder, "..", "states"), GIT_WORK_TREE: folder };
  execFileSync("git", ["add", "--all", "."], { cwd: folder, env, stdio: "ignore" });
  writeFileSync(join(folder, "sub", "a"), "b");
  await createFolderStates(folder, env.GIT_DIR).keep(async () => undefined);
  expect(existsSync(mark)).toBe(false);
});
