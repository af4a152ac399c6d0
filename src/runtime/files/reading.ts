/** Reading through the file capability: whole files, lines, folders, facts about an entry. */
import { isUtf8 } from "node:buffer";
import { closeSync, lstatSync, readdirSync, readFileSync, readlinkSync, readSync, type Stats } from "node:fs";
import { join } from "node:path";
import { CallError } from "../../base/error.ts";
import type { FileEntry, FileName, FileSlice, FileVersion, TextFile } from "../../spec/capability.ts";
import { fileError, isErrno, shown } from "./errors.ts";
import { openPlace, type Held, type Place } from "./fd.ts";
import type { Guard } from "./guard.ts";
import { sliceLines, type OpenFile, type SliceOptions } from "./lines.ts";
import { toAbsolute } from "./paths.ts";
import { openRegular, scratchOf, withFile, withHeld, type Scope } from "./scope.ts";
import { tokenOf } from "./version.ts";

/** Larger files are not read into memory; `slice` reads parts of them. */
export const maxWholeBytes = 256 * 1024 * 1024;

export function readBytes(scope: Scope, path: string): Buffer {
  // A tool gets these bytes, and could reach whatever else lies in the same memory.
  return withWhole(scope, path, false, Buffer.allocUnsafeSlow, ({ bytes }) => bytes);
}

export function readText(scope: Scope, path: string, toWrite = false): TextFile {
  const room = (size: number) => scratchOf(scope.scratch, size);
  return withWhole(scope, path, toWrite, room, ({ bytes, version, mode }) => {
    scope.memory.seen.set(version.path, version.token);
    const { text, bom, encoding } = decodeText(bytes);
    if (scope.onChange)
      scope.contents.set(version, encoding === "utf8" && !bom ? { text } : { bytes: new Uint8Array(bytes) });
    return { text, bom, encoding, version, mode };
  });
}

interface WholeFile {
  readonly bytes: Buffer;
  readonly version: FileVersion;
  readonly mode: number;
}

function withWhole<T>(
  scope: Scope,
  path: string,
  toWrite: boolean,
  room: (size: number) => Buffer,
  use: (file: WholeFile) => T,
): T {
  return withFile(scope, path, toWrite, (fd, { real, stats }) => {
    if (stats.size > maxWholeBytes) {
      throw new CallError("failed", `${shown(path)} has ${stats.size} bytes: too many to read at once.`, {
        hint: "Read it by lines.",
      });
    }
    const bytes = readAll(fd, room(stats.size), stats.size);
    // The stamp is taken before reading, so a change made while reading shows as a different stamp. A caller that is
    // about to write needs no hash: a file that was merely touched in between is read once more.
    const version = { path: real, token: tokenOf(stats, toWrite ? undefined : bytes) };
    return use({ bytes, version, mode: stats.mode & 0o7777 });
  });
}

/** In one system call if the file is as long as it was when it was looked at. */
function readAll(fd: number, room: Buffer, size: number): Buffer {
  const count = size === 0 ? 0 : readSync(fd, room, 0, size, null);
  const bytes = room.subarray(0, count);
  return count > 0 && count === size ? bytes : Buffer.concat([bytes, readFileSync(fd)]);
}

export async function slice(
  scope: Scope,
  path: string,
  from: number,
  to: number,
  limits: SliceOptions,
): Promise<FileSlice> {
  let file: OpenFile | undefined;
  try {
    file = withHeld(scope, path, (held) => {
      scope.memory.seen.set(held.real, tokenOf(held.stats));
      return { fd: openRegular(held, path), size: held.stats.size };
    });
    return await sliceLines(file, from, to, limits);
  } catch (error) {
    throw fileError(error, path);
  } finally {
    if (file !== undefined) closeSync(file.fd);
  }
}

/** What may not be read is not listed either. */
export function listNames(held: Held, guard: Guard): readonly FileName[] {
  const masked = guard.maskedNames(held.real);
  const base = held.real === "/" ? "/" : `${held.real}/`;
  return readdirSync(held.at, { withFileTypes: true })
    .filter(({ name }) => !masked.has(name))
    .map((entry) => ({ name: entry.name, path: base + entry.name, type: typeOf(entry) }))
    .toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

export function listFolder(held: Held, guard: Guard): readonly FileEntry[] {
  const masked = guard.maskedNames(held.real);
  const base = held.real === "/" ? "/" : `${held.real}/`;
  return readdirSync(held.at)
    .toSorted()
    .flatMap((name) => {
      if (masked.has(name)) return [];
      const at = `${held.at}/${name}`;
      const stats = lstatSync(at, { throwIfNoEntry: false });
      return stats === undefined ? [] : [toEntry(name, base + name, at, stats)];
    });
}

export function statEntry(scope: Scope, path: string): FileEntry | undefined {
  const asked = toAbsolute(path, scope.cwd);
  let place: Place | undefined;
  try {
    place = openPlace(asked, scope.handles);
    const stats = lstatSync(place.at, { throwIfNoEntry: false });
    if (stats === undefined) return undefined;
    const real = join(place.folder, place.name);
    scope.guard.read(asked, real, stats);
    return toEntry(place.name === "." ? "/" : place.name, real, place.at, stats);
  } catch (error) {
    if (isErrno(error, "ENOENT", "ENOTDIR")) return undefined;
    throw fileError(error, path);
  } finally {
    place?.close();
  }
}

function toEntry(name: string, path: string, at: string, stats: Stats): FileEntry {
  const type = typeOf(stats);
  return {
    name,
    path,
    type,
    sizeBytes: stats.size,
    modifiedMs: stats.mtimeMs,
    mode: stats.mode & 0o7777,
    ...(type === "link" ? { linkTarget: readlinkSync(at) } : {}),
  };
}

function typeOf(entry: Pick<Stats, "isFile" | "isDirectory" | "isSymbolicLink">): FileName["type"] {
  return entry.isFile() ? "file" : entry.isDirectory() ? "directory" : entry.isSymbolicLink() ? "link" : "other";
}

type Decoded = Pick<TextFile, "text" | "bom" | "encoding">;

/** Decodes bytes in such a way that encoding the text again gives the same bytes. */
export function decodeText(bytes: Uint8Array): Decoded {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (buffer[0] === 0xff && buffer[1] === 0xfe && buffer.length % 2 === 0) {
    return { text: buffer.toString("utf16le", 2), bom: true, encoding: "utf16le" };
  }
  if (!isUtf8(buffer)) return { text: buffer.toString("latin1"), bom: false, encoding: "latin1" };
  const bom = buffer[0] === 0xef && buffer[1] === 0xbb && buffer[2] === 0xbf;
  return { text: buffer.toString("utf8", bom ? 3 : 0), bom, encoding: "utf8" };
}
