/**
 * Turns a folder of files into tools. The path of a file is the name of its tool, so dropping a file
 * in is enough to add one.
 */
import { checkOptions, optionsShape } from "../base/shape.ts";
import { readFileSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { createRequire } from "node:module";
import { basename, dirname, extname, join, relative } from "node:path";
import { pathToFileURL } from "node:url";
import { compileFunction } from "node:vm";
import { isObject } from "../base/json.ts";
import { checkDeclaration, fromObject, type ToolObject } from "./define.ts";
import { folderName, partFault } from "../spec/name.ts";
import type { AnyTool, Logger } from "../spec/tool.ts";

/** Options of `loadTools`. */
export interface LoadOptions {
  /** A prefix for every name; empty for none. */
  readonly prefix?: string;
  /** The group of a file in nested folders: the whole path (`math_deep`), or only the innermost folder (`deep`). */
  readonly group?: "path" | "innermost";
  /** Told about files that are refused. */
  readonly log?: Logger;
}

/** The tools found in a folder, and the files that were refused. */
export interface LoadedTools {
  /** The tools in the order of their names. */
  readonly tools: readonly AnyTool[];
  /** Names by group. Files at the top belong to the group "". */
  readonly groups: ReadonlyMap<string, readonly string[]>;
  /** Files that gave no tool, with the reason. They do not affect the others. */
  readonly refused: readonly Refusal[];
}

/** A file of the folder that is not a tool, and why. */
export interface Refusal {
  readonly file: string;
  readonly reason: string;
}

interface Found {
  readonly file: string;
  readonly groups: readonly string[];
  readonly action: string;
}

/** Whether Node runs TypeScript by itself. If it does not, a TypeScript file is refused with that reason. */
const runsTypeScript = Boolean((process as { features?: { typescript?: unknown } }).features?.typescript);
const endings = new Set([".js", ".mjs", ".cjs", ".ts", ".mts"]);

const loadToolsShape = optionsShape<LoadOptions>({
  prefix: "string",
  group: { oneOf: ["path", "innermost"] },
  log: { methods: ["info", "warn"], words: "a logger with debug, info, warn and error" },
});

/** Every tool in a folder and the folders below it. The files are imported, so load only folders you trust. */
export async function loadTools(dir: string, options: LoadOptions = {}): Promise<LoadedTools> {
  checkOptions("loadTools", options, loadToolsShape);
  const { prefix = "internal", group = "path", log } = options;
  const naming = { prefix, group, note: (message: string, file: string) => log?.warn(message, { file }) };
  const refused: Refusal[] = [];
  const tools = new Map<string, { readonly tool: AnyTool; readonly file: string }>();
  for (const found of await findFiles(dir, [], refused, dir)) {
    try {
      const tool = await loadFile(found, naming);
      const other = tools.get(tool.name);
      if (other) throw new TypeError(`'${tool.name}' is already defined by ${relative(dir, other.file)}`);
      tools.set(tool.name, { tool, file: found.file });
      log?.debug(`loaded tool ${tool.name}`, { file: found.file });
    } catch (error) {
      // A user's file may throw anything at all. The failure is reported with the file's name.
      refused.push({ file: found.file, reason: error instanceof Error ? error.message : String(error) });
    }
  }
  for (const { file, reason } of refused) log?.warn(`refused tool file: ${reason}`, { file });
  const sorted = [...tools.values()].map(({ tool }) => tool).toSorted((a, b) => (a.name < b.name ? -1 : 1));
  log?.info(`loaded ${sorted.length} tools`, { dir });
  return { tools: sorted, groups: groupsOf(sorted), refused };
}

async function findFiles(
  dir: string,
  groups: readonly string[],
  refused: Refusal[],
  root: string,
): Promise<readonly Found[]> {
  const entries = await readdir(dir, { withFileTypes: true }).catch((cause: NodeJS.ErrnoException) => {
    if (dir === root)
      throw new TypeError(`cannot read the tools folder ${dir}: ${cause.code ?? cause.message}`, { cause });
    refused.push({ file: dir, reason: `cannot be read: ${cause.code ?? cause.message}` });
    return [];
  });
  const found: Found[] = [];
  for (const entry of entries.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
    const file = join(dir, entry.name);
    const action = basename(entry.name, extname(entry.name));
    if (entry.name.startsWith(".") || entry.name === "node_modules") continue;
    if (entry.isDirectory()) found.push(...(await findFiles(file, [...groups, entry.name], refused, root)));
    else if (
      endings.has(extname(entry.name)) &&
      action !== "index" &&
      !entry.name.endsWith(".d.ts") &&
      !action.endsWith(".test")
    )
      found.push({ file, groups, action });
  }
  return found;
}

interface Naming extends Required<Pick<LoadOptions, "prefix" | "group">> {
  note(message: string, file: string): void;
}

async function loadFile({ file, groups: folders, action }: Found, naming: Naming): Promise<AnyTool> {
  const { prefix } = naming;
  const groups = naming.group === "innermost" ? folders.slice(-1) : folders;
  for (const part of [...groups, action]) {
    const fault = partFault(part, prefix);
    if (fault) throw new TypeError(fault);
  }
  if (/\.m?ts$/.test(file) && !runsTypeScript)
    throw new TypeError("this Node cannot run TypeScript by itself; save it as .js or .mjs");
  const exported = await importTool(file);
  const given = exported["name"];
  if (prefix !== "" && given === `${prefix}_${action}`)
    naming.note(`'${given}' carries the prefix '${prefix}' itself; it was taken once, as meant`, file);
  else if (typeof given === "string" && given !== action) throw new TypeError(nameMismatch(given, action, prefix));
  const name = folderName(prefix, groups, action);
  const group = groups.length > 0 ? { group: groups.join("_") } : {};
  // What a file exports is checked here. Both `handler` and `run` are accepted.
  if (typeof exported["handler"] === "function")
    return fromObject({ ...(exported as unknown as ToolObject), ...group, name });
  return checkDeclaration({ ...(exported as unknown as AnyTool), ...group, name });
}

/** `export default`, `export const tool`, or `module.exports`. */
async function importTool(file: string): Promise<Record<string, unknown>> {
  const module = await importFile(file);
  for (const candidate of [module["default"], module["tool"], module["module.exports"], module]) {
    if (isObject(candidate) && (typeof candidate["handler"] === "function" || typeof candidate["run"] === "function"))
      return candidate;
  }
  throw new TypeError(
    "exports no tool: use export default (or module.exports) with description, inputSchema and handler, or a defineTool",
  );
}

/** In a project of ES modules, a file that says `module.exports` is loaded as CommonJS all the same. */
async function importFile(file: string): Promise<Record<string, unknown>> {
  try {
    return (await import(pathToFileURL(file).href)) as Record<string, unknown>;
  } catch (error) {
    const isCommonJs =
      error instanceof ReferenceError &&
      /^(module|exports|require) is not defined in ES module scope/.test(error.message);
    if (!isCommonJs || !file.endsWith(".js")) throw error;
    const module = { exports: {} as Record<string, unknown> };
    const wrapped = compileFunction(
      readFileSync(file, "utf8"),
      ["module", "exports", "require", "__filename", "__dirname"],
      {
        filename: file,
      },
    );
    wrapped(module, module.exports, createRequire(file), file, dirname(file));
    return { default: module.exports };
  }
}

function nameMismatch(given: string, action: string, prefix: string): string {
  return (
    partFault(given, prefix) ??
    `the file is '${action}' but its tool is named '${given}'; the file's name is the action`
  );
}

function groupsOf(tools: readonly AnyTool[]): ReadonlyMap<string, readonly string[]> {
  const groups = new Map<string, string[]>();
  for (const { name, group = "" } of tools) {
    const names = groups.get(group);
    if (names) names.push(name);
    else groups.set(group, [name]);
  }
  return groups;
}
