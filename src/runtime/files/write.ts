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
  if (before !== undefined) accessSync(place.at, constants.W_OK);
  const temporary = `${place.at.slice(0, -place.name.length)}.callgate-${randomUUID()}`;
  const fd = openSync(
    temporary,
    constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | (constants.O_NOFOLLOW ?? 0),
    0o666,
  );
  try {
    writeAll(fd, data);
    if (before !== undefined) keepOwner(fd, before);
    const bits = mode ?? before?.mode;
    if (bits !== undefined) fchmodSync(fd, bits & 0o777);
    renameSync(temporary, place.at);
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

function keepOwner(fd: number, before: Stats): void {
  const now = fstatSync(fd);
  if (now.uid === before.uid && now.gid === before.gid) return;
  try {
    fchownSync(fd, before.uid, before.gid);
  } catch {
    // Only root can give files away. Otherwise the file belongs to whoever changed it, as with any editor.
  }
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
