import { chmodSync, existsSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import { parsePatch } from "../../../src/tools/patch/parse.ts";
import { applyPatch, type PatchOptions } from "../../../src/tools/patch/patch.ts";
import { filesIn, newWorkspace } from "../workspace.ts";

let ws: string;
beforeEach(() => {
  ws = newWorkspace();
});

const put = (name: string, text: string | Buffer) => writeFileSync(join(ws, name), text);
const get = (name: string) => readFileSync(join(ws, name), "utf8");
const wrap = (...lines: readonly string[]) => ["*** Begin Patch", ...lines, "*** End Patch"].join("\n");
const apply = (patch: string, options?: PatchOptions) => applyPatch(patch, { files: filesIn(ws), cwd: ws }, options);
const update = (...lines: readonly string[]) => apply(wrap("*** Update File: f", ...lines));

describe("finding the place", () => {
  test("trailing blanks, indentation and typographic characters may differ, in this order", async () => {
    put("f", "one  \n\ttwo\nsay “hi” — now\n");
    await update("@@", "-one", "+1", "@@", "-two", "+2", "@@", '-say "hi" - now', "+3");
    expect(get("f")).toBe("1\n2\n3\n");
  });

  test("kept lines keep their own bytes even where the patch wrote them differently", async () => {
    put("f", "keep  \nold\n\tkeep too\n");
    await update("@@", " keep", "-old", "+new", " keep too");
    expect(get("f")).toBe("keep  \nnew\n\tkeep too\n");
  });

  test("a chunk that fits in two places is refused with both, and an anchor settles it", async () => {
    put("f", "def a:\n  return 1\ndef b:\n  return 1\n");
    await expect(update("@@", "-  return 1", "+  return 2")).rejects.toMatchObject({
      code: "failed",
      message: expect.stringContaining("lines 2, 4"),
      data: { lines: [2, 4] },
    });
    await update("@@ def b:", "-  return 1", "+  return 2");
    expect(get("f")).toBe("def a:\n  return 1\ndef b:\n  return 2\n");
  });

  test("the order of chunks settles a place, too", async () => {
    put("f", "x\na\nx\nb\n");
    await update("@@", "-x", "+y", "@@", " a", "-x", "+z");
    expect(get("f")).toBe("y\na\nz\nb\n");
  });

  test("a chunk out of order is taken if its lines stand in one place only, and not on top of another", async () => {
    put("f", "a\nb\nc\nd\n");
    await update("@@", "-d", "+D", "@@", "-a", "+A");
    expect(get("f")).toBe("A\nb\nc\nD\n");
    put("f", "x\nx\ny\n");
    await expect(update("@@", "-y", "+Y", "@@", "-x", "+X")).rejects.toMatchObject({ code: "failed" });
    put("f", "a\nb\n");
    await expect(update("@@", " a", "-b", "+B", "@@", "-a", "+A")).rejects.toMatchObject({ code: "failed" });
  });

  test("stacked anchors lead from the outer to the inner", async () => {
    put("f", "class A\n  def run\n    1\nclass B\n  def run\n    1\n");
    await update("@@ class B", "@@   def run", "-    1", "+    2");
    expect(get("f")).toBe("class A\n  def run\n    1\nclass B\n  def run\n    2\n");
  });

  test("an anchor may be the beginning of its line", async () => {
    put("f", "class Foo(Base):\n  pass\n");
    await update("@@ class Foo", "-  pass", "+  x = 1");
    expect(get("f")).toBe("class Foo(Base):\n  x = 1\n");
  });

  test("a pure addition lands below its anchor, or at the end without one", async () => {
    put("f", "a\nb\n");
    await update("@@ a", "+after a");
    await update("@@", "+at the end");
    expect(get("f")).toBe("a\nafter a\nb\nat the end\n");
  });

  test("End of File means the last such place, and falls back to a place before", async () => {
    put("f", "x\ny\nx\n");
    await update("@@", "-x", "+z", "*** End of File");
    expect(get("f")).toBe("x\ny\nz\n");
    put("f", "x\ny\n\n\n");
    await update("@@", " x", "-y", "+z", "*** End of File");
    expect(get("f")).toBe("x\nz\n\n\n");
  });

  test("an empty line too many at the end of a chunk is forgiven", async () => {
    put("f", "a\nb\n");
    await update("@@", " a", "-b", "+c", "");
    expect(get("f")).toBe("a\nc\n");
  });

  test("when nothing fits, the nearest place and what differs is told", async () => {
    put("f", "one\nfunction run(a, b) {\n  return a + b;\n}\n");
    await expect(update("@@", " function run(a, c) {", "-  return a + b;", "+  return 0;")).rejects.toMatchObject({
      code: "failed",
      hint: expect.stringMatching(
        /line 2[\s\S]*in the file: function run\(a, b\)[\s\S]*in the patch: function run\(a, c\)/,
      ),
    });
  });

  test("the codex mode takes the first place and puts additions at the end", async () => {
    put("f", "x\nx\n");
    await apply(wrap("*** Update File: f", "@@", "-x", "+y", "@@ x", "+end"), { codex: true });
    expect(get("f")).toBe("y\nx\nend\n");
  });
});

describe("what a file keeps", () => {
  test.each([
    ["CRLF", "a\r\nb\r\n", "a\r\nB\r\nnew\r\n"],
    ["mixed endings", "a\r\nb\rc\n", "a\r\nB\r\nnew\r\nc\n"],
    ["no newline at the end", "a\nb", "a\nB\nnew"],
    ["a byte-order mark", "\ufeffa\nb\n", "\ufeffa\nB\nnew\n"],
  ])("%s", async (_name, before, after) => {
    put("f", before);
    await update("@@", "-b", "+B", "+new");
    expect(get("f")).toBe(after);
  });

  test("UTF-16 and Latin-1, and characters that do not fit are told", async () => {
    put("u", Buffer.from("\ufeffé\nb\n", "utf16le"));
    put("l", Buffer.from("é\nb\n", "latin1"));
    await apply(wrap("*** Update File: u", "@@", "-b", "+ü", "*** Update File: l", "@@", "-b", "+ü"));
    expect(readFileSync(join(ws, "u")).toString("utf16le")).toBe("\ufeffé\nü\n");
    expect(readFileSync(join(ws, "l")).toString("latin1")).toBe("é\nü\n");
    await expect(apply(wrap("*** Update File: l", "@@", "-ü", "+→"))).rejects.toMatchObject({ code: "failed" });
  });

  test("mode bits, through an update and a move", async () => {
    put("run.sh", "a\n");
    chmodSync(join(ws, "run.sh"), 0o755);
    await apply(wrap("*** Update File: run.sh", "*** Move to: bin/run.sh", "@@", "-a", "+b"));
    expect(statSync(join(ws, "bin/run.sh")).mode & 0o777).toBe(0o755);
    expect(existsSync(join(ws, "run.sh"))).toBe(false);
  });
});

describe("several files", () => {
  test("all or none, folders that were made included", async () => {
    put("a", "1\n");
    const patch = wrap(
      "*** Add File: deep/er/new",
      "+x",
      "*** Update File: a",
      "@@",
      "-1",
      "+2",
      "*** Delete File: missing",
    );
    await expect(apply(patch)).rejects.toMatchObject({ code: "failed" });
    expect(get("a")).toBe("1\n");
    expect(existsSync(join(ws, "deep"))).toBe(false);
  });

  test("a failure while writing takes back what was written", async () => {
    put("a", "1\n");
    mkdirSync(join(ws, "d"));
    const files = filesIn(ws);
    let writes = 0;
    const failing = {
      ...files,
      write: (...all: Parameters<typeof files.write>) =>
        ++writes === 3 ? Promise.reject(new Error("disk full")) : files.write(...all),
    };
    const patch = wrap("*** Update File: a", "@@", "-1", "+2", "*** Add File: new/b", "+b", "*** Add File: c", "+c");
    await expect(applyPatch(patch, { files: failing, cwd: ws })).rejects.toThrow("disk full");
    expect(get("a")).toBe("1\n");
    expect(existsSync(join(ws, "new"))).toBe(false);
  });

  test("a file that cannot be put back keeps no other from it, and is named beside what went wrong", async () => {
    for (const name of ["a", "b", "c"]) put(name, "1\n");
    const files = filesIn(ws);
    const failing = {
      ...files,
      write: (...all: Parameters<typeof files.write>) => {
        const isBack = all[2]?.evenIfChanged === true;
        if (all[0].endsWith("/c")) return Promise.reject(new Error("disk full"));
        return isBack && all[0].endsWith("/b") ? Promise.reject(new Error("gone")) : files.write(...all);
      },
    };
    const patch = wrap(...["a", "b", "c"].flatMap((name) => [`*** Update File: ${name}`, "@@", "-1", "+2"]));
    await expect(applyPatch(patch, { files: failing, cwd: ws })).rejects.toMatchObject({
      message: "disk full",
      hint: expect.stringContaining(`${ws}/b.`),
    });
    expect([get("a"), get("b")]).toEqual(["1\n", "2\n"]);
  });

  test("two hunks on one file build on each other", async () => {
    put("a", "1\n");
    await apply(wrap("*** Update File: a", "@@", "-1", "+2", "*** Update File: ./a", "@@", "-2", "+3"));
    expect(get("a")).toBe("3\n");
  });

  test("a file is moved without a change, and over another", async () => {
    put("a", "a\n");
    put("b", "b\n");
    const outcome = await apply(wrap("*** Update File: a", "*** Move to: b"));
    expect(get("b")).toBe("a\n");
    expect(outcome.files).toEqual([{ path: "b", action: "move", from: "a" }]);
  });

  test("the answer lists added, changed and deleted files by the names used", async () => {
    put("a", "a\n");
    put("b", "b\n");
    const { content } = await apply(
      wrap("*** Delete File: b", "*** Update File: a", "@@", "-a", "+c", "*** Add File: n", "+n"),
    );
    expect(content).toBe("Success. Updated the following files:\nA n\nM a\nD b");
  });

  test("a dry run says what would happen and changes nothing", async () => {
    put("a", "a\n");
    const { files } = await apply(wrap("*** Update File: a", "@@", "-a", "+b"), { dryRun: true });
    expect(files).toEqual([{ path: "a", action: "update" }]);
    expect(get("a")).toBe("a\n");
  });

  test("a file that is changed at the same moment is patched as it is then", async () => {
    put("a", "x\n1\ny\n");
    const files = filesIn(ws);
    let once = true;
    const raced: typeof files = {
      ...files,
      write: (...all) => {
        if (once) put("a", "x changed\n1\ny\n");
        once = false;
        return files.write(...all);
      },
    };
    await applyPatch(wrap("*** Update File: a", "@@", "-1", "+2"), { files: raced, cwd: ws });
    expect(get("a")).toBe("x changed\n2\ny\n");
  });

  test("progress is told at the beginning and the end", async () => {
    const told: unknown[] = [];
    await applyPatch(wrap("*** Add File: n", "+n"), {
      files: filesIn(ws),
      cwd: ws,
      progress: (each) => told.push(each),
    });
    expect(told).toMatchObject([{ data: { type: "patch.started", files: ["n"] } }, { data: { type: "patch.ended" } }]);
  });
});

describe("reading a patch", () => {
  test.each([
    ["a here-document", "<<'EOF'\n*** Begin Patch\n*** Add File: n\n+x\n*** End Patch\nEOF"],
    ["the command around it", "apply_patch <<'PATCH'\n*** Begin Patch\n*** Add File: n\n+x\n*** End Patch\nPATCH"],
    ["a code fence", "```diff\n*** Begin Patch\n*** Add File: n\n+x\n*** End Patch\n```"],
    ["a JSON wrapper", JSON.stringify({ input: "*** Begin Patch\n*** Add File: n\n+x\n*** End Patch" })],
    ["CRLF lines", "*** Begin Patch\r\n*** Add File: n\r\n+x\r\n*** End Patch\r\n"],
  ])("%s is taken off", async (_name, patch) => {
    await apply(patch);
    expect(get("n")).toBe("x\n");
  });

  test.each([
    ["no markers", "just text", 1],
    ["no end", "*** Begin Patch\n*** Add File: a\n+x", 3],
    ["a line without a sign in an update", wrap("*** Update File: a", "@@", "?x"), 4],
    ["an unknown header", wrap("*** Frobnicate File: a"), 2],
    ["a new file's line without +", wrap("*** Add File: a", "x"), 3],
    ["a new file's empty line without +", wrap("*** Add File: a", "+x", "", "+y"), 4],
    ["an update without lines", wrap("*** Update File: a"), 2],
    ["an @@ without lines", wrap("*** Update File: a", "@@", "*** Add File: b", "+x"), 4],
    ["a move in the wrong place", wrap("*** Update File: a", "@@", "-x", "*** Move to: b"), 5],
    ["lines after End of File", wrap("*** Update File: a", "@@", "-x", "*** End of File", "-y"), 6],
    ["a header without a file", wrap("*** Delete File: "), 2],
  ])("%s is told with its line", (_name, patch, line) => {
    expect(() => parsePatch(patch)).toThrow(expect.objectContaining({ code: "invalid_input", data: { line } }));
  });

  test("the remark of diff programs about a missing newline is no line of the file", async () => {
    put("f", "a\nb");
    await update("@@ -1,2 +1,2 @@", " a", "-b", "\\ No newline at end of file", "+c", "\\ No newline at end of file");
    expect(get("f")).toBe("a\nc");
  });

  test("a link inside the workspace is patched where it leads", async () => {
    put("real", "a\n");
    symlinkSync("real", join(ws, "link"));
    await apply(wrap("*** Update File: link", "@@", "-a", "+b"));
    expect(get("real")).toBe("b\n");
  });
});
