/**
 * Where the held runs of a workspace are stored, and whether that is possible. Keeping a file means
 * renaming it, so a run's folder must be on the same mount as the workspace, and where no command can
 * reach it.
 */
import { createHash } from "node:crypto";
import { accessSync, chownSync, constants, lstatSync, mkdirSync, readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join, sep } from "node:path";
import type { Owner } from "../sandbox/owner.ts";
import { canReach } from "../sandbox/owner.ts";

export interface Place {
  /** The folder of all runs of this workspace. */
  readonly folder: string;
}

/** Why nothing can be held there, in words that can follow "because". */
export interface NoPlace {
  readonly reason: string;
}

export interface PlaceOptions {
  readonly stateDir: string;
  readonly uid: number;
  readonly gid: number;
  /** In somebody else's workspace, root runs commands as its owner. The runs then belong to the owner too. */
  readonly owner?: Owner | undefined;
}

/** The first root is the workspace, under which the runs are filed. */
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

/** Where runs of this workspace are stored already. Nothing is created. */
export function existingPlaces(workspace: string, options: PlaceOptions): readonly string[] {
  return places(workspace, options).filter(isFolder);
}

/**
 * Our state folder if it is on the same disk; otherwise beside the workspace; otherwise inside it,
 * under a protected name.
 */
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
    return false; // we cannot write there, so the next place is tried
  }
}

/** Each new folder can be entered by its owner only. */
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

/** The kernel's list. Of two mounts in one place, the later one is on top. */
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

/** File systems that cannot be the upper folder of an overlay, or cannot rename in place. */
const unfit = /^(?:overlay|aufs|nfs|cifs|smb|9p|fuse|vfat|msdos|exfat|ntfs|ecryptfs|iso9660|squashfs)/;

function obstacleIn(
  root: string,
  workspace: string,
  mounts: readonly Mount[],
  options: PlaceOptions,
): string | undefined {
  if (!isFolder(root)) return `${root} is one file, and only folders can be held`;
  if (isBelow(root, "/dev")) return `${root} lies in /dev, and a sandbox has a /dev of its own`;
  const below = mounts.find(({ at }) => at !== root && isBelow(at, root));
  if (below !== undefined) return `another disk is mounted at ${below.at}`;
  const mount = mountOf(root, mounts);
  if (mount !== mountOf(workspace, mounts)) return `${root} lies on another disk than ${workspace}`;
  if (mount !== undefined && unfit.test(mount.type)) return `its file system (${mount.type}) cannot be held`;
  return foreignIn(root, options);
}

/** A sandbox has one user and one group, so it cannot change in place what belongs to others. */
function foreignIn(root: string, { uid, gid, owner = { uid, gid } }: PlaceOptions): string | undefined {
  const isForeign = (path: string) => {
    const stat = lstatSync(path, { throwIfNoEntry: false });
    return stat !== undefined && (stat.uid !== owner.uid || stat.gid !== owner.gid);
  };
  const found = [root, ...readdirSync(root).map((name) => join(root, name))].find(isForeign);
  return found === undefined ? undefined : `${found} belongs to another user or group`;
}

/** A path below a file, or one that may not be looked at, is not a folder. */
function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false;
  }
}
