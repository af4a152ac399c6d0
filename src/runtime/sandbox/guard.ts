/**
 * Protected names that no mount can hold: names that do not exist yet, and links. Mounting over a
 * missing name would leave an empty file on the host, so these names are checked before and after the
 * command instead. What appeared is moved aside, and never deleted.
 */
import { cpSync, lstatSync, mkdirSync, readlinkSync, renameSync, rmSync, symlinkSync } from "node:fs";
import type { Stats } from "node:fs";
import { basename, join } from "node:path";
import type { Denial } from "../../spec/access.ts";
import { thatMayExist } from "./there.ts";

export interface Guard {
  /** Puts things back as they were, and returns what had been created. */
  settle(): readonly Denial[];
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
  readonly now?: () => number;
}

export function guardNames(paths: readonly string[], options: GuardOptions): Guard {
  const there = options.wereMissing ? new Set() : thatMayExist(paths);
  const before = paths.map((path) => ({ path, link: there.has(path) ? linkTarget(path) : undefined }));
  return {
    settle() {
      const now = thatMayExist(paths);
      const changed = before.filter(({ path, link }) => (link !== undefined || now.has(path)) && isChanged(path, link));
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
  const place = join(quarantine, `${now().toString(36)}-${basename(path)}`);
  if (stat(path) !== undefined) moveAside(path, place);
  if (link !== undefined) symlinkSync(link, path);
  return place;
}

function moveAside(from: string, to: string): void {
  try {
    renameSync(from, to);
  } catch {
    // On another file system, links are copied as links, so that nothing outside is read on the way.
    cpSync(from, to, { recursive: true, verbatimSymlinks: true });
    rmSync(from, { recursive: true, force: true });
  }
}
