import { execFileSync } from "node:child_process";
import fs, {
  chmodSync,
  chownSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  statSync,
  symlinkSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import * as fc from "fast-check";
import { rolldown } from "rolldown";
import { beforeAll, beforeEach, describe, expect, test } from "vitest";
import { createFileMemory, type FileChange } from "../../../src/runtime/files.ts";
import { createPathSet, isInside } from "../../../src/runtime/files/paths.ts";
import { filesIn, grantFor, newWorkspace } from "../../tools/workspace.ts";

let ws: string;
let out: string;
/** The file functions for a process of its own, because a bare Node reads no TypeScript. */
let bundled: string;

beforeAll(async () => {
  bundled = join(newWorkspace(), "files.mjs");
  const input = fileURLToPath(new URL("../../tools/workspace.ts", import.meta.url));
  const bundle = await rolldown({ input, platform: "node", external: [/^node:/] });
  await bundle.write({ file: bundled, format: "esm", codeSplitting: false });
  await bundle.close();
  chmodSync(join(bundled, ".."), 0o755);
});

beforeEach(() => {
  const parent = newWorkspace();
  ws = join(parent, "ws");
  out = join(parent, "out");
  mkdirSync(join(ws, "src"), { recursive: true });
  mkdirSync(join(out, "victim"), { recursive: true });
  writeFileSync(join(ws, "src/a.txt"), "a\n");
  writeFileSync(join(out, "secret.txt"), "secret\n");
  writeFileSync(join(out, "target.txt"), "target\n");
});

/** What this process holds open below a folder. */
function openIn(folder: string): readonly string[] {
  return readdirSync("/proc/self/fd")
    .map((fd) => (existsSync(`/proc/self/fd/${fd}`) ? readlinkSync(`/proc/self/fd/${fd}`) : ""))
    .filter((path) => path.startsWith(folder));
}

describe.each([
  ["by handles", true],
  ["by resolved paths, as on other systems", false],
])("files, %s", (_name, handles) => {
  const files = (more = {}) => filesIn(ws, { handles, ...more });

  test("a text is written and read back, with the folders on the way", async () => {
    await files().write("x/y/z.txt", "hello", { parents: true });
    expect(readFileSync(join(ws, "x/y/z.txt"), "utf8")).toBe("hello");
    expect((await files().readText("x/y/z.txt")).text).toBe("hello");
    expect(readdirSync(join(ws, "x/y"))).toEqual(["z.txt"]);
  });

  test("a missing folder is told, not made, unless asked for", async () => {
    await expect(files().write("no/such.txt", "x")).rejects.toMatchObject({ code: "failed" });
    expect(existsSync(join(ws, "no"))).toBe(false);
  });

  test.each(["../out/new.txt", "/etc/callgate-test", "src/../../out/new.txt"])(
    "a write to %s stays out",
    async (path) => {
      await expect(files().write(path, "x", { parents: true })).rejects.toMatchObject({
        code: "sandbox_denied",
        data: { what: "write" },
      });
      expect(readdirSync(out)).toEqual(["secret.txt", "target.txt", "victim"]);
    },
  );

  test("a folder whose name begins like the workspace's is not the workspace", async () => {
    mkdirSync(`${ws}-evil`);
    await expect(files().write(`${ws}-evil/x`, "x")).rejects.toMatchObject({ code: "sandbox_denied" });
  });

  test("a folder that is a link to the outside is not written through", async () => {
    symlinkSync(out, join(ws, "dir"));
    await expect(files().write("dir/new.txt", "x")).rejects.toMatchObject({ code: "sandbox_denied" });
    await expect(files().write("dir/deep/new.txt", "x", { parents: true })).rejects.toMatchObject({
      code: "sandbox_denied",
    });
    await expect(files().mkdir("dir/sub", { recursive: true })).rejects.toMatchObject({ code: "sandbox_denied" });
    await expect(files().remove("dir/victim", { recursive: true })).rejects.toMatchObject({ code: "sandbox_denied" });
    await expect(files().move("dir/secret.txt", "stolen.txt")).rejects.toMatchObject({ code: "sandbox_denied" });
    expect(readdirSync(out)).toEqual(["secret.txt", "target.txt", "victim"]);
  });

  test("a file that is a link to the outside is neither read nor written, dangling or not", async () => {
    symlinkSync(join(out, "secret.txt"), join(ws, "link.txt"));
    symlinkSync(join(out, "new.txt"), join(ws, "dangling.txt"));
    await expect(files().read("link.txt")).rejects.toMatchObject({ code: "denied" });
    await expect(files().write("link.txt", "x")).rejects.toMatchObject({ code: "sandbox_denied" });
    await expect(files().write("dangling.txt", "x")).rejects.toMatchObject({ code: "sandbox_denied" });
    expect(readFileSync(join(out, "secret.txt"), "utf8")).toBe("secret\n");
    expect(existsSync(join(out, "new.txt"))).toBe(false);
  });

  test("a link that stays inside is followed and stays a link", async () => {
    symlinkSync("src/a.txt", join(ws, "inner.txt"));
    await files().write("inner.txt", "changed");
    expect(readFileSync(join(ws, "src/a.txt"), "utf8")).toBe("changed");
    expect(readlinkSync(join(ws, "inner.txt"))).toBe("src/a.txt");
  });

  test("links in a circle are told", async () => {
    symlinkSync("two", join(ws, "one"));
    symlinkSync("one", join(ws, "two"));
    await expect(files().write("one", "x")).rejects.toMatchObject({ code: "failed" });
    await expect(files().read("one")).rejects.toMatchObject({ code: "failed" });
  });

  test("a hard link to a file outside is broken, not written through", async () => {
    linkSync(join(out, "target.txt"), join(ws, "hl.txt"));
    await files().write("hl.txt", "mine");
    expect(readFileSync(join(out, "target.txt"), "utf8")).toBe("target\n");
    expect(readFileSync(join(ws, "hl.txt"), "utf8")).toBe("mine");
  });

  test("removing a link removes the link", async () => {
    symlinkSync(join(out, "secret.txt"), join(ws, "link.txt"));
    await files().remove("link.txt");
    expect(existsSync(join(out, "secret.txt"))).toBe(true);
    expect(existsSync(join(ws, "link.txt"))).toBe(false);
  });

  test("removing a folder does not follow the links in it", async () => {
    mkdirSync(join(ws, "d"));
    symlinkSync(out, join(ws, "d/out"));
    await files().remove("d", { recursive: true });
    expect(readdirSync(out)).toEqual(["secret.txt", "target.txt", "victim"]);
    expect(existsSync(join(ws, "d"))).toBe(false);
  });

  test("the workspace itself is not removed", async () => {
    await expect(files().remove(".", { recursive: true })).rejects.toMatchObject({ code: "denied" });
    expect(existsSync(ws)).toBe(true);
  });

  test("mode bits stay, and a new file gets the ones asked for", async () => {
    writeFileSync(join(ws, "run.sh"), "#!/bin/sh\n");
    chmodSync(join(ws, "run.sh"), 0o777);
    await files().write("run.sh", "#!/bin/sh\necho\n");
    await files().write("new.sh", "x", { mode: 0o700 });
    expect(statSync(join(ws, "run.sh")).mode & 0o777).toBe(0o777);
    expect(statSync(join(ws, "new.sh")).mode & 0o777).toBe(0o700);
  });

  test("what only its owner may read is never open to others while it is written", async () => {
    writeFileSync(join(ws, "secret"), "old", { mode: 0o600 });
    const modes: number[] = [];
    const look = (fd: number) => {
      if (fs.fstatSync(fd).isFile()) modes.push(fs.fstatSync(fd).mode & 0o777);
    };
    await after("openSync", look, () => files().write("secret", "new"));
    expect(modes).toEqual([0o600]);
    expect(readFileSync(join(ws, "secret"), "utf8")).toBe("new");
  });

  test("a file that its owner made read-only is not replaced", () => {
    // Root may replace anything, so for root the files belong to another user, who writes.
    const other = process.getuid?.() === 0 ? { uid: 65534, gid: 65534 } : undefined;
    if (other !== undefined)
      for (const name of ["..", ".", "src", "src/a.txt"]) chownSync(join(ws, name), 65534, 65534);
    chmodSync(join(ws, "src/a.txt"), 0o444);
    const script = `import { filesIn } from ${JSON.stringify(bundled)};
      const { code } = await filesIn(${JSON.stringify(ws)}, { handles: ${handles} }).write("src/a.txt", "x").catch((error) => error);
      console.log(code);`;
    const args = ["--input-type=module", "-e", script];
    expect(execFileSync(process.execPath, args, { encoding: "utf8", cwd: "/", ...other })).toBe("failed\n");
    expect(readFileSync(join(ws, "src/a.txt"), "utf8")).toBe("a\n");
  });

  test.each([
    ".git/hooks/pre-commit",
    ".GIT/config",
    ".git./config",
    ".git::$INDEX_ALLOCATION/config",
    "git~1/config",
    ".g\u200cit/config",
    "sub/.git/x",
  ])("%s is protected", async (path) => {
    await expect(files().write(path, "x", { parents: true })).rejects.toMatchObject({ code: "denied" });
  });

  test("a protected folder is not reached through a link, nor removed with its parent", async () => {
    mkdirSync(join(ws, "repo/.git"), { recursive: true });
    symlinkSync("repo/.git", join(ws, "g"));
    await expect(files().write("g/config", "x")).rejects.toMatchObject({ code: "denied" });
    await expect(files().remove("repo", { recursive: true })).rejects.toMatchObject({ code: "denied" });
    expect(existsSync(join(ws, "repo/.git"))).toBe(true);
  });

  test("a protected path may be given whole or below a root", async () => {
    const grant = grantFor(ws, { protect: [join(ws, "kept"), "conf/rules.toml"] });
    await expect(files({ grant }).write("kept/x", "x", { parents: true })).rejects.toMatchObject({ code: "denied" });
    await expect(files({ grant }).write("conf/rules.toml", "x", { parents: true })).rejects.toMatchObject({
      code: "denied",
    });
    await files({ grant }).write("conf/other.toml", "x", { parents: true });
  });

  test("names that only look protected are written", async () => {
    for (const path of [".gitignore", "git/x", ".github/x", "a.git"]) await files().write(path, "x", { parents: true });
    expect(readdirSync(ws)).toEqual(expect.arrayContaining([".gitignore", "git", ".github", "a.git"]));
  });

  test("what is masked is not read, by whatever name, and not listed", async () => {
    writeFileSync(join(ws, ".env"), "K=V\n");
    symlinkSync(".env", join(ws, "notes.txt"));
    linkSync(join(ws, ".env"), join(ws, "twin.txt"));
    const grant = grantFor(ws, { mask: [join(ws, ".env"), out] });
    for (const path of [".env", "notes.txt", "twin.txt", join(out, "secret.txt")]) {
      await expect(files({ grant }).read(path)).rejects.toMatchObject({ code: "denied" });
    }
    expect((await files({ grant }).list(".")).map(({ name }) => name)).not.toContain(".env");
  });

  test("names are those of a listing, in the same order, without another look", async () => {
    symlinkSync("a.txt", join(ws, "src/link"));
    mkdirSync(join(ws, "src/Folder"));
    writeFileSync(join(ws, "src/key"), "");
    const grant = grantFor(ws, { mask: [join(ws, "src/key")] });
    const listed = (await files({ grant }).list("src")).map(({ name, path, type }) => ({ name, path, type }));
    expect(await files({ grant }).names("src")).toEqual(listed);
    expect(listed.map(({ type }) => type)).toEqual(["directory", "file", "link"]);
  });

  test("a file outside is read by its own path", async () => {
    expect((await files().readText(join(out, "secret.txt"))).text).toBe("secret\n");
  });

  test("a pipe, a device and the system's own trees are refused, at once", async () => {
    execFileSync("mkfifo", [join(ws, "pipe")]);
    for (const path of [
      "pipe",
      "/dev/zero",
      "/dev/stdin",
      "/proc/self/environ",
      "/proc/self/mem",
      "/sys/kernel/notes",
    ]) {
      await expect(files().read(path)).rejects.toMatchObject({ code: expect.stringMatching(/denied|failed/) });
    }
    await expect(files().write("pipe", "x")).rejects.toMatchObject({ code: "denied" });
  });

  test("odd paths are told, not followed", async () => {
    await expect(files().read("a\0b")).rejects.toMatchObject({ code: "invalid_input" });
    await expect(files().write("~/x", "x", { parents: true })).rejects.toMatchObject({ code: "invalid_input" });
    await expect(files().read("")).rejects.toMatchObject({ code: "invalid_input" });
    await expect(files().write(`${"a/".repeat(3_000)}x`, "x", { parents: true })).rejects.toMatchObject({
      code: "invalid_input",
    });
    await expect(files().write("n".repeat(300), "x")).rejects.toMatchObject({ code: "failed" });
    await expect(files().read("src/a.txt/b")).rejects.toMatchObject({ code: "failed" });
    await expect(files().read("src")).rejects.toMatchObject({ code: "failed" });
  });

  test("a name that differs only in case from one that is there is refused; changing the case by moving is not", async () => {
    await expect(files().write("src/A.TXT", "x")).rejects.toMatchObject({ code: "failed" });
    await files().move("src/a.txt", "src/A.txt");
    expect(readdirSync(join(ws, "src"))).toEqual(["A.txt"]);
  });

  test("a write over a file that changed since it was read is told as stale, and done when asked for", async () => {
    const at = files();
    await at.readText("src/a.txt");
    writeFileSync(join(ws, "src/a.txt"), "by somebody else\n");
    await expect(at.write("src/a.txt", "mine")).rejects.toMatchObject({ code: "stale" });
    expect(readFileSync(join(ws, "src/a.txt"), "utf8")).toBe("by somebody else\n");
    await at.write("src/a.txt", "mine", { evenIfChanged: true });
    expect(readFileSync(join(ws, "src/a.txt"), "utf8")).toBe("mine");
  });

  test("a file that is changed while it is read is stale, as long as it may be", async () => {
    const at = files();
    const change = () => {
      writeFileSync(join(ws, "src/a.txt"), "z\n");
      utimesSync(join(ws, "src/a.txt"), new Date(), new Date(Date.now() + 5_000));
    };
    const { version, text } = await after("readSync", change, () => at.readText("src/a.txt"));
    expect(text).toBe("a\n");
    await expect(at.write("src/a.txt", "mine", { ifUnchanged: version })).rejects.toMatchObject({ code: "stale" });
  });

  test("a file that was only touched has not changed", async () => {
    const at = files();
    await at.readText("src/a.txt");
    utimesSync(join(ws, "src/a.txt"), new Date(), new Date(Date.now() + 5_000));
    await at.write("src/a.txt", "mine");
    expect(readFileSync(join(ws, "src/a.txt"), "utf8")).toBe("mine");
  });

  test("what one call read is remembered for the next calls of the session", async () => {
    const memory = createFileMemory();
    await files({ memory }).slice("src/a.txt", 1, 10);
    writeFileSync(join(ws, "src/a.txt"), "other, longer\n");
    await expect(files({ memory }).write("src/a.txt", "mine")).rejects.toMatchObject({ code: "stale" });
    await files({ memory }).readText("src/a.txt");
    await files({ memory }).write("src/a.txt", "mine");
    await files({ memory }).write("src/a.txt", "mine again");
  });

  test("of many edits at once that check the version, none is lost", async () => {
    const at = files();
    await at.write("count.txt", "0");
    const bump = async (): Promise<void> => {
      const { text, version } = await at.readText("count.txt");
      await at.write("count.txt", String(Number(text) + 1), { ifUnchanged: version }).catch(bump);
    };
    await Promise.all(Array.from({ length: 20 }, bump));
    expect(readFileSync(join(ws, "count.txt"), "utf8")).toBe("20");
  });

  test("an exclusive write does not replace anything", async () => {
    await expect(files().write("src/a.txt", "x", { exclusive: true })).rejects.toMatchObject({ code: "failed" });
  });

  test("text keeps its encoding and mark in what is told about it", async () => {
    writeFileSync(join(ws, "bom.txt"), "\ufeffhé\r\n");
    writeFileSync(join(ws, "u16.txt"), Buffer.from("\ufeffhé\n", "utf16le"));
    writeFileSync(join(ws, "l1.txt"), Buffer.from("hé\n", "latin1"));
    expect(await files().readText("bom.txt")).toMatchObject({ text: "hé\r\n", bom: true, encoding: "utf8" });
    expect(await files().readText("u16.txt")).toMatchObject({ text: "hé\n", bom: true, encoding: "utf16le" });
    expect(await files().readText("l1.txt")).toMatchObject({ text: "hé\n", bom: false, encoding: "latin1" });
  });

  test("a folder is copied whole, links as links, and never into itself", async () => {
    symlinkSync("a.txt", join(ws, "src/l"));
    await files().copy("src", "copy");
    expect(readFileSync(join(ws, "copy/a.txt"), "utf8")).toBe("a\n");
    expect(lstatSync(join(ws, "copy/l")).isSymbolicLink()).toBe(true);
    await expect(files().copy("src", "src/again")).rejects.toMatchObject({ code: "invalid_input" });
    await expect(files().copy("src", "copy")).rejects.toMatchObject({ code: "failed" });
  });

  test("a folder that was moved away between two writes gets nothing more, even if another one is in its place", async () => {
    const at = files();
    mkdirSync(join(ws, "two"));
    writeFileSync(join(ws, "two/b.txt"), "other\n");
    // No step of the event loop lies between the writes, so that nothing opened for the first one is closed yet.
    const first = at.write("src/new.txt", "1");
    renameSync(join(ws, "src"), join(out, "src"));
    const second = at.write("src/b.txt", "2");
    renameSync(join(ws, "two"), join(ws, "src"));
    const third = at.write("src/b.txt", "3");
    await first;
    await expect(second).rejects.toMatchObject({ code: "failed" });
    await third;
    expect(readdirSync(join(out, "src")).toSorted()).toEqual(["a.txt", "new.txt"]);
    expect(readFileSync(join(ws, "src/b.txt"), "utf8")).toBe("3");
  });

  test("a link to a folder is followed anew for each write", async () => {
    const at = files();
    mkdirSync(join(ws, "two"));
    symlinkSync("src", join(ws, "link"));
    const first = at.write("link/one.txt", "1");
    unlinkSync(join(ws, "link"));
    symlinkSync("two", join(ws, "link"));
    const second = at.write("link/two.txt", "2");
    unlinkSync(join(ws, "link"));
    symlinkSync(out, join(ws, "link"));
    const third = at.write("link/three.txt", "3");
    await Promise.all([first, second]);
    await expect(third).rejects.toMatchObject({ code: "sandbox_denied" });
    expect([readdirSync(join(ws, "two")), existsSync(join(out, "three.txt"))]).toEqual([["two.txt"], false]);
  });

  test("each of several files written at once keeps its mode, and no folder stays open", async () => {
    const at = files();
    const modes = [0o664, 0o640, 0o664, 0o600, 0o777];
    for (const [index, mode] of modes.entries()) {
      writeFileSync(join(ws, `src/m${index}.txt`), "x");
      chmodSync(join(ws, `src/m${index}.txt`), mode);
    }
    await Promise.all(modes.map((_, index) => at.write(`src/m${index}.txt`, "y")));
    expect(modes.map((_, index) => statSync(join(ws, `src/m${index}.txt`)).mode & 0o777)).toEqual(modes);
    await new Promise((done) => setImmediate(() => setImmediate(done)));
    if (process.platform === "linux") expect(openIn(ws)).toEqual([]);
  });

  test("every change is told with what was there before", async () => {
    const changes: FileChange[] = [];
    const at = files({ onChange: (change: FileChange) => changes.push(change) });
    const { version } = await at.readText("src/a.txt");
    // Touched, so that what was read may not be what is there.
    utimesSync(join(ws, "src/a.txt"), new Date(), new Date(Date.now() + 5_000));
    await at.write("src/a.txt", "b\n", { ifUnchanged: version });
    await at.write("src/a.txt", "c\n", { ifUnchanged: (await at.readText("src/a.txt")).version });
    await at.move("src", "lib");
    await at.remove("lib", { recursive: true });
    const told = changes.map(({ path, before, after }) => [
      path.slice(ws.length + 1),
      before && Buffer.from(before).toString(),
      after && Buffer.from(after).toString(),
    ]);
    // A text is told as the bytes that it became.
    expect(changes[0]?.after).toBeInstanceOf(Uint8Array);
    expect(told).toEqual([
      ["src/a.txt", "a\n", "b\n"],
      ["src/a.txt", "b\n", "c\n"],
      ["src/a.txt", "c\n", undefined],
      ["lib/a.txt", undefined, "c\n"],
      ["lib/a.txt", "c\n", undefined],
    ]);
  });

  test("nothing may be written under a read-only grant", async () => {
    const grant = grantFor(ws, { policy: "read-only", write: [] });
    await expect(files({ grant }).write("src/a.txt", "x")).rejects.toMatchObject({ code: "sandbox_denied" });
    expect((await files({ grant }).readText("src/a.txt")).text).toBe("a\n");
  });
});

test("a set of paths tells which of them contain a path", () => {
  const path = fc
    .array(fc.constantFrom("a", "b", "ab", "a.b", "."), { maxLength: 4 })
    .map((steps) => `/${steps.join("/")}`);
  fc.assert(
    fc.property(fc.uniqueArray(path, { maxLength: 8 }), fc.array(path), (paths, asked) => {
      // One set is asked for all, because it remembers the last folder.
      const set = createPathSet(paths);
      for (const one of asked)
        expect(set.around(one).toSorted()).toEqual(paths.filter((root) => isInside(one, root)).toSorted());
    }),
    { numRuns: 500 },
  );
});

/** Runs `body`; meanwhile `look` is called after each use of a function of the system, with what it gave. */
async function after<T>(name: "openSync" | "readSync", look: (given: number) => void, body: () => Promise<T>) {
  const real: (...args: readonly never[]) => number = fs[name];
  const watched = (...args: readonly never[]) => {
    const given = real(...args);
    look(given);
    return given;
  };
  Object.assign(fs, { [name]: watched });
  syncBuiltinESMExports();
  try {
    return await body();
  } finally {
    Object.assign(fs, { [name]: real });
    syncBuiltinESMExports();
  }
}

test("what was seen is handed on once; what an earlier process saw is known, and not handed on again", async () => {
  const memory = createFileMemory([["/elsewhere", "v1"]]);
  expect(memory.takeNew()).toEqual([]);
  expect(memory.seen.get("/elsewhere")).toBe("v1");
  const { version } = await filesIn(ws, { memory }).readText("src/a.txt");
  expect(memory.takeNew()).toEqual([[version.path, version.token]]);
  expect(memory.takeNew()).toEqual([]);
  expect(memory.seen.get(version.path)).toBe(version.token);
});
