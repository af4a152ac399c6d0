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

/** What a module offers, by exported name. */
type Exports = Readonly<Record<string, unknown>>;

export interface KeptCode {
  /** A built file and what it imports, each once. */
  load(path: string): Exports;
  /** Writes what had to be compiled this time. To be called when everything has run: what ran is what is kept. */
  keep(): void;
}

export interface KeptCodeOptions {
  /** The file that is loaded first; its owner must own the kept code. */
  readonly main: string;
  /** For kept code: made if it is not there. */
  readonly folder: string;
  /** Imports what is not ours: packages, and files of users. */
  readonly outside: (name: string) => Promise<unknown>;
}

export function createKeptCode({ main, folder, outside }: KeptCodeOptions): KeptCode {
  // Not imported: each import of a built-in module costs a view of all it exports.
  const fs = process.getBuiltinModule("node:fs");
  const { dirname, join, basename } = process.getBuiltinModule("node:path");
  const { pathToFileURL } = process.getBuiltinModule("node:url");
  const vm = process.getBuiltinModule("node:vm");
  const modules = new Map<string, Exports>();
  const fresh = new Map<string, InstanceType<typeof vm.Script>>();
  const trusted = isTrusted();

  const load = (path: string): Exports => {
    const known = modules.get(path);
    if (known !== undefined) return known;
    const need = (name: string): unknown =>
      name.startsWith(".") ? load(join(dirname(path), name)) : process.getBuiltinModule(name);
    const later = async (name: string): Promise<unknown> =>
      /^\.\.?\//.test(name) ? need(name) : outside(String(name));
    const loaded = compile(path)(need, later, pathToFileURL(path).href);
    modules.set(path, loaded);
    return loaded;
  };

  const compile = (path: string): ModuleFunction => {
    const kept = nameOf(path);
    const cachedData = trusted ? read(kept) : undefined;
    const script = new vm.Script(toFunction(fs.readFileSync(path, "utf8")), {
      filename: path,
      ...(cachedData === undefined ? {} : { cachedData }),
    });
    if (cachedData === undefined || script.cachedDataRejected === true) fresh.set(kept, script);
    // The script is the one function that toFunction writes.
    return script.runInThisContext() as ModuleFunction;
  };

  /** A file that was changed has another name here: V8 itself compares no more than the length. */
  const nameOf = (path: string): string => {
    const { size, mtimeMs } = fs.statSync(path);
    return join(folder, `${basename(path)}-${size}-${mtimeMs}`);
  };

  const read = (path: string): Buffer | undefined => {
    try {
      return fs.readFileSync(path);
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
      if (fresh.size === 0) return;
      // As it is at the start: code that was kept under another flag is refused by the next run (see small-heap.ts).
      process.getBuiltinModule("node:v8").setFlagsFromString("--semi-space-growth-factor=2");
      try {
        fs.mkdirSync(folder, { recursive: true, mode: 0o755 });
        if (!isTrusted()) return;
        for (const [path, script] of fresh) {
          const part = `${path}.${process.pid}`;
          fs.writeFileSync(part, script.createCachedData(), { mode: 0o644 });
          fs.renameSync(part, path);
        }
      } catch {
        // A folder that cannot be written: the next start compiles again.
      }
    },
  };
}

type ModuleFunction = (
  need: (name: string) => unknown,
  later: (name: string) => Promise<unknown>,
  url: string,
) => Exports;

const importPattern = /\s*import(?:([^"'`;()]*?)from)?"([^"]+)";?/y;
const exportPattern = /^export\{([^{}]*)\};?\s*$/;

/** A built module as a function that is given what it imports and returns what it exports. */
export function toFunction(text: string): string {
  let start = text.startsWith("#!") ? text.indexOf("\n") : 0;
  let head = "";
  for (;;) {
    importPattern.lastIndex = start;
    const found = importPattern.exec(text);
    if (found === null) break;
    start = importPattern.lastIndex;
    head += importAsConst(found[1]?.trim(), found[2]!);
  }
  // Looked for near the end only: a pattern that ends in $ is tried at each place.
  const tail = Math.max(start, text.lastIndexOf("export{"));
  const exported = exportPattern.exec(text.slice(tail));
  const body = exported === null ? text.slice(start) : text.slice(start, tail);
  const returned = exported === null ? "{}" : `{${exported[1]!.split(",").map(exportAsProperty).join(",")}}`;
  return `(function(__need,__later,__url){"use strict";${head}${withoutModuleSyntax(body)}\nreturn ${returned}})`;
}

/** `a`, `{a as b}`, `a,{b}` or `* as a`; of a built-in module the default is the module. */
function importAsConst(names: string | undefined, from: string): string {
  const module = `__need(${JSON.stringify(from)})`;
  if (names === undefined) return `${module};`;
  if (names.startsWith("*")) return `const ${names.replace(/^\*\s*as\s+/, "")}=${module};`;
  const brace = names.indexOf("{");
  const ownDefault = (brace === -1 ? names : names.slice(0, brace)).replace(",", "").trim();
  const named = brace === -1 ? "" : `const${names.slice(brace).replace(/\s+as\s+/g, ":")}=${module};`;
  if (ownDefault === "") return named;
  return `const ${ownDefault}=${module}${from.startsWith(".") ? ".default" : ""};${named}`;
}

function exportAsProperty(name: string): string {
  const [inside = "", outside = inside] = name.trim().split(/\s+as\s+/);
  return inside === outside ? inside : `${outside}:${inside}`;
}

/** What the build marked (scripts/build.mjs): a dynamic import is a call of ours here, because kept code cannot import. */
function withoutModuleSyntax(body: string): string {
  return body.replaceAll("import(/*later*/", "__later(").replaceAll("import.meta.url", "__url");
}
