import { lstatSync, type Stats } from "node:fs";
import { basename, dirname, isAbsolute, join, relative, sep } from "node:path";
import { CallError } from "../../base/error.ts";
import { nameMatcher } from "../../base/names.ts";
import type { Grant } from "../../spec/access.ts";
import { forbidden, outside, shown } from "./errors.ts";
import { isInside, realOrSame } from "./paths.ts";

/** Says what a grant allows about paths that are already known to be real. Throws a CallError, or is silent. */
export interface Guard {
  /** `asked`: as the caller spelled it, absolute; `real`: where it is. */
  read(asked: string, real: string, stats: Stats): void;
  write(asked: string, real: string): void;
  /** The names in a folder that may not be read: few folders have any, so a listing asks once. */
  maskedNames(folder: string): ReadonlySet<string>;
  /** Inside the writable roots, but kept: said without throwing, for walks over whole trees. */
  isProtected(real: string): boolean;
}

/** Kernel and device trees: reading them may block, never end, or do something. */
const specialTrees = ["/proc", "/sys", "/dev"];

export interface MaskCache {
  mask: readonly string[];
  resolved: readonly string[];
}

export interface GuardOptions {
  readonly workspace: string;
  readonly grant: Grant;
  /** The last list of masked paths and where they really are: it is the same for nearly every call. */
  readonly maskCache: MaskCache;
}

export function createGuard({ workspace, grant, maskCache }: GuardOptions): Guard {
  // As they were agreed to: looked up again now, a root could be a link that was swapped in since.
  const roots = grant.write;
  let masks: readonly string[] | undefined;
  const masked = () => (masks ??= resolveMasks(grant.mask, maskCache));

  const isMasked = (asked: string, real: string): boolean =>
    masked().some((mask) => isInside(asked, mask) || isInside(real, mask));

  const isProtectedUnder = (root: string, real: string): boolean => {
    if (!isInside(real, root)) return false;
    const below = relative(root, real).split(sep);
    return below.some(isProtectedName(grant.protect)) || grant.protect.some((entry) => covers(entry, root, real));
  };

  return {
    read(asked, real, stats) {
      if (isMasked(asked, real) || isMaskedTwin(stats, masked())) throw forbidden("read", asked, "may not be read");
      if (specialTrees.some((tree) => isInside(real, tree))) {
        throw forbidden("read", asked, "belongs to the system, not to the file system");
      }
      // A link in the workspace would let a path that looks harmless read anything.
      if (isInside(asked, workspace) && !isInside(real, workspace)) {
        const home = [realOrSame(workspace), ...roots];
        if (!home.some((root) => isInside(real, root))) {
          throw new CallError("denied", `${shown(asked)} leads out of the workspace, to ${shown(real)}.`, {
            hint: "If that file is meant, ask for it by its own path.",
          });
        }
      }
    },
    write(asked, real) {
      if (isMasked(asked, real)) throw forbidden("write", asked, "may not be changed");
      const inside = roots.filter((root) => isInside(real, root));
      if (inside.length === 0) throw outside(asked, real);
      if (inside.some((root) => isProtectedUnder(root, real)))
        throw forbidden("write", asked, "is protected and may not be changed");
      if (specialTrees.some((tree) => isInside(real, tree))) throw forbidden("write", asked, "belongs to the system");
    },
    maskedNames: (folder) => new Set(masked().flatMap((mask) => (dirname(mask) === folder ? [basename(mask)] : []))),
    isProtected: (real) => roots.some((root) => isProtectedUnder(root, real)),
  };
}

/** The list is the same for nearly every call, and has a hundred names: they are folded once. */
const matchers = new WeakMap<readonly string[], (name: string) => boolean>();

/** A protected entry without a slash is a name anywhere below a root. */
function isProtectedName(protect: readonly string[]): (name: string) => boolean {
  let matches = matchers.get(protect);
  if (matches === undefined) {
    matches = nameMatcher(protect.filter((entry) => !entry.includes("/") && !isAbsolute(entry)));
    matchers.set(protect, matches);
  }
  return matches;
}

/** Any other is an absolute path, or one below the root. */
function covers(entry: string, root: string, real: string): boolean {
  // One that holds the root itself does not close it.
  if (isAbsolute(entry)) return entry !== root && isInside(entry, root) && isInside(real, entry);
  return entry.includes("/") && isInside(real, join(root, entry));
}

function resolveMasks(mask: readonly string[], cache: MaskCache): readonly string[] {
  const isKnown = mask.length === cache.mask.length && mask.every((path, index) => path === cache.mask[index]);
  if (!isKnown) {
    cache.resolved = [...new Set(mask.flatMap((path) => [path, realOrSame(path)]))];
    cache.mask = mask;
  }
  return cache.resolved;
}

/** A second name of a masked file: only a file with several names can be one. */
function isMaskedTwin(stats: Stats, masks: readonly string[]): boolean {
  if (!stats.isFile() || stats.nlink < 2) return false;
  return masks.some((mask) => {
    const other = lstatSync(mask, { throwIfNoEntry: false });
    return other?.ino === stats.ino && other.dev === stats.dev;
  });
}
