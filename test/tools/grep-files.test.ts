import { chmodSync, mkdirSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as fc from "fast-check";
import { beforeEach, describe, expect, test } from "vitest";
import { createSearchPool } from "../../src/tools/search/pool.ts";
import { literalOf } from "../../src/tools/search/search.ts";
import { engineIn, newWorkspace } from "./workspace.ts";

let ws: string;
let ask: ReturnType<typeof engineIn>["ask"];

const put = (name: string, text: string | Buffer, seconds = 0) => {
  mkdirSync(join(ws, name, ".."), { recursive: true });
  writeFileSync(join(ws, name), text);
  utimesSync(join(ws, name), 1_700_000_000 + seconds, 1_700_000_000 + seconds);
};

beforeEach(() => {
  ws = newWorkspace();
  put("old.ts", "const needle = 1;\n", 1);
  put("src/new.ts", "one\n// a needle here\nthree\nneedle\n", 2);
  put("src/other.js", "needles\n", 3);
  ({ ask } = engineIn(ws, { service: { ripgrep: false } }));
});

const grep = (input: object) => ask("grep_files", { pattern: "needle", ...input });

test("files that match come newest first", async () => {
  expect(await grep({})).toBe([`${ws}/src/other.js`, `${ws}/src/new.ts`, `${ws}/old.ts`].join("\n"));
});

test("include, path and limit narrow the search", async () => {
  expect(await grep({ include: "*.ts" })).toBe([`${ws}/src/new.ts`, `${ws}/old.ts`].join("\n"));
  expect(await grep({ include: "src/**/*.ts" })).toBe(`${ws}/src/new.ts`);
  expect(await grep({ path: "src", limit: 1 })).toMatch(/^.*other\.js\n\(More than 1 files match/);
  expect(await grep({ path: "old.ts" })).toBe(`${ws}/old.ts`);
});

test("matching lines are shown with their numbers when asked for", async () => {
  expect(await grep({ lines: true, include: "new.ts" })).toBe(`${ws}/src/new.ts\n  2: // a needle here\n  4: needle`);
});

test("a pattern matches within lines, ignores case with (?i), and finds what is not ASCII", async () => {
  put("x.txt", "a\nb NEEDLE é\n");
  expect(await grep({ pattern: "a\\s+b" })).toBe("No matches found.");
  expect(await grep({ pattern: "(?i)^b needle" })).toBe(`${ws}/x.txt`);
  expect(await grep({ pattern: "é$" })).toBe(`${ws}/x.txt`);
});

test("ignored, hidden, binary files and links are left out; a deeper ignore file may take back", async () => {
  put(".gitignore", "build/\n*.log\n");
  put("build/x.ts", "needle");
  put("a.log", "needle");
  put("keep/.gitignore", "!a.log\n");
  put("keep/a.log", "needle", 9);
  put(".hidden/x", "needle");
  put("bin", Buffer.from("needle\0"));
  put("sub/x.log", "needle");
  symlinkSync(join(ws, "old.ts"), join(ws, "link.ts"));
  expect(await grep({})).toBe(
    [`${ws}/keep/a.log`, `${ws}/src/other.js`, `${ws}/src/new.ts`, `${ws}/old.ts`].join("\n"),
  );
  expect(await grep({ path: "sub" })).toBe("No matches found.");
});

test("a broken pattern and an empty one are told", async () => {
  await expect(grep({ pattern: "(" })).rejects.toThrow(/not a regular expression/);
  await expect(grep({ pattern: "  " })).rejects.toThrow(/empty/);
});

test("a pattern that would take for ever can be stopped, and the next search runs", async () => {
  put("evil.txt", `${"a".repeat(40)}b\n`);
  const { engine } = engineIn(ws, { service: { ripgrep: false } });
  const stop = new AbortController();
  setTimeout(() => stop.abort(), 200);
  const ended = await engine.call("grep_files", { pattern: "(a+)+$" }, stop.signal);
  expect(ended).toMatchObject({ ok: false, code: "aborted" });
  expect(ended.durationMs).toBeLessThan(5_000);
  expect(await engine.call("grep_files", { pattern: "needle" })).toMatchObject({ ok: true });
});

test("many searches at once all end", async () => {
  const answers = await Promise.all(Array.from({ length: 6 }, () => grep({ include: "old.ts" })));
  expect(new Set(answers)).toEqual(new Set([`${ws}/old.ts`]));
});

test("what every match contains is a part of every match", () => {
  const piece = fc.constantFrom(
    ..."a b h he _ ( . \\. \\( \\\\ \\w \\s \\b ^ $ a* b+ h? e+? \\.* (ab) (?:b|h) [ab] | a{2} \\x61 \\141 }".split(
      " ",
    ),
  );
  let told = 0;
  fc.assert(
    fc.property(
      fc.array(piece, { minLength: 1, maxLength: 4 }).map((pieces) => pieces.join("")),
      fc.string({
        unit: fc.constantFrom("a", "b", "bb", "ab", "h", "he", "_", "(", ".", "\\", " ", "}"),
        maxLength: 8,
      }),
      (pattern, text) => {
        const regex = tryRegExp(pattern);
        fc.pre(regex !== undefined);
        const literal = literalOf(pattern, "");
        if (!regex!.test(text)) return;
        if (literal !== "") told++;
        expect(text).toContain(literal);
      },
    ),
    { numRuns: 5_000 },
  );
  expect(told).toBeGreaterThan(100);
  expect(literalOf("the needle is", "")).not.toBe("");
  expect(literalOf("the needle is", "i")).toBe("");
  expect(literalOf("Xa*Yab+cd", "")).toBe("Yab");
});

function tryRegExp(pattern: string): RegExp | undefined {
  try {
    return new RegExp(pattern);
  } catch {
    return undefined;
  }
}

test("a folder that became a link after it was listed is not searched", async () => {
  symlinkSync(join(ws, "src"), join(ws, "swapped"));
  const folders = [
    { folder: ws, names: "old.ts" },
    { folder: join(ws, "swapped"), names: "new.ts/other.js" },
    { folder: join(ws, "src"), names: "new.ts" },
  ];
  const run = createSearchPool().start(10_000, new AbortController().signal);
  const job = { pattern: "needle", flags: "", literal: "needle", maxLines: 0, maxFileBytes: 1_000 };
  const { hits, skipped } = await run.send({ ...job, folders });
  run.finish();
  expect(hits.map(({ path }) => path)).toEqual([join(ws, "old.ts"), join(ws, "src/new.ts")]);
  expect(skipped).toBe(2);
});

describe("where ripgrep is", () => {
  test("it is used, with the pattern as one argument and never as an option", async () => {
    const rg = join(newWorkspace(), "rg");
    writeFileSync(rg, `#!/bin/sh\nprintf '%s\\n' "$@" >&2\nprintf 'found/here\\0'\n`);
    chmodSync(rg, 0o755);
    const { engine } = engineIn(ws, { service: { ripgrep: rg }, sandbox: "full-access" });
    const ended = await engine.call("grep_files", { pattern: "--pre=sh" });
    expect(ended).toMatchObject({ ok: true, content: [{ text: "found/here" }] });
  });
});
