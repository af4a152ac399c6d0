/**
 * Files by handle. On Linux a folder is opened first, and then the kernel is asked where that folder
 * is. A rename or a link made afterwards cannot separate the check from what was checked. Other
 * systems cannot answer this; there the path is resolved, and the resolved path is used.
 */
import { closeSync, constants, fstatSync, lstatSync, openSync, readlinkSync, realpathSync, type Stats } from "node:fs";
import { join, resolve, sep } from "node:path";
import { CallError } from "../../base/error.ts";
import { isErrno, shown } from "./errors.ts";

/** A name in a folder that is held open. `at` is the path for system calls. */
export interface Place {
  /** The real path of the folder. */
  readonly folder: string;
  readonly name: string;
  readonly at: string;
  /** If the folder is kept open: what files that were made in it with certain mode bits were like. */
  readonly made?: Map<number, Stats>;
  close(): void;
}

/** Missing in node:fs. It names a file without opening it, so that a pipe cannot block and a device does not react. */
const O_PATH = 0o10000000;
const maxLinks = 40;

export function hasHandles(platform: NodeJS.Platform = process.platform): boolean {
  return platform === "linux";
}

function viaFd(fd: number): string {
  return `/proc/self/fd/${fd}`;
}

/** Opens the folder of `path`, which is absolute and plain. The last component is not looked at. */
export function openPlace(path: string, handles: boolean): Place {
  return openFolderAs(folderOf(path), nameOf(path), handles);
}

function folderOf(path: string): string {
  return path.slice(0, path.lastIndexOf(sep)) || sep;
}

function nameOf(path: string): string {
  return path.slice(path.lastIndexOf(sep) + 1) || ".";
}

/** Where a place is: its folder joined with its name. */
export function whereIsPlace({ folder, name }: Place): string {
  return folder === sep || name === "." ? join(folder, name) : folder + sep + name;
}

export function openFolderAs(folder: string, name: string, handles: boolean): Place {
  if (!handles) {
    const real = realpathSync.native(folder);
    // Not joined with path.join, which would drop the '.'; `sibling` puts another name in its place.
    return { folder: real, name, at: `${real}/${name}`, close() {} };
  }
  return placeIn(openSync(folder, O_PATH | constants.O_DIRECTORY), name);
}

function placeIn(fd: number, name: string): Place {
  try {
    return { folder: whereIs(fd), name, at: `${viaFd(fd)}/${name}`, close: () => closeSync(fd) };
  } catch (error) {
    closeSync(fd);
    throw error;
  }
}

/** Opens a folder as `openFolderAs` does, and may keep it open. */
export type OpenFolder = (folder: string, name: string) => Place;

export const openResolved: OpenFolder = (folder, name) => openFolderAs(folder, name, false);

/**
 * Keeps the last folder open until the event loop turns, because the files of one patch often lie in one folder and are
 * written without a pause. Before it is used again, the kernel is asked whether it still lies where the path says. A
 * folder that is reached through a link is not kept, because the link may lead elsewhere the next time.
 */
export function createFolderKeeper(): OpenFolder {
  let kept: { readonly folder: string; readonly fd: number; readonly made: Map<number, Stats> } | undefined;
  let closing = false;
  const letGo = () => {
    if (kept !== undefined) closeSync(kept.fd);
    kept = undefined;
  };
  return (folder, name) => {
    if (kept?.folder !== folder || readlinkSync(viaFd(kept.fd)) !== folder) {
      letGo();
      const fd = openSync(folder, O_PATH | constants.O_DIRECTORY);
      const place = placeIn(fd, name);
      if (place.folder !== folder) return place;
      kept = { folder, fd, made: new Map() };
      if (!closing) setImmediate(() => ((closing = false), letGo()));
      closing = true;
    }
    return { folder, name, at: `${viaFd(kept.fd)}/${name}`, made: kept.made, close() {} };
  };
}

/** The folder at `place` itself, held open. A link is refused. */
export function enter(place: Place, name: string, handles: boolean): Place {
  if (!handles) {
    if (!lstatSync(place.at).isDirectory())
      throw new CallError("denied", `${shown(place.name)} is not a folder any more.`);
    return openFolderAs(place.at, name, false);
  }
  const fd = openSync(place.at, O_PATH | constants.O_DIRECTORY | constants.O_NOFOLLOW);
  return { folder: join(place.folder, place.name), name, at: `${viaFd(fd)}/${name}`, close: () => closeSync(fd) };
}

/** Another name in the same held folder. Closing the first place closes both. */
export function sibling(place: Place, name: string): Place {
  return { folder: place.folder, name, at: place.at.slice(0, -place.name.length) + name, close() {} };
}

/** Follows links in the last component, however many there are, each from the folder it really lies in. */
export function openTarget(
  path: string,
  openFolder: OpenFolder,
): { readonly place: Place; readonly stats: Stats | undefined } {
  let at = path;
  for (let links = 0; links <= maxLinks; links++) {
    const place = openFolder(folderOf(at), nameOf(at));
    try {
      const stats = lstatSync(place.at, { throwIfNoEntry: false });
      if (!stats?.isSymbolicLink()) return { place, stats };
      at = resolve(place.folder, readlinkSync(place.at));
    } catch (error) {
      place.close();
      throw error;
    }
    place.close();
  }
  throw new CallError("failed", `${shown(path)} is a link that leads round in a circle.`);
}

/** An existing file or folder, named by a handle and not opened for anything yet. */
export interface Held {
  readonly real: string;
  readonly stats: Stats;
  /** A path that means exactly this file, whatever happens to its name. */
  readonly at: string;
  close(): void;
}

export function hold(path: string, handles: boolean): Held {
  if (!handles) {
    const real = realpathSync.native(path);
    return { real, stats: lstatSync(real), at: real, close() {} };
  }
  const fd = openSync(path, O_PATH);
  try {
    return { real: whereIs(fd), stats: fstatSync(fd), at: viaFd(fd), close: () => closeSync(fd) };
  } catch (error) {
    closeSync(fd);
    throw error;
  }
}

function whereIs(fd: number): string {
  const real = readlinkSync(viaFd(fd));
  // The name of a pipe, a socket or a folder that this process cannot see is not a path.
  if (!real.startsWith("/")) throw new CallError("denied", `${shown(real)} is not a file in this file system.`);
  return real;
}

/** Opens what is held for reading. It never blocks on a pipe that nobody writes to. */
export function openHeld(held: Held): number {
  try {
    return openSync(held.at, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  } catch (error) {
    if (isErrno(error, "ENXIO")) throw new CallError("denied", `${shown(held.real)} is not a regular file.`);
    throw error;
  }
}
