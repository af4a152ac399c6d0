/**
 * What a plan of mounts found on the disk. A plan depends only on its grant and on these checks, so it can
 * be used again as long as each check gives the same answer. The checks are really repeated: modification
 * times are not relied on, because some file systems store them only roughly.
 */
import { lstatSync, statSync, type Stats } from "node:fs";
import { lookFor, resolved } from "./existing.ts";

export interface DiskChecks {
  /** Each path is looked at once, however often it is asked for. */
  lstat(path: string): Stats | undefined;
  /** The same, with links followed. */
  stat(path: string): Stats | undefined;
  /** The path without links. Undefined if nothing is there, or nothing that we may look at. */
  real(path: string): string | undefined;
  /** Which of these names may exist. The function finds it out again each time. */
  names(paths: readonly string[]): () => ReadonlySet<string>;
  /** The answer to any other question. */
  ask<T>(question: () => T, isSame: (before: T, now: T) => boolean): T;
  /** The plan depends on something that is too expensive to check again, so it is used only once. */
  serveOnce(): void;
  /** Repeats every check. True if all answers are the same. */
  stillHold(): boolean;
}

export function createDiskChecks(): DiskChecks {
  const again: (() => boolean)[] = [];
  const own = new Map<string, Stats | undefined>();
  const targets = new Map<string, Stats | undefined>();
  const places = new Map<string, string | undefined>();

  function ask<T>(question: () => T, isSame: (before: T, now: T) => boolean): T {
    const before = question();
    again.push(() => isSame(before, question()));
    return before;
  }

  function once<T>(known: Map<string, T>, path: string, look: () => T, isSame: (before: T, now: T) => boolean): T {
    const before = known.get(path);
    if (before !== undefined || known.has(path)) return before as T; // `has` says that it is one
    const seen = ask(look, isSame);
    known.set(path, seen);
    return seen;
  }

  const lstat = (path: string) => once(own, path, () => lstatSync(path, { throwIfNoEntry: false }), isSameFile);
  return {
    lstat,
    stat(path) {
      const seen = lstat(path);
      if (seen?.isSymbolicLink() !== true) return seen;
      return once(targets, path, () => statSync(path, { throwIfNoEntry: false }), isSameFile);
    },
    real: (path) => once(places, path, () => resolved(path), Object.is),
    names(paths) {
      const look = lookFor(paths);
      ask(look, Object.is);
      return look;
    },
    ask,
    serveOnce: () => void again.push(() => false),
    stillHold() {
      try {
        return again.every((isSame) => isSame());
      } catch {
        return false; // it can no longer be looked at, so a new plan is made, which reports the reason
      }
    },
  };
}

/**
 * The same file or folder, with the same kind, owner and mode. A reused inode number is recognised by the
 * time of birth.
 */
function isSameFile(a: Stats | undefined, b: Stats | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  return (
    a.ino === b.ino &&
    a.dev === b.dev &&
    a.mode === b.mode &&
    a.uid === b.uid &&
    a.gid === b.gid &&
    a.birthtimeMs === b.birthtimeMs
  );
}
