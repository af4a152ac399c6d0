import { spawnSync } from "node:child_process";
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { isBuiltin } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { setTimeout } from "node:timers/promises";
import { Script } from "node:vm";
import { parseSync } from "rolldown/utils";
import { beforeAll, describe, expect, test } from "vitest";
import { createKeptCode, loadedWhenCalled, toFunction } from "../../src/cli/kept-code.ts";
import { ensureBuilt } from "./run.ts";

const isRoot = process.getuid?.() === 0;
const dist = resolve(import.meta.dirname, "../../dist");
/** What the command can load: each file as the function that it becomes, by path. */
const functions = new Map<string, string>();
const importsOf = (file: string) => [...functions.get(file)!.matchAll(/__need\("([^"]+)"\)/g)].map(([, name]) => name!);
const ours = (file: string, name: string) => resolve(dirname(file), name);

beforeAll(() => {
  ensureBuilt();
  const visit = (file: string): void => {
    if (functions.has(file)) return;
    functions.set(file, toFunction(readFileSync(file, "utf8")));
    const later = [...functions.get(file)!.matchAll(/__later\([`"]([^`"]+)[`"]\)/g)].map(([, name]) => name!);
    for (const name of [...importsOf(file), ...later]) if (name.startsWith(".")) visit(ours(file, name));
  };
  visit(join(dist, "chunks/main.js"));
}, 120_000);

describe("the built files have the one shape that the command's loader reads", () => {
  test("each is a function once its imports and exports are read", () => {
    expect(functions.size).toBeGreaterThan(50);
    for (const [file, text] of functions) {
      expect(() => new Script(text, { filename: file }), file).not.toThrow();
      expect(text, file).not.toMatch(/[;}]import(?:\{|\*|")|const\{[^}]*\bdefault:[^}]*\}=__need\("[^.]/);
      // Neither is there another letter in it: it is read as Latin-1.
      expect(/^[\0-\x7f]*$/.test(text), file).toBe(true);
      expect(parseSync("a.js", text).module.dynamicImports, file).toEqual([]);
      for (const name of importsOf(file))
        expect(name.startsWith(".") || isBuiltin(name), `${file}: ${name}`).toBe(true);
    }
  });

  test("what is loaded when it is called are functions, and nothing but called", () => {
    const found = [...functions.values()].flatMap((text) => [
      ...text.matchAll(/const ([\w$]+)=\(\.\.\.a\)=>__need\("(node:[^"]+)"\)\.(\w+)\(/g),
    ]);
    expect(found.length).toBeGreaterThan(10);
    for (const [, , from, name] of found) {
      expect(loadedWhenCalled).toContain(from);
      // A module of Node, by its name.
      const module = process.getBuiltinModule(from!) as unknown as Record<string, unknown>;
      expect(typeof module[name!], `${from}: ${name}`).toBe("function");
      expect(name, "not a class").toMatch(/^[a-z]/);
    }
  });

  test("no two import each other, so that all a file imports has run before it does", () => {
    const done = new Set<string>();
    const visit = (file: string, above: readonly string[]): void => {
      expect(above).not.toContain(file);
      if (done.has(file)) return;
      for (const name of importsOf(file)) if (name.startsWith(".")) visit(ours(file, name), [...above, file]);
      done.add(file);
    };
    for (const file of functions.keys()) visit(file, []);
  });
});

test("imports, exports and the names of other files are translated", () => {
  const made = toFunction(
    `import a,{b as c}from"./x.js";import{createHash,hash as sum}from"node:crypto";import*as all from"node:path";import own from"./y.js";import fs from"node:fs";import"./z.js";` +
      "const d=()=>import(/*later*/`./later.js`);const u=import.meta.url;const p=`import(x)`;export{c,d as default,u as url};\n//# sourceMappingURL=a.js.map\n",
  );
  expect(made).toBe(
    `(function(__need,__later,__url){"use strict";const a=__need("./x.js").default;const{b:c}=__need("./x.js");const createHash=(...a)=>__need("node:crypto").createHash(...a);` +
      `const sum=(...a)=>__need("node:crypto").hash(...a);const all=__need("node:path");` +
      `const own=__need("./y.js").default;const fs=__need("node:fs");__need("./z.js");` +
      "const d=()=>__later(`./later.js`);const u=__url();const p=`import(x)`;\nreturn {c,default:d,url:u}})",
  );
});

test("a long run that compiled more than was kept keeps it, and one that did less takes nothing away", async () => {
  await setTimeout(Math.max(0, 1_100 - process.uptime() * 1_000)); // or this process is not a long run yet
  const folder = mkdtempSync(join(tmpdir(), "callgate-start-"));
  const main = join(folder, "main.js");
  const statements = Array.from({ length: 4_000 }, (_, index) => `total+=n*${index};`).join("\n");
  writeFileSync(main, `function seldom(n){\nlet total=0;\n${statements}\nreturn total}export{seldom};\n`);
  const run = (use: (seldom: (n: number) => number) => void): number => {
    const kept = createKeptCode({ main, folder: join(folder, "compiled"), outside: (name) => import(name) });
    use(kept.load(main)["seldom"] as (n: number) => number);
    kept.keep();
    const [file] = readdirSync(join(folder, "compiled"));
    return statSync(join(folder, "compiled", file!)).size;
  };
  const little = run(() => undefined);
  expect(run(() => undefined)).toBe(little);
  const more = run((seldom) => expect(seldom(1)).toBe(7_998_000));
  expect(more).toBeGreaterThan(little + 32 * 1024);
  expect(run(() => undefined)).toBe(more);
});

describe("compiled code is kept beside the code", () => {
  let copy = "";
  const run = () => {
    const { status, stdout } = spawnSync(process.execPath, [join(copy, "dist/cli.cjs"), "dialects"], {
      encoding: "utf8",
      cwd: copy,
      env: { ...process.env, CALLGATE_HOME: join(copy, "home") },
    });
    expect(status).toBe(0);
    return stdout;
  };
  const folder = () => join(copy, `dist/compiled/${process.version}-${process.arch}/dialects`);

  beforeAll(() => {
    copy = mkdtempSync(join(tmpdir(), "callgate-start-"));
    writeFileSync(join(copy, "package.json"), '{"type":"module"}');
    cpSync(dist, join(copy, "dist"), {
      recursive: true,
      filter: (path) => !path.startsWith(join(dist, "compiled")) && !path.endsWith(".d.ts"),
    });
  });

  test("and a folder that others can write is neither read nor written", () => {
    mkdirSync(folder(), { recursive: true });
    chmodSync(folder(), 0o777);
    run();
    expect(readdirSync(folder())).toEqual([]);
    chmodSync(folder(), 0o700);
  });

  test("and nobody but its owner can write it; what is damaged is compiled again", () => {
    const first = run();
    const kept = readdirSync(folder()).map((name) => join(folder(), name));
    expect(kept.length).toBeGreaterThan(3);
    for (const file of kept) expect(statSync(file).mode & 0o022, file).toBe(0);
    const times = kept.map((file) => statSync(file).mtimeMs);
    expect(run()).toBe(first);
    expect(kept.map((file) => statSync(file).mtimeMs)).toEqual(times);
    for (const file of kept) writeFileSync(file, readFileSync(file).subarray(0, 40));
    expect(run()).toBe(first);
    for (const file of kept) expect(statSync(file).size, file).toBeGreaterThan(40);
  });

  test("and a look at a command's help does not stand for the command", () => {
    const kept = () => readdirSync(join(copy, `dist/compiled/${process.version}-${process.arch}`));
    const { status } = spawnSync(process.execPath, [join(copy, "dist/cli.cjs"), "exec", "--help"], { cwd: copy });
    expect({ status, kept: kept().includes("exec") }).toEqual({ status: 0, kept: false });
  });

  test("and a session that changed a flag of V8 on its way keeps code that the next one can use", () => {
    const exec = () => {
      const words = ["exec", "--approval", "never", "--sandbox", "full-access", "run sleep 0.4"];
      const { status } = spawnSync(process.execPath, [join(copy, "dist/cli.cjs"), ...words], {
        cwd: copy,
        env: { ...process.env, CALLGATE_HOME: join(copy, "home") },
      });
      expect(status).toBe(0);
      const kept = join(copy, `dist/compiled/${process.version}-${process.arch}/exec`);
      return readdirSync(kept).map((name) => `${name} ${statSync(join(kept, name)).mtimeMs}`);
    };
    const first = exec();
    expect(first.length).toBeGreaterThan(3);
    expect(exec()).toEqual(first);
  });

  test.skipIf(!isRoot)("and whoever may not look into it starts as well (needs root)", () => {
    chmodSync(copy, 0o755);
    chmodSync(join(copy, "dist/compiled"), 0o700);
    const { status, stdout } = spawnSync(process.execPath, [join(copy, "dist/cli.cjs"), "dialects"], {
      encoding: "utf8",
      cwd: copy,
      uid: 65_534,
      gid: 65_534,
      env: { PATH: process.env["PATH"], HOME: copy },
    });
    expect({ status, lines: stdout.split("\n").length > 5 }).toEqual({ status: 0, lines: true });
  });
});
