/** Moving and copying through the file capability. */
import { lstatSync, readFileSync, renameSync, unlinkSync, type Stats } from "node:fs";
import { join, relative } from "node:path";
import { CallError } from "../../base/error.ts";
import { isErrno, shown } from "./errors.ts";
import { openPlace, type Place } from "./fd.ts";
import { withHeld, withPlace, type Content, type Scope } from "./scope.ts";
import { copyTree, eachFile, readRegular, removeTree } from "./tree.ts";
import { refuseTwin } from "./write.ts";

export function move(scope: Scope, from: string, to: string): void {
  withPlace(scope, from, (source) => {
    withPlace(scope, to, (target) => {
      refuseTwin(target, source.name);
      const moved = movedFiles(scope, source);
      rename(scope, source, target);
      for (const { below, before, mode } of moved) {
        scope.onChange?.({ path: join(source.folder, source.name, below), before, after: undefined, mode });
        scope.onChange?.({ path: join(target.folder, target.name, below), before: undefined, after: before, mode });
      }
    });
  });
}

function rename(scope: Scope, source: Place, target: Place): void {
  try {
    renameSync(source.at, target.at);
  } catch (error) {
    // On another file system it is copied and then removed.
    if (!isErrno(error, "EXDEV")) throw error;
    const stats = lstatSync(source.at);
    copyTree(source, stats, target, scope.handles);
    if (stats.isDirectory()) removeTree(source, scope.handles);
    else unlinkSync(source.at);
  }
}

interface MovedFile {
  /** The path below what is moved; empty for the file itself. */
  readonly below: string;
  readonly before: Content;
  readonly mode: number;
}

function movedFiles(scope: Scope, source: Place): readonly MovedFile[] {
  if (!scope.onChange) return [];
  const moved: MovedFile[] = [];
  const root = join(source.folder, source.name);
  const add = (file: Place, { mode }: Stats) =>
    moved.push({ below: relative(root, join(file.folder, file.name)), before: { bytes: readRegular(file) }, mode });
  const stats = lstatSync(source.at);
  if (stats.isDirectory()) eachFile(source, scope.handles, add);
  else if (stats.isFile()) add(source, stats);
  return moved;
}

export function copy(scope: Scope, from: string, to: string): void {
  withHeld(scope, from, (held) => {
    withPlace(scope, to, (target, real) => {
      if (real.startsWith(`${held.real}/`))
        throw new CallError("invalid_input", `${shown(to)} lies inside ${shown(from)}.`);
      refuseTwin(target);
      if (lstatSync(target.at, { throwIfNoEntry: false }))
        throw new CallError("failed", `${shown(to)} exists already.`);
      const source = openPlace(held.real, scope.handles);
      try {
        const stats = lstatSync(source.at);
        copyTree(source, stats, target, scope.handles);
        if (stats.isFile())
          scope.onChange?.({
            path: real,
            before: undefined,
            after: { bytes: readFileSync(target.at) },
            mode: stats.mode,
          });
      } finally {
        source.close();
      }
    });
  });
}
