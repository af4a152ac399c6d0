/** Creates, removes and copies whole folders by handle. */
import {
  closeSync,
  constants,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmdirSync,
  symlinkSync,
  unlinkSync,
  type Stats,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { CallError } from "../../base/error.ts";
import { forbidden, isErrno, shown } from "./errors.ts";
import { enter, openFolderAs, sibling, type Place } from "./fd.ts";
import type { Guard } from "./guard.ts";
import { refuseTwin, replaceFile } from "./write.ts";

/** The names in a folder, each held through its folder's handle, so that a swapped link is never followed. */
function eachIn(place: Place, handles: boolean, visit: (child: Place, stats: Stats) => void): void {
  const inside = enter(place, ".", handles);
  try {
    for (const name of readdirSync(inside.at)) {
      const child = sibling(inside, name);
      const stats = lstatSync(child.at, { throwIfNoEntry: false });
      if (stats !== undefined) visit(child, stats);
    }
  } finally {
    inside.close();
  }
}

/** Refuses before anything is removed, so that one protected name deep below keeps the whole tree. */
export function refuseProtected(place: Place, guard: Guard, handles: boolean): void {
  const real = join(place.folder, place.name);
  if (guard.isProtected(real)) throw forbidden("write", real, "is protected and may not be changed");
  if (!lstatSync(place.at).isDirectory()) return;
  eachIn(place, handles, (child, stats) => {
    const at = join(child.folder, child.name);
    if (guard.isProtected(at)) throw forbidden("write", at, "is protected and may not be changed");
    if (stats.isDirectory()) refuseProtected(child, guard, handles);
  });
}

/** `onFile` is called with every regular file before it is removed. */
export function removeTree(place: Place, handles: boolean, onFile?: (file: Place, stats: Stats) => void): void {
  eachIn(place, handles, (child, stats) => {
    if (stats.isDirectory()) return removeTree(child, handles, onFile);
    if (stats.isFile()) onFile?.(child, stats);
    unlinkSync(child.at);
  });
  rmdirSync(place.at);
}

/** Files are copied by content, links as links, and folders with everything in them. Anything else is refused. */
export function copyTree(from: Place, stats: Stats, to: Place, handles: boolean): void {
  if (stats.isSymbolicLink()) return symlinkSync(readlinkSync(from.at), to.at);
  if (stats.isFile()) {
    replaceFile(to, readRegular(from), undefined, stats.mode);
    return;
  }
  if (!stats.isDirectory())
    throw new CallError("denied", `${shown(from.name)} is neither file, folder nor link: not copied.`);
  mkdirSync(to.at, { mode: stats.mode & 0o777 });
  const inside = enter(to, ".", handles);
  try {
    eachIn(from, handles, (child, childStats) => copyTree(child, childStats, sibling(inside, child.name), handles));
  } finally {
    inside.close();
  }
}

/** Every regular file in a folder, however deep. */
export function eachFile(place: Place, handles: boolean, visit: (file: Place, stats: Stats) => void): void {
  eachIn(place, handles, (child, stats) => {
    if (stats.isDirectory()) eachFile(child, handles, visit);
    else if (stats.isFile()) visit(child, stats);
  });
}

export function readRegular(place: Place): Buffer {
  const fd = openSync(place.at, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0));
  try {
    return readFileSync(fd);
  } finally {
    closeSync(fd);
  }
}

/**
 * Creates the missing folders on the way to `path`, each inside the one before. Returns those it
 * created, outermost first.
 */
export function makeParents(path: string, guard: Guard, handles: boolean): readonly string[] {
  const folder = dirname(path);
  const missing: string[] = [];
  let at = folder;
  let place: Place | undefined;
  while (place === undefined) {
    try {
      place = openFolderAs(at, ".", handles);
    } catch (error) {
      if (!isErrno(error, "ENOENT")) throw error;
      missing.push(at);
      at = dirname(at);
      if (missing.length > 4_096) throw error;
    }
  }
  return descend(place, missing.toReversed(), guard, handles);
}

function descend(start: Place, missing: readonly string[], guard: Guard, handles: boolean): readonly string[] {
  let held = start;
  try {
    for (const folder of missing) {
      const next = intoFolder(held, basename(folder), guard, handles);
      held.close();
      held = next;
    }
    return missing;
  } finally {
    held.close();
  }
}

/** `held` is a place in some folder. The result is a place in that folder's child `name`. */
function intoFolder(held: Place, name: string, guard: Guard, handles: boolean): Place {
  const child = sibling(held, name);
  guard.write(join(held.folder, name), join(held.folder, name));
  refuseTwin(child);
  try {
    mkdirSync(child.at);
  } catch (error) {
    // Somebody else created it in the meantime. `enter` below refuses it if it is a link.
    if (!isErrno(error, "EEXIST")) throw error;
  }
  return enter(child, ".", handles);
}
