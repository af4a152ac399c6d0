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
import { thatMayExist } from "./existing.ts";

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
  const at = now().toString(36);
  let place = freePlace(join(quarantine, `${at}-${basename(path)}`));
  if (stat(path) !== undefined) {
    const beside = freePlace(`${path}-moved-${at}`);
    openAndRetry(path, () => (place = moveAside(path, place, beside)));
  }
  if (link !== undefined) symlinkSync(link, path);
  return place;
}

/** Two things of one name may be moved in the same millisecond, and neither may cover the other. */
function freePlace(wanted: string): string {
  let place = wanted;
  for (let count = 2; stat(place) !== undefined; count++) place = `${wanted}-${count}`;
  return place;
}

/** Returns where it is now. */
function moveAside(from: string, to: string, beside: string): string {
  try {
    renameSync(from, to);
    return to;
  } catch (error) {
    if (errorCode(error) === "EACCES") throw error; // to be opened first
    // The quarantine is on another file system. The name goes first, whatever the command has put there: a copy may
    // fail or take very long, and what is beside the name means nothing to anybody.
    renameSync(from, beside);
  }
  try {
    openAndRetry(beside, () => {
      copyTree(beside, to);
      rmSync(beside, { recursive: true, force: true });
    });
    return to;
  } catch {
    rmSync(to, { recursive: true, force: true });
    return beside;
  }
}

const maxCopiedBytes = 256 * 1024 ** 2;
const maxCopiedEntries = 20_000;

/** Links are copied as links, so that nothing outside is read on the way. Pipes and sockets have nothing to copy. */
function copyTree(from: string, to: string): void {
  let bytes = 0;
  let entries = 0;
  const filter = (path: string) => {
    const seen = lstatSync(path);
    bytes += seen.isFile() ? seen.size : 0;
    if (bytes > maxCopiedBytes || ++entries > maxCopiedEntries) throw new Error(`${from} is too large to be copied`);
    return seen.isFile() || seen.isDirectory() || seen.isSymbolicLink();
  };
  cpSync(from, to, { recursive: true, verbatimSymlinks: true, filter });
}
