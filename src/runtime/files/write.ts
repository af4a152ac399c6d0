/** Replaces one file in one step. */
import { randomUUID } from "node:crypto";
import {
  accessSync,
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  fstatSync,
  openSync,
  readdirSync,
  renameSync,
  unlinkSync,
  writeSync,
  type Stats,
} from "node:fs";
import { CallError } from "../../base/error.ts";
import { shown } from "./errors.ts";
import { foldName } from "../../base/names.ts";
import type { Place } from "./fd.ts";

/**
 * Puts new content under a name in one step: a reader sees the old file or the new one, and never a
 * part. The name gets a new file, so other hard links of the old file keep their content.
 */
export function replaceFile(
  place: Place,
  data: Uint8Array,
  before: Stats | undefined,
  mode: number | undefined,
): Stats {
  const wanted = mode ?? before?.mode;
  const bits = wanted === undefined ? undefined : wanted & 0o777;
  const temporary = `${place.at.slice(0, -place.name.length)}.callgate-${randomUUID()}`;
  const fd = openSync(
    temporary,
    constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | (constants.O_NOFOLLOW ?? 0),
    // The mode is never wider than the final one, not even for a moment, because the content may be a secret.
    bits ?? 0o666,
  );
  try {
    // New files in one folder are alike, so the second one is looked at only once, when it is whole.
    const known = bits === undefined ? undefined : place.made?.get(bits);
    if (bits !== undefined) {
      const now = known ?? fstatSync(fd);
      if (before !== undefined && !isWritable(before, now)) accessSync(place.at, constants.W_OK);
      makeAlike(fd, now, bits, before);
      place.made?.set(bits, now);
    }
    writeAll(fd, data);
    renameSync(temporary, place.at);
    const after = fstatSync(fd);
    if (bits === undefined || known === undefined || areAlike(known, after)) return after;
    makeAlike(fd, after, bits, before);
    return fstatSync(fd);
  } catch (error) {
    unlinkSync(temporary);
    throw error;
  } finally {
    closeSync(fd);
  }
}

function writeAll(fd: number, data: Uint8Array): void {
  for (let at = 0; at < data.length;) at += writeSync(fd, data, at);
}

/** Whether the old file could have been opened for writing: if we own it, the owner's bit of its mode decides. */
function isWritable(before: Stats, now: Stats): boolean {
  return (before.mode & 0o200) !== 0 && before.uid === now.uid;
}

function areAlike(a: Stats, b: Stats): boolean {
  return a.mode === b.mode && a.uid === b.uid && a.gid === b.gid;
}

/** Sets the mode and the owner of a new file, if it does not have the right ones already. */
function makeAlike(fd: number, now: Stats, bits: number, before: Stats | undefined): void {
  if (before !== undefined && (now.uid !== before.uid || now.gid !== before.gid)) {
    try {
      fchownSync(fd, before.uid, before.gid);
    } catch {
      // Only root can give files away. Otherwise the file belongs to whoever changed it, as with any editor.
    }
  }
  if ((now.mode & 0o777) !== bits) fchmodSync(fd, bits);
}

/** On other systems, a new name that differs only in case from an existing one would be the same file. */
export function refuseTwin(place: Place, except?: string): void {
  const folded = foldName(place.name);
  const folder = place.at.slice(0, -place.name.length - 1);
  const twin = readdirSync(folder).find((name) => name !== place.name && name !== except && foldName(name) === folded);
  if (twin === undefined) return;
  throw new CallError(
    "failed",
    `${shown(place.name)} cannot be created: ${twin} is there and differs only in how it is written.`,
    {
      hint: `Use ${twin}, or remove it first.`,
    },
  );
}
