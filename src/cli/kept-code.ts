/**
 * Loads the built command with the code that V8 compiled for it last time, on every version of Node. Node's own loader
 * compiles each module again at each start (before 22), and prepares a view of each built-in module that nobody looks
 * at: together half of what a short command costs.
 *
 * What is kept lies beside the code that it was made from. Compiled code is trusted like code, so it is only read from
 * a folder that belongs to the owner of the code (or to root) and that nobody else can write; without one, everything
 * is compiled as always. The bundler writes modules in one shape, which is all that is read here:
 * imports first, one list of exports last (test/cli/start.test.ts holds each built file to it).
 */

import { withFlagsOfStart } from "./v8-flags.ts";

/** What a module offers, by exported name. */
type Exports = Readonly<Record<string, unknown>>;

export interface KeptCode {
  /** A built file and what it imports, each once. */
  load(path: string): Exports;
  /** Writes what was compiled this time. To be called when everything has run: what ran is what is kept. */
  keep(): void;
}

export interface KeptCodeOptions {
  /** The file that is loaded first; its owner must own the kept code. */
  readonly main: string;
  /** The folder of kept code. It is made if it does not exist. */
  readonly folder: string;
  /** Imports what is not ours: packages, and files of users. */
  readonly outside: (name: string) => Promise<unknown>;
}

export function createKeptCode({ main, folder, outside }: KeptCodeOptions): KeptCode {
  // Not imported: each import of a built-in module costs a view of all it exports.
  const fs = process.getBuiltinModule("node:fs");
  const { dirname, join, basename } = process.getBuiltinModule("node:path");
  const vm = process.getBuiltinModule("node:vm");
  const modules = new Map<string, Exports>();
  const builtIns = new Map<string, unknown>();
  const scripts = new Map<string, LoadedScript>();
  const trusted = isTrusted();

  const load = (path: string): Exports => {
    const known = modules.get(path);
    if (known !== undefined) return known;
    const need = (name: string): unknown => (name.startsWith(".") ? load(join(dirname(path), name)) : builtIn(name));
    const later = async (name: string): Promise<unknown> =>
      /^\.\.?\//.test(name) ? need(name) : outside(String(name));
    const url = () => process.getBuiltinModule("node:url").pathToFileURL(path).href;
    const loaded = withFlagsOfStart(() => compile(path)(need, later, url));
    modules.set(path, loaded);
    return loaded;
  };

  /** Remembered, because functions of built-in modules that are used late are looked up at each use. */
  const builtIn = (name: string): unknown => {
    let found = builtIns.get(name);
    if (found === undefined) builtIns.set(name, (found = withFlagsOfStart(() => process.getBuiltinModule(name))));
    return found;
  };

  const compile = (path: string): ModuleFunction => {
    const place = nameOf(path);
    const kept = trusted ? read(place) : undefined;
    // A built file holds no other letters than ASCII (scripts/build-output.mjs).
    const text = kept?.text ?? toFunction(fs.readFileSync(path, "latin1"));
    const options = { filename: path, ...(kept && { cachedData: kept.compiled }) };
    const script = new vm.Script(text, options);
    const isUsed = kept !== undefined && script.cachedDataRejected !== true;
    scripts.set(place, {
      text,
      compile: () => script.createCachedData(),
      keptBytes: isUsed ? kept.compiled.length : 0,
    });
    // The script is the one function that toFunction writes.
    return script.runInThisContext() as ModuleFunction;
  };

  /** A file that was changed has another name here: V8 itself compares no more than the length. */
  const nameOf = (path: string): string => {
    const { size, mtimeMs } = fs.statSync(path);
    return join(folder, `${basename(path)}-${size}-${mtimeMs}`);
  };

  const read = (path: string): Kept | undefined => {
    try {
      return unpack(fs.readFileSync(path));
    } catch {
      return undefined; // never kept, or not for us to read
    }
  };

  function isTrusted(): boolean {
    try {
      const { uid } = fs.statSync(main);
      const found = fs.lstatSync(folder);
      return found.isDirectory() && (found.uid === uid || found.uid === 0) && (found.mode & 0o022) === 0;
    } catch {
      return false; // not there yet, or not for us to look into
    }
  }

  return {
    load,
    keep() {
      const isLongRun = process.uptime() > longRunSeconds;
      const perhapsMore = [...scripts].filter(([, { keptBytes }]) => keptBytes === 0 || isLongRun);
      if (perhapsMore.length === 0) return;
      try {
        fs.mkdirSync(folder, { recursive: true, mode: 0o755 });
        if (!isTrusted()) return;
        for (const [path, { text, compile: made, keptBytes }] of perhapsMore) {
          const part = `${path}.${process.pid}`;
          const compiled = withFlagsOfStart(made);
          if (keptBytes > 0 && compiled.length < keptBytes + worthKeepingBytes) continue;
          fs.writeFileSync(part, pack(text, compiled), { mode: 0o644 });
          fs.renameSync(part, path);
        }
      } catch {
        // A folder that cannot be written: the next start compiles again.
      }
    },
  };
}

/** A run that did little keeps little. One that took this long may look whether it did more: that takes a few milliseconds. */
const longRunSeconds = 1;
/** How much more V8 must have compiled for it to be kept. Compiling this much again takes about a millisecond. */
const worthKeepingBytes = 32 * 1024;

interface LoadedScript {
  /** The function that the file became. */
  readonly text: string;
  /** What V8 has compiled of it by now. */
  readonly compile: () => Buffer;
  /** How much of that was read at the start. */
  readonly keptBytes: number;
}

type ModuleFunction = (
  need: (name: string) => unknown,
  later: (name: string) => Promise<unknown>,
  url: () => string,
) => Exports;

/** What is kept of a file: the function that it became, and what V8 made of it. */
interface Kept {
  readonly text: string;
  readonly compiled: Buffer;
}

/** Two lengths, then what V8 made, which it wants at a multiple of eight, then the function. */
const headBytes = 8;

function pack(text: string, compiled: Buffer): Buffer {
  const head = Buffer.alloc(headBytes);
  head.writeUInt32LE(compiled.length, 0);
  head.writeUInt32LE(text.length, 4);
  return Buffer.concat([head, compiled, Buffer.from(text, "latin1")]);
}

function unpack(bytes: Buffer): Kept | undefined {
  if (bytes.length < headBytes) return undefined;
  const end = headBytes + bytes.readUInt32LE(0);
  if (bytes.length !== end + bytes.readUInt32LE(4)) return undefined; // cut off
  return { text: bytes.toString("latin1", end), compiled: bytes.subarray(headBytes, end) };
}

const importPattern = /\s*import(?:([^"'`;()]*?)from)?"([^"]+)";?/y;
const exportPattern = /^export\{([^{}]*)\};?\s*$/;
// The name of the file's source map: whoever wants maps gets Node's own loader (see start.ts).
const mapPattern = /\n\/\/# sourceMappingURL=\S+\s*$/;

/** A built module as a function that is given what it imports and returns what it exports. */
export function toFunction(built: string): string {
  const text = withoutMap(built);
  let start = text.startsWith("#!") ? text.indexOf("\n") : 0;
  let head = "";
  for (;;) {
    importPattern.lastIndex = start;
    const found = importPattern.exec(text);
    if (found === null) break;
    start = importPattern.lastIndex;
    head += importAsConst(found[1]?.trim(), found[2]!);
  }
  const tail = Math.max(start, text.lastIndexOf("export{"));
  const exported = exportPattern.exec(text.slice(tail));
  const body = exported === null ? text.slice(start) : text.slice(start, tail);
  const returned = exported === null ? "{}" : `{${exported[1]!.split(",").map(exportAsProperty).join(",")}}`;
  return `(function(__need,__later,__url){"use strict";${head}${withoutModuleSyntax(body)}\nreturn ${returned}})`;
}

/** Looked for near the end only: a pattern that ends in $ is tried at each place. */
function withoutMap(text: string): string {
  const last = text.lastIndexOf("\n//# sourceMappingURL=");
  return last !== -1 && mapPattern.test(text.slice(last)) ? text.slice(0, last) : text;
}

/** `a`, `{a as b}`, `a,{b}` or `* as a`; of a built-in module the default is the module. */
function importAsConst(names: string | undefined, from: string): string {
  const module = `__need(${JSON.stringify(from)})`;
  if (names === undefined) return `${module};`;
  if (names.startsWith("*")) return `const ${names.replace(/^\*\s*as\s+/, "")}=${module};`;
  const brace = names.indexOf("{");
  const ownDefault = (brace === -1 ? names : names.slice(0, brace)).replace(",", "").trim();
  const list = brace === -1 ? "" : names.slice(brace);
  if (loadedWhenCalled.has(from) && list !== "") return functionsOf(list, module);
  const named = list === "" ? "" : `const${list.replace(/\s+as\s+/g, ":")}=${module};`;
  if (ownDefault === "") return named;
  return `const ${ownDefault}=${module}${from.startsWith(".") ? ".default" : ""};${named}`;
}

/**
 * Parts of Node that take milliseconds to load, and that many a run never calls. All that is imported of them are functions
 * (test/cli/start.test.ts), each of which loads its module when it is called.
 */
export const loadedWhenCalled: ReadonlySet<string> = new Set(["node:crypto", "node:timers/promises", "node:zlib"]);

function functionsOf(list: string, module: string): string {
  return list
    .replace(/[{}]/g, "")
    .split(",")
    .map((name) => {
      const [theirs = "", ours = theirs] = name.trim().split(/\s+as\s+/);
      return `const ${ours}=(...a)=>${module}.${theirs}(...a);`;
    })
    .join("");
}

function exportAsProperty(name: string): string {
  const [inside = "", outside = inside] = name.trim().split(/\s+as\s+/);
  return inside === outside ? inside : `${outside}:${inside}`;
}

/** What the build marked (scripts/build.mjs): a dynamic import is a call of ours here, because kept code cannot import. */
function withoutModuleSyntax(body: string): string {
  return body.replaceAll("import(/*later*/", "__later(").replaceAll("import.meta.url", "__url()");
}
