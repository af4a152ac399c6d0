/**
 * Where held runs of a workspace lie, and whether there can be any. Keeping is renaming, so a run's folder
 * must lie on the same mount as the workspace, and where no command can get at it.
 */
import { createHash } from "node:crypto";
import { accessSync, chownSync, constants, lstatSync, mkdirSync, readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join, sep } from "node:path";
import type { Owner } from "../sandbox/owner.ts";
import { canReach } from "../sandbox/owner.ts";

export interface Place {
  /** All runs of this workspace. */
  readonly folder: string;
}

/** Why nothing can be held there, in words that follow "because". */
export interface NoPlace {
  readonly reason: string;
}

export interface PlaceOptions {
  readonly stateDir: string;
  readonly uid: number;
  readonly gid: number;
  /** Root runs commands in somebody else's workspace as its owner; then the runs are the owner's too. */
  readonly owner?: Owner | undefined;
}

/** The first root is the workspace, which the runs are filed under. */
export function findPlace(roots: readonly string[], options: PlaceOptions): Place | NoPlace {
  const [workspace] = roots;
  if (workspace === undefined || workspace === sep) return { reason: "no folder was granted for writing" };
  const mounts = readMounts();
  const obstacle = roots.map((root) => obstacleIn(root, workspace, mounts, options)).find((one) => one !== undefined);
  if (obstacle !== undefined) return { reason: obstacle };
  const here = mountOf(workspace, mounts);
  const folder = places(workspace, options).find((place) => isUsable(place, here, mounts, options));
  if (folder === undefined) return { reason: `no folder on the disk of ${workspace} can hold what it writes` };
  return { folder };
}

/** Where runs of this workspace lie already; nothing is made. */
export function existingPlaces(workspace: string, options: PlaceOptions): readonly string[] {
  return places(workspace, options).filter(isFolder);
}

/** Our state folder if it lies on the same disk; else beside the workspace; else in it, under a protected name. */
function places(workspace: string, { stateDir, uid, owner }: PlaceOptions): readonly string[] {
  const name = createHash("sha256").update(workspace).digest("hex").slice(0, 16);
  return [
    join(stateDir, "held", name),
    join(dirname(workspace), `.callgate-held-${owner?.uid ?? uid}`, name),
    join(workspace, ".callgate", "held"),
  ];
}

function isUsable(folder: string, here: Mount | undefined, mounts: readonly Mount[], options: PlaceOptions): boolean {
  const { owner, uid } = options;
  if (here === undefined || mountOf(nearest(folder), mounts) !== here) return false;
  if (owner !== undefined && !canReach(nearest(folder), owner)) return false;
  try {
    makeFolders(folder, owner);
    const { uid: whose } = lstatSync(folder);
    if (whose !== (owner?.uid ?? uid) || !lstatSync(dirname(folder)).isDirectory()) return false;
    accessSync(folder, constants.W_OK);
    return true;
  } catch {
    return false; // not ours to write: the next place
  }
}

/** Each new folder is for its owner alone. */
function makeFolders(folder: string, owner: Owner | undefined): void {
  if (lstatSync(folder, { throwIfNoEntry: false }) !== undefined) return;
  makeFolders(dirname(folder), owner);
  mkdirSync(folder, { mode: 0o700 });
  if (owner !== undefined) chownSync(folder, owner.uid, owner.gid);
}

function nearest(path: string): string {
  for (let at = path; ; at = dirname(at)) if (isFolder(at)) return at;
}

interface Mount {
  readonly at: string;
  readonly type: string;
}

/** The kernel's list; what is mounted later at one place lies on top. */
function readMounts(): readonly Mount[] {
  return readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .filter(Boolean)
    .map((line) => {
      const [before = "", after = ""] = line.split(" - ");
      const at = (before.split(" ")[4] ?? "").replaceAll(/\\(\d{3})/g, (_, octal: string) =>
        String.fromCharCode(Number.parseInt(octal, 8)),
      );
      return { at, type: after.split(" ")[0] ?? "" };
    });
}

function isBelow(path: string, folder: string): boolean {
  return folder === sep || path === folder || path.startsWith(`${folder}${sep}`);
}

function mountOf(path: string, mounts: readonly Mount[]): Mount | undefined {
  let found: Mount | undefined;
  for (const mount of mounts)
    if (isBelow(path, mount.at) && (found === undefined || mount.at.length >= found.at.length)) found = mount;
  return found;
}

/** File systems the kernel takes no upper folder on, or that cannot rename in place. */
const unfit = /^(?:overlay|aufs|nfs|cifs|smb|9p|fuse|vfat|msdos|exfat|ntfs|ecryptfs|iso9660|squashfs)/;

function obstacleIn(
  root: string,
  workspace: string,
  mounts: readonly Mount[],
  options: PlaceOptions,
): string | undefined {
  if (!isFolder(root)) return `${root} is one file, and only folders can be held`;
  const below = mounts.find(({ at }) => at !== root && isBelow(at, root));
  if (below !== undefined) return `another disk is mounted at ${below.at}`;
  const mount = mountOf(root, mounts);
  if (mount !== mountOf(workspace, mounts)) return `${root} lies on another disk than ${workspace}`;
  if (mount !== undefined && unfit.test(mount.type)) return `its file system (${mount.type}) cannot be held`;
  return foreignIn(root, options);
}

/** One user and one group exist in a sandbox: what belongs to others cannot be changed in place there. */
function foreignIn(root: string, { uid, gid, owner = { uid, gid } }: PlaceOptions): string | undefined {
  const isForeign = (path: string) => {
    const stat = lstatSync(path, { throwIfNoEntry: false });
    return stat !== undefined && (stat.uid !== owner.uid || stat.gid !== owner.gid);
  };
  const found = [root, ...readdirSync(root).map((name) => join(root, name))].find(isForeign);
  return found === undefined ? undefined : `${found} belongs to another user or group`;
}

/** A path below a file, or one that may not be looked at, is no folder. */
function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false;
  }
}
