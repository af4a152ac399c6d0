/**
 * Nothing that a project brings (settings, tools, MCP servers, rules, hooks, instructions) takes
 * effect before the user has trusted it. Trust is bound to the content: one changed byte asks again.
 */
import { checkOptions, optionsShape } from "../base/shape.ts";
import { createHash } from "node:crypto";
import {
  closeSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  writeSync,
} from "node:fs";
import { join, relative } from "node:path";
import { isObject, parseJson } from "../base/json.ts";
import { isInside, statOf } from "./paths.ts";

/** What a project can bring, as paths below it. A folder counts with everything in it. */
const projectPaths = [".callgate", "callgate.toml", ".mcp.json", "AGENTS.md", "CLAUDE.md"] as const;
const maxFiles = 2_000;
/** A deeper path means that a folder links to itself. The kernel follows 40 links, and then only says that they are too many. */
const maxDepth = 32;

/** Whether a workspace is trusted, and what it brings that would run or change what may run. */
export interface TrustStatus {
  readonly workspace: string;
  /** True if nothing there needs trust, or all of it is trusted. */
  readonly trusted: boolean;
  /** The hash of everything the project brings, by path and content. */
  readonly hash: string;
  readonly files: readonly string[];
  /** New or changed since it was trusted; all of them if it never was. */
  readonly changed: readonly string[];
}

/** Which workspaces the user trusts, and with which content. */
export interface Trust {
  status(workspace: string): TrustStatus;
  /** Trusts what was shown. The hash must still be that of the content. */
  grant(workspace: string, hash: string): boolean;
  revoke(workspace: string): void;
  /** Whether exactly this content of this file is trusted. */
  isTrusted(path: string, content: string): boolean;
}

interface Entry {
  readonly hash: string;
  readonly files: Readonly<Record<string, string>>;
}

const trustShape = optionsShape<{ readonly stateDir: string }>({ stateDir: "string" }, "stateDir");

/** The list of trusted workspaces, kept in `stateDir`. */
export function createTrust(options: { readonly stateDir: string }): Trust {
  checkOptions("createTrust", options, trustShape);
  const file = join(options.stateDir, "trust.json");
  const load = () => readEntries(file);
  const status = (workspace: string): TrustStatus => {
    const root = realOr(workspace);
    const now = hashProject(root);
    const known = load().get(root);
    const files = [...now.keys()];
    const changed = files.filter((name) => known?.files[name] !== now.get(name) || now.get(name) === outside);
    const gone = Object.keys(known?.files ?? {}).filter((name) => !now.has(name));
    return {
      workspace: root,
      trusted: files.length === 0 || (changed.length === 0 && gone.length === 0),
      hash: hashAll(now),
      files,
      changed: [...changed, ...gone],
    };
  };
  const change = (workspace: string, entry: Entry | undefined) => {
    const entries = new Map(load());
    if (entry === undefined) entries.delete(workspace);
    else entries.set(workspace, entry);
    writeEntries(options.stateDir, file, entries);
  };
  return {
    status,
    grant(workspace, hash) {
      const root = realOr(workspace);
      const now = hashProject(root);
      if (hashAll(now) !== hash) return false;
      change(root, { hash, files: Object.fromEntries(now) });
      return true;
    },
    revoke: (workspace) => change(realOr(workspace), undefined),
    isTrusted(path, content) {
      const real = realOr(path);
      const digest = sha256(content);
      return [...load()].some(
        ([root, entry]) =>
          Object.hasOwn(entry.files, relative(root, real)) && entry.files[relative(root, real)] === digest,
      );
    },
  };
}

/** The target of a link out of the project can change without a trace here, so it is never trusted. */
const outside = "leads out of the project";

/** A link counts with the content it leads to, because that is what a reader gets. */
function hashProject(root: string): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  const waiting: string[] = [...projectPaths];
  for (let name = waiting.pop(); name !== undefined; name = waiting.pop()) {
    const path = join(root, name);
    const link = lstatSync(path, { throwIfNoEntry: false });
    if (link === undefined) continue;
    if (found.size >= maxFiles)
      throw new Error(`${root} brings more than ${maxFiles} files of its own: it cannot be trusted as a whole`);
    if (name.split("/").length > maxDepth)
      throw new Error(`${root} brings a folder that links to itself (${name}): it cannot be trusted as a whole`);
    if (link.isSymbolicLink() && !isInside(realOr(path), root)) {
      found.set(name, outside);
      continue;
    }
    // A link that leads to itself leads nowhere.
    const stats = link.isSymbolicLink() ? statOf(path) : link;
    if (stats?.isDirectory() === true) waiting.push(...readdirSync(path).map((child) => `${name}/${child}`));
    else
      found.set(name, stats?.isFile() === true ? sha256(readFileSync(path)) : `not a file (${link.mode.toString(8)})`);
  }
  return new Map([...found].toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

function hashAll(files: ReadonlyMap<string, string>): string {
  return sha256(JSON.stringify([...files]));
}

function sha256(value: string | Uint8Array): string {
  return createHash("sha256").update(value).digest("hex");
}

function realOr(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    // It does not exist (any more), so only its name is left.
    return path;
  }
}

/** If the file cannot be read, nothing is trusted. */
function readEntries(file: string): ReadonlyMap<string, Entry> {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch {
    return new Map();
  }
  const parsed = parseJson(text);
  if (!parsed.ok || !isObject(parsed.value)) return new Map();
  return new Map(
    Object.entries(parsed.value).flatMap(([root, entry]) => (isEntry(entry) ? [[root, entry] as const] : [])),
  );
}

function isEntry(value: unknown): value is Entry {
  return (
    isObject(value) &&
    typeof value["hash"] === "string" &&
    isObject(value["files"]) &&
    Object.values(value["files"]).every((item) => typeof item === "string")
  );
}

function writeEntries(folder: string, file: string, entries: ReadonlyMap<string, Entry>): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const temp = `${file}.${process.pid}`;
  const fd = openSync(temp, "w", 0o600);
  writeSync(fd, `${JSON.stringify(Object.fromEntries(entries), null, 2)}\n`);
  fsyncSync(fd);
  closeSync(fd);
  renameSync(temp, file);
}
