import { lstatSync, type Stats } from "node:fs";
import { basename, dirname, isAbsolute, join, normalize, sep } from "node:path";
import { CallError } from "../../base/error.ts";
import { nameMatcher } from "../../base/names.ts";
import type { Grant } from "../../spec/access.ts";
import { forbidden, outside, shown } from "./errors.ts";
import { createPathSet, isInside, realOrSame, type PathSet } from "./paths.ts";

/** Checks what a grant allows for paths that are known to be real. Throws a CallError, or does nothing. */
export interface Guard {
  /** `asked` is the absolute path as the caller spelled it, `real` is where it leads. */
  read(asked: string, real: string, stats: Stats): void;
  write(asked: string, real: string): void;
  /** The names in a folder that may not be read. Few folders have any, so a listing asks once. */
  maskedNames(folder: string): ReadonlySet<string>;
  /** Inside the writable roots, but protected. It does not throw, for walks over whole trees. */
  isProtected(real: string): boolean;
}

/** Trees of the kernel and of devices. Reading them may block, never end, or have an effect. */
const specialTrees = ["/proc", "/sys", "/dev"];
/** Shared memory has ordinary files in it, and some people's workspaces. */
const sharedMemory = "/dev/shm";

function isSpecial(real: string): boolean {
  for (const tree of specialTrees) if (isInside(real, tree)) return !isInside(real, sharedMemory);
  return false;
}

export interface MaskCache {
  mask: readonly string[];
  resolved: PathSet;
}

export interface GuardOptions {
  readonly workspace: string;
  readonly grant: Grant;
  /** The last list of masked paths with their real paths, because nearly every call has the same list. */
  readonly maskCache: MaskCache;
}

export function createGuard({ workspace, grant, maskCache }: GuardOptions): Guard {
  // Roots are used as they were agreed to: if they were resolved again, a root could be a link that was swapped in
  // since.
  let known: PathSet | undefined;
  const roots = () => (known ??= createPathSet(grant.write));
  let masks: PathSet | undefined;
  const masked = () => (masks ??= resolveMasks(grant.mask, maskCache));

  const isMasked = (asked: string, real: string): boolean =>
    masked().around(asked).length > 0 || (asked !== real && masked().around(real).length > 0);

  /** Whether a path is protected below a root that contains it. */
  const isProtectedUnder = (root: string, real: string): boolean => {
    if (root === real) return false; // it was agreed to by its own name
    const { isName, places } = protectedBy(grant.protect);
    const below = real.slice(root.length).split(sep);
    return below.some(isName) || places.some((entry) => covers(entry, root, real));
  };

  return {
    read(asked, real, stats) {
      if (isMasked(asked, real) || isMaskedTwin(stats, masked().paths))
        throw forbidden("read", asked, "may not be read");
      if (isSpecial(real)) {
        throw forbidden("read", asked, "belongs to the system, not to the file system");
      }
      // A link in the workspace would let a path that looks harmless read anything.
      if (isInside(asked, workspace) && !isInside(real, workspace)) {
        if (!isInside(real, realOrSame(workspace)) && roots().around(real).length === 0) {
          throw new CallError("denied", `${shown(asked)} leads out of the workspace, to ${shown(real)}.`, {
            hint: "If that file is meant, ask for it by its own path.",
          });
        }
      }
    },
    write(asked, real) {
      if (isMasked(asked, real)) throw forbidden("write", asked, "may not be changed");
      const inside = roots().around(real);
      if (inside.length === 0) throw outside(asked, real);
      if (inside.some((root) => isProtectedUnder(root, real)))
        throw forbidden("write", asked, "is protected and may not be changed");
      if (isSpecial(real)) throw forbidden("write", asked, "belongs to the system");
    },
    maskedNames: (folder) =>
      new Set(masked().paths.flatMap((mask) => (dirname(mask) === folder ? [basename(mask)] : []))),
    isProtected: (real) =>
      roots()
        .around(real)
        .some((root) => isProtectedUnder(root, real)),
  };
}

interface Protected {
  /** An entry without a slash is a name anywhere below a root. */
  readonly isName: (name: string) => boolean;
  /** Any other is an absolute path, or a path below the root. */
  readonly places: readonly string[];
}

/** Nearly every call has the same list of a hundred names, so the names are folded once. */
const known = new WeakMap<readonly string[], Protected>();

function protectedBy(protect: readonly string[]): Protected {
  let read = known.get(protect);
  if (read === undefined) {
    const isPlace = (entry: string) => entry.includes("/") || isAbsolute(entry);
    read = {
      isName: nameMatcher(protect.filter((entry) => !isPlace(entry))),
      places: protect.filter(isPlace).map((entry) => normalize(entry)),
    };
    known.set(protect, read);
  }
  return read;
}

function covers(entry: string, root: string, real: string): boolean {
  // An entry that contains the root itself does not close the root.
  if (isAbsolute(entry)) return entry !== root && isInside(entry, root) && isInside(real, entry);
  const below = root.endsWith(sep) ? root.length : root.length + 1;
  return real.startsWith(entry, below) && isInside(real, join(root, entry));
}

function resolveMasks(mask: readonly string[], cache: MaskCache): PathSet {
  const isKnown =
    mask === cache.mask ||
    (mask.length === cache.mask.length && mask.every((path, index) => path === cache.mask[index]));
  if (!isKnown) {
    cache.resolved = createPathSet([...new Set(mask.flatMap((path) => [path, realOrSame(path)]))]);
    cache.mask = mask;
  }
  return cache.resolved;
}

/** Another name (hard link) of a masked file. Only a file with several names can be one. */
function isMaskedTwin(stats: Stats, masks: readonly string[]): boolean {
  if (!stats.isFile() || stats.nlink < 2) return false;
  return masks.some((mask) => {
    const other = lstatSync(mask, { throwIfNoEntry: false });
    return other?.ino === stats.ino && other.dev === stats.dev;
  });
}
