/** What all file operations share: the grant, the session's memory, and how a path becomes a held file. */
import { closeSync, type Stats } from "node:fs";
import { CallError } from "../../base/error.ts";
import type { Grant } from "../../spec/access.ts";
import type { FileVersion } from "../../spec/capability.ts";
import { fileError, forbidden, shown } from "./errors.ts";
import { hold, openHeld, openPlace, openTarget, whereIsPlace, type Held, type OpenFolder, type Place } from "./fd.ts";
import type { Guard, MaskCache } from "./guard.ts";
import { toAbsolute } from "./paths.ts";

/** What a session remembers between calls: which version of a file the model last saw. */
export interface FileMemory {
  readonly seen: { get(path: string): string | undefined; set(path: string, version: string): void };
  readonly maskCache: MaskCache;
  /** The folder that was written to last, as long as no other step of the event loop has begun. */
  readonly openFolder: OpenFolder;
}

/**
 * One file before and after a call changed it; undefined means that it did not exist. It is enough to
 * show the change and to undo it.
 */
export interface FileChange {
  readonly path: string;
  readonly before: Uint8Array | undefined;
  readonly after: Uint8Array | undefined;
  readonly mode: number;
}

/**
 * What is in a file: as text if it is UTF-8 without a byte-order mark, because then the text says what the bytes are, and
 * as bytes if it is not, or if nobody decoded it.
 */
export type Content = { readonly text: string } | { readonly bytes: Uint8Array };

/** The same as a `FileChange`, before anybody has asked for the bytes. */
export interface ContentChange {
  readonly path: string;
  readonly before: Content | undefined;
  readonly after: Content | undefined;
  readonly mode: number;
}

export function toFileChange({ path, before, after, mode }: ContentChange): FileChange {
  return { path, before: before && toBytes(before), after: after && toBytes(after), mode };
}

function toBytes(content: Content): Uint8Array {
  return "bytes" in content ? content.bytes : Buffer.from(content.text);
}

export interface FilesOptions {
  readonly workspace: string;
  readonly cwd: string;
  readonly grant: Grant;
  readonly memory?: FileMemory;
  /** Called for every file that is changed through this capability. */
  readonly onChange?: (change: ContentChange) => void;
  /** False: resolved paths are used instead of handles, for systems without /proc. */
  readonly handles?: boolean;
}

/** What the functions below share. */
export interface Scope extends Omit<FilesOptions, "onChange"> {
  readonly onChange: FilesOptions["onChange"] | undefined;
  readonly guard: Guard;
  readonly handles: boolean;
  /** Opens the folder of a file that is written. */
  readonly openFolder: OpenFolder;
  readonly memory: FileMemory;
  /**
   * What was read, kept for as long as somebody holds its version, so that a later change can be reported
   * together with the earlier content.
   */
  readonly contents: WeakMap<FileVersion, Content>;
  readonly scratch: Scratch;
}

/**
 * Memory for the bytes of one file while it is decoded or written. What lies in it is never handed out, because the next
 * file overwrites it.
 */
export interface Scratch {
  bytes?: Buffer;
}

const leastScratch = 32 * 1024;
/** What needs more gets memory of its own, which is not kept. */
export const mostScratch = 512 * 1024;

export function scratchOf(scratch: Scratch, size: number): Buffer {
  // Not taken from Node's shared pool: memory that tools and the network share is no place for a file's content.
  if (size > mostScratch) return Buffer.allocUnsafeSlow(size);
  if (scratch.bytes === undefined || scratch.bytes.length < size)
    scratch.bytes = Buffer.allocUnsafeSlow(Math.max(leastScratch, size));
  return scratch.bytes;
}

/** Runs `use` on what a path leads to, after it is known that it may be read. */
export function withHeld<T>(scope: Scope, path: string, use: (held: Held, asked: string) => T): T {
  const asked = toAbsolute(path, scope.cwd);
  let held: Held | undefined;
  try {
    held = hold(asked, scope.handles);
    scope.guard.read(asked, held.real, held.stats);
    return use(held, asked);
  } catch (error) {
    throw fileError(error, path);
  } finally {
    held?.close();
  }
}

/** The same for a regular file, opened. */
export function withFile<T>(scope: Scope, path: string, toWrite: boolean, use: (fd: number, held: Held) => T): T {
  return withHeld(scope, path, (held, asked) => {
    if (toWrite) scope.guard.write(asked, held.real);
    const fd = openRegular(held, path);
    try {
      return use(fd, held);
    } finally {
      closeSync(fd);
    }
  });
}

export function openRegular(held: Held, path: string): number {
  if (held.stats.isDirectory())
    throw new CallError("failed", `${shown(path)} is a folder.`, { hint: "List it instead." });
  if (!held.stats.isFile()) throw forbidden("read", path, "is not a regular file");
  return openHeld(held);
}

/**
 * Runs `use` on the place where a write would go: links are followed, the folder is held, and the
 * grant has been checked.
 */
export function withTarget<T>(
  scope: Scope,
  path: string,
  use: (place: Place, stats: Stats | undefined, real: string) => T,
): T {
  const asked = toAbsolute(path, scope.cwd);
  let place: Place | undefined;
  try {
    const target = openTarget(asked, scope.openFolder);
    place = target.place;
    const real = whereIsPlace(place);
    scope.guard.write(asked, real);
    return use(place, target.stats, real);
  } catch (error) {
    throw fileError(error, path);
  } finally {
    place?.close();
  }
}

export function withPlace<T>(scope: Scope, path: string, use: (place: Place, real: string) => T): T {
  const asked = toAbsolute(path, scope.cwd);
  let place: Place | undefined;
  try {
    place = openPlace(asked, scope.handles);
    const real = whereIsPlace(place);
    scope.guard.write(asked, real);
    return use(place, real);
  } catch (error) {
    throw fileError(error, path);
  } finally {
    place?.close();
  }
}
