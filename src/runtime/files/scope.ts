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

/** The same contents as text, where that is known without decoding them. */
export interface KnownTexts {
  readonly before?: string | undefined;
  readonly after?: string | undefined;
}

export interface FilesOptions {
  readonly workspace: string;
  readonly cwd: string;
  readonly grant: Grant;
  readonly memory?: FileMemory;
  /** Called for every file that is changed through this capability. */
  readonly onChange?: (change: FileChange, texts: KnownTexts) => void;
  /** False: resolved paths are used instead of handles, for systems without /proc. */
  readonly handles?: boolean;
}

/** What the functions below share. */
export interface Scope extends FilesOptions {
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
}

/** The text is left out if encoding it as UTF-8 would give other bytes. */
interface Content {
  readonly bytes: Uint8Array;
  readonly text?: string | undefined;
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
