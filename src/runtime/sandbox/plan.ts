/**
 * From a grant and the present state of the disk, this makes an ordered list of what each path becomes
 * inside. Every backend that works with paths uses this one list, so that they agree on what is
 * confined.
 */
import { readdirSync, statSync, type Stats } from "node:fs";
import { basename, dirname, join, resolve, sep } from "node:path";
import type { Grant } from "../../spec/access.ts";
import { gitFolders } from "./repositories.ts";
import { createDiskChecks, type DiskChecks } from "./disk-checks.ts";
import { pathsBelow, resolved } from "./existing.ts";

/**
 * `write`: the host's, and can be changed. `read`: the host's, read-only. `hide`: nothing to see.
 * `temp`: the sandbox's own folder. Later entries lie on top of earlier ones.
 */
export interface PlanEntry {
  readonly path: string;
  readonly use: "write" | "read" | "hide" | "temp";
  readonly kind: "file" | "directory";
  /** Where it comes from, if not from the same path of the host. */
  readonly source?: string;
}

export interface Plan {
  /** The whole disk is writable (full-access). */
  readonly everything: boolean;
  readonly entries: readonly PlanEntry[];
  /** The writable roots, resolved. None is inside another. */
  readonly roots: readonly string[];
  /** Repositories below the roots are protected, and new ones are moved aside. */
  readonly guardsRepositories?: boolean;
  /** Protected names that no mount can hold: missing ones, and links. They are watched instead (see guard.ts). */
  readonly watched: readonly string[];
  /** Each function finds out again which of the names below one root may exist. */
  readonly names?: readonly (() => ReadonlySet<string>)[];
  /** Those of the watched names that are links. */
  readonly links?: readonly string[];
  /** The `.git` of each repository below the roots. */
  readonly repositories?: readonly string[] | undefined;
  /** Where the command starts, with links resolved. */
  readonly here?: string | undefined;
}

export interface PlanOptions {
  readonly cwd: string;
  /** The shared temporary folder that a private one replaces. Undefined if it and the run folder stay the host's. */
  readonly tempDir: string | undefined;
  /** Read-only and visible although the folder around it is the sandbox's own (the launcher, the proxy's socket). */
  readonly visible?: readonly VisibleFile[];
  /** Sockets of the host that are hidden, wherever they are. */
  readonly sockets: readonly string[];
  /** Finds the `.git` of repositories below the given writable folders. */
  readonly repositories?: (roots: readonly string[]) => readonly string[];
  /** Files of programs that may not be started. */
  readonly programs?: readonly string[];
  /** Our own folders, which are hidden. */
  readonly own?: OwnFolders;
  /** How paths become hidden entries. Left out: by looking at the disk now. */
  readonly hide?: (paths: readonly string[]) => readonly PlanEntry[];
  /** Looks at the disk for the plan, and can do so again. Left out: looks at it now. */
  readonly disk?: DiskChecks;
}

export interface OwnFolders {
  readonly folders: readonly string[];
  /** The folder of outputs kept for whoever runs this command. It may be read, wherever it is. */
  readonly kept?: string;
}

export interface VisibleFile {
  readonly path: string;
  readonly source: string;
}

export function planMounts(grant: Grant, given: PlanOptions): Plan {
  const { disk = createDiskChecks() } = given;
  const [options, real] = [{ ...given, disk }, disk.real];
  const hide = (paths: readonly string[]) =>
    (given.hide ?? hiddenEntries)(paths).flatMap((one) => asItIs(one, disk.lstat(one.path)));
  const wanted = grant.policy === "full-access" ? [sep] : grant.write;
  const writes = wanted.flatMap((path) => real(path) ?? []);
  const roots = outermost(writes);
  const everything = roots.includes(sep);
  const inside = (path: string) => roots.some((root) => contains(root, path));
  const entries: PlanEntry[] = roots.filter((root) => root !== sep).flatMap((root) => entry(root, "write", disk));
  const guarded = everything
    ? { entries: [], watched: [], links: [], names: [] }
    : protections(grant, roots, writes, options);
  entries.push(...guarded.entries);
  if (!everything) {
    const made = wanted
      .filter((path) => real(path) === undefined && !inside(path))
      .flatMap((path) => toBeMade(path, inside, disk));
    entries.push(...made);
    const opened = new Set(made.filter(({ use }) => use === "write").map(({ path }) => path));
    if (options.tempDir !== undefined)
      entries.push(...ownPlaces(options, options.tempDir, (path) => inside(path) || opened.has(path)));
    // A socket in a writable root is the user's own (a dev server's), and stays visible.
    const isWorkplace = (path: string) => inside(path) || [options.cwd, ...roots].some((one) => contains(path, one));
    entries.push(...hide(options.sockets.filter((path) => !isWorkplace(path))));
  }
  entries.push(...hide([...grant.mask, ...(options.programs ?? [])]), ...ownEntries(roots, options, hide));
  return {
    ...guarded, // its entries are replaced below
    everything,
    roots,
    entries: layered(entries),
    here: real(options.cwd),
    guardsRepositories: !everything && protectsGit(grant),
  };
}

type Planning = PlanOptions & { readonly disk: DiskChecks };

/** More mounts than this would cost more than the one new file is worth. */
const maxSiblings = 300;

/**
 * To create one new thing, its folder must be writable. What is in it already stays read-only, unless
 * it was granted too.
 */
function toBeMade(path: string, isGranted: (path: string) => boolean, disk: DiskChecks): readonly PlanEntry[] {
  disk.serveOnce(); // each thing beside it is a mount of its own
  const folder = resolved(dirname(path));
  if (folder === undefined || folder === sep) return [];
  const siblings = readdirSync(folder, { withFileTypes: true }).filter((one) => !one.isSymbolicLink());
  if (siblings.length > maxSiblings) return [];
  const paths = siblings.map(({ name }) => join(folder, name));
  return [
    ...entry(folder, "write", disk),
    ...paths.flatMap((one) => entry(one, isGranted(one) ? "write" : "read", disk)),
  ];
}

/** The temporary folder and the run folder become the sandbox's own. What must be visible below them is put back. */
function ownPlaces(
  { cwd, visible = [], disk }: Planning,
  tempDir: string,
  writable: (path: string) => boolean,
): readonly PlanEntry[] {
  const { real } = disk;
  const temp = real(tempDir);
  const own = [temp, real("/run")].filter((path) => path !== undefined).filter((path) => !writable(path));
  const shadowed = (path: string) => own.some((place) => contains(place, path));
  // The resolver's file is often in the run folder. Without it, granted hosts could not be looked up.
  const needed = [cwd, "/etc/resolv.conf"].flatMap((path) => real(path) ?? []);
  return [
    ...own.map((path): PlanEntry => ({ path, use: path === temp ? "temp" : "hide", kind: "directory" })),
    ...needed.filter((path) => shadowed(path) && !writable(path)).flatMap((path) => entry(path, "read", disk)),
    ...visible
      .filter(({ path, source }) => path !== source || shadowed(path))
      .map((file): PlanEntry => ({ ...file, use: "read", kind: "file" })),
  ];
}

/**
 * A command may read none of our own files, except a workspace inside our folders (a demo's) and what
 * was kept for it.
 */
function ownEntries(
  roots: readonly string[],
  { cwd, own, disk }: Planning,
  hide: (paths: readonly string[]) => readonly PlanEntry[],
): readonly PlanEntry[] {
  if (own === undefined) return [];
  const { real } = disk;
  const here = real(cwd);
  const folders = hide(own.folders).filter(({ path }) => path !== here && !roots.includes(path));
  const holding = (path: string) => folders.find((folder) => contains(folder.path, path))?.path;
  const isOpen = (path: string, folder: string) => roots.some((root) => contains(folder, root) && contains(root, path));
  const shown = [here, own.kept === undefined ? undefined : real(own.kept)].filter((path) => path !== undefined);
  return [
    ...folders,
    ...shown
      .filter((path) => {
        const folder = holding(path);
        return folder !== undefined && !isOpen(path, folder);
      })
      .flatMap((path) => entry(path, "read", disk)),
  ];
}

interface Protections extends Pick<Plan, "repositories"> {
  readonly entries: PlanEntry[];
  readonly watched: string[];
  readonly links: string[];
  readonly names: (() => ReadonlySet<string>)[];
}

function protectsGit({ protect }: Grant): boolean {
  return protect.some((name) => basename(name) === ".git");
}

/** What was granted by its own name inside a protected place stays open. */
function protections(
  grant: Grant,
  roots: readonly string[],
  writes: readonly string[],
  { repositories: find, disk }: Planning,
): Protections {
  const repositories = protectsGit(grant) ? find?.(roots) : undefined;
  const found: Protections = { entries: [], watched: [], links: [], names: [], repositories };
  const inner = writes.filter((path) => !roots.includes(path));
  for (const root of roots.filter((path) => disk.stat(path)?.isDirectory() === true)) {
    const all = [...pathsBelow(root, grant.protect), ...pathsBelow(root, repositories ?? [])];
    const paths = all.filter((path) => !grant.write.includes(path));
    const names = disk.names(paths);
    const there = names();
    found.names.push(names);
    for (const path of paths) {
      if (there.has(path)) protect(root, path, found, disk);
      else found.watched.push(path);
      found.entries.push(...inner.filter((one) => contains(path, one)).flatMap((one) => entry(one, "write", disk)));
    }
  }
  return found;
}

function protect(root: string, path: string, found: Protections, disk: DiskChecks): void {
  const stat = disk.lstat(path);
  if (stat === undefined || stat.isSymbolicLink()) found.watched.push(path);
  if (stat === undefined) return;
  if (stat.isSymbolicLink()) found.links.push(path);
  // Each folder on the way becomes its own mount point, because a mount point cannot be renamed away.
  for (let parent = dirname(path); contains(root, parent) && parent !== root; parent = dirname(parent)) {
    found.entries.push({ path: parent, use: "write", kind: "directory" });
  }
  const real = disk.real(path);
  if (real === undefined) return;
  found.entries.push(...entry(real, "read", disk));
  if (stat.isFile() && path.endsWith(`${sep}.git`)) {
    disk.serveOnce(); // the content of the file decides, and it is not looked at again
    found.entries.push(
      ...gitFolders(path)
        .filter((folder) => contains(root, folder))
        .flatMap((folder) => entry(folder, "read", disk)),
    );
  }
}

/** Those of these paths that exist, with their real type. */
export function hiddenEntries(paths: readonly string[]): readonly PlanEntry[] {
  return paths.flatMap(hidden);
}

/** What was looked at up to a second ago may be gone by now, or something else. */
function asItIs(one: PlanEntry, seen: Stats | undefined): readonly PlanEntry[] {
  if (seen === undefined) return [];
  const isSame = !seen.isSymbolicLink() && seen.isDirectory() === (one.kind === "directory");
  return isSame ? [one] : hidden(one.path);
}

function hidden(path: string): readonly PlanEntry[] {
  const real = resolved(path);
  return real === undefined || real === sep ? [] : entry(real, "hide");
}

function entry(path: string, use: PlanEntry["use"], disk?: DiskChecks): readonly PlanEntry[] {
  const stat = disk === undefined ? statSync(path, { throwIfNoEntry: false }) : disk.stat(path);
  return stat === undefined ? [] : [{ path, use, kind: stat.isDirectory() ? "directory" : "file" }];
}

const strictness = { temp: 0, write: 1, read: 2, hide: 3 } as const;

/** Shallow paths first, so that the more specific one wins. Of two uses of one path, the stricter one stays. */
function layered(entries: readonly PlanEntry[]): readonly PlanEntry[] {
  const byPath = new Map<string, PlanEntry>();
  for (const one of entries) {
    const other = byPath.get(one.path);
    if (other === undefined || strictness[one.use] > strictness[other.use]) byPath.set(one.path, one);
  }
  const depth = (path: string) => path.split(sep).length;
  const ordered = [...byPath.values()].toSorted((a, b) => depth(a.path) - depth(b.path) || (a.path < b.path ? -1 : 1));
  const cover = (path: string) => ordered.findLast((other) => other.path !== path && contains(other.path, path))?.use;
  // What is inside an empty folder of the sandbox's own is hidden already.
  return ordered.filter(({ path, use }) => use !== "hide" || !["hide", "temp"].includes(cover(path) ?? "write"));
}

/** Compares whole names. It is on the hot path of every command, so a path is taken apart only if it may climb. */
export function contains(folder: string, path: string): boolean {
  const plain = path.includes("..") ? resolve(path) : path;
  return plain === folder || folder === sep || (plain.startsWith(folder) && plain[folder.length] === sep);
}

function outermost(paths: readonly string[]): readonly string[] {
  const all = [...new Set(paths)];
  return all.filter((path) => !all.some((other) => other !== path && contains(other, path)));
}

/** Something of the host's /dev is shown in the sandbox's own: a workspace in /dev/shm. */
export function showsDevices({ entries }: Plan): boolean {
  return entries.some(({ path }) => contains("/dev", path));
}

export function writablePlaces({ everything, entries }: Plan): readonly string[] {
  if (everything) return [sep];
  return entries.filter(({ use }) => use === "write" || use === "temp").map(({ path }) => path);
}
