/**
 * Protected names that no mount can hold: names that do not exist yet, and links. Mounting over a
 * missing name would leave an empty file on the host, so these names are checked before and after the
 * command instead. What appeared is moved aside, and never deleted.
 */
import { cpSync, lstatSync, mkdirSync, readlinkSync, renameSync, rmSync, symlinkSync } from "node:fs";
import type { Stats } from "node:fs";
import { basename, join } from "node:path";
import { errorCode } from "../../base/error.ts";
import type { Denial } from "../../spec/access.ts";
import { openAndRetry } from "./keep.ts";
import { thatMayExist } from "./there.ts";

export interface Guard {
  /** Puts things back as they were, and returns what had been created. */
  undo(): readonly Denial[];
}

export interface GuardOptions {
  /** Where things are moved to. It is created when first needed. */
  readonly quarantine: string;
  /**
   * False if something unconfined ran in the meantime and may have created the name legitimately. Then
   * it is only reported.
   */
  readonly isOnlySuspect: () => boolean;
  /** The names were missing before, and are looked at only now that something is there. */
  readonly wereMissing?: boolean;
  /** Those of the names that are links. Left out: it is looked at now. */
  readonly links?: readonly string[];
  /** Finds out again which of the names may exist. Left out: each name is looked for. */
  readonly names?: readonly (() => ReadonlySet<string>)[];
  readonly now?: () => number;
}

export function guardNames(paths: readonly string[], options: GuardOptions): Guard {
  const there = options.wereMissing ? [] : (options.links ?? [...thatMayExist(paths)]);
  const links = new Map(
    there.flatMap((path) => {
      const target = linkTarget(path);
      return target === undefined ? [] : [[path, target] as const];
    }),
  );
  return {
    undo() {
      const now = options.names?.map((look) => look()) ?? [thatMayExist(paths)];
      const changed = paths
        .filter((path) => links.has(path) || now.some((names) => names.has(path)))
        .map((path) => ({ path, link: links.get(path) }))
        .filter(({ path, link }) => isChanged(path, link));
      if (!options.isOnlySuspect()) {
        const reason = "is a protected name and was made while this command ran";
        return changed.map(({ path }) => ({ what: "write", target: path, reason: `${path} ${reason}` }));
      }
      return changed.map(({ path, link }) => {
        const place = restore(path, link, options);
        const reason = `${path} is a protected name; what the command made there was moved to ${place}`;
        return { what: "write", target: path, reason };
      });
    },
  };
}

function stat(path: string): Stats | undefined {
  return lstatSync(path, { throwIfNoEntry: false });
}

function linkTarget(path: string): string | undefined {
  return stat(path)?.isSymbolicLink() === true ? readlinkSync(path) : undefined;
}

function isChanged(path: string, link: string | undefined): boolean {
  return link === undefined ? stat(path) !== undefined : linkTarget(path) !== link;
}

function restore(path: string, link: string | undefined, { quarantine, now = Date.now }: GuardOptions): string {
  mkdirSync(quarantine, { recursive: true, mode: 0o700 });
  const place = freePlace(join(quarantine, `${now().toString(36)}-${basename(path)}`));
  if (stat(path) !== undefined) openAndRetry(path, () => moveAside(path, place));
  if (link !== undefined) symlinkSync(link, path);
  return place;
}

/** Two things of one name may be moved in the same millisecond, and neither may cover the other. */
function freePlace(wanted: string): string {
  let place = wanted;
  for (let count = 2; stat(place) !== undefined; count++) place = `${wanted}-${count}`;
  return place;
}

function moveAside(from: string, to: string): void {
  try {
    renameSync(from, to);
  } catch (error) {
    if (errorCode(error) === "EACCES") throw error; // to be opened first
    // On another file system, links are copied as links, so that nothing outside is read on the way.
    cpSync(from, to, { recursive: true, verbatimSymlinks: true });
    rmSync(from, { recursive: true, force: true });
  }
}
