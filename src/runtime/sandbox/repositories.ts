/**
 * Repositories below the writable folders. Each has settings and hooks that make git run things, and
 * is protected like the one at the top. The search is bounded and goes through shallow folders first.
 * A folder that has not changed since the last time is not read again.
 */
import { lstatSync, readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { resolved } from "./existing.ts";

const maxFolders = 2000;
const maxRepositories = 200;
const maxDepth = 8;
/** Large folders written by tools, which are nobody's repository. */
const skipped = new Set([".git", "node_modules", ".venv", "__pycache__", ".cache"]);

interface Looked {
  readonly changed: number;
  readonly folders: readonly string[];
  readonly hasGit: boolean;
  /** The folder itself is a repository without a work tree, which git finds from inside. */
  readonly isBare: boolean;
}

/** What of a bare repository makes git run something; the rest must stay open for pushes. */
const bareNames = ["config", "hooks", "commondir"];

export interface Repositories {
  /**
   * The `.git` of each repository below these folders, but not of the folders themselves, and the
   * settings and hooks of bare repositories.
   */
  find(roots: readonly string[]): readonly string[];
}

export function createRepositories(now: () => number = Date.now): Repositories {
  const known = new Map<string, Looked>();

  function look(folder: string): Looked | undefined {
    const changed = changedAt(folder);
    if (changed === undefined) return void known.delete(folder);
    const before = known.get(folder);
    if (before?.changed === changed) return before;
    const looked = { changed, ...read(folder) };
    // A folder that is changing right now may change again without a new time stamp.
    if (now() - changed > settledMs) known.set(folder, looked);
    else known.delete(folder);
    return looked;
  }

  return {
    find(roots) {
      if (known.size > 2 * maxFolders) known.clear();
      const found: string[] = [];
      let level = roots.filter((root) => root !== "/");
      for (let depth = 0, seen = 0; level.length > 0 && depth <= maxDepth; depth++) {
        const next: string[] = [];
        for (const folder of level) {
          if (++seen > maxFolders || found.length >= maxRepositories) return found;
          const looked = look(folder);
          if (looked?.hasGit === true && depth > 0) found.push(join(folder, ".git"));
          if (looked?.isBare === true) {
            found.push(...bareNames.map((name) => join(folder, name)));
            continue;
          }
          for (const name of looked?.folders ?? []) next.push(join(folder, name));
        }
        level = next;
      }
      return found;
    },
  };
}

const settledMs = 100;

function changedAt(folder: string): number | undefined {
  try {
    const stat = lstatSync(folder, { throwIfNoEntry: false });
    return stat?.isDirectory() === true ? Math.max(stat.mtimeMs, stat.ctimeMs) : undefined;
  } catch {
    return undefined; // not for us to look at
  }
}

function read(folder: string): Omit<Looked, "changed"> {
  try {
    const entries = readdirSync(folder, { withFileTypes: true });
    const folders = entries.filter((one) => one.isDirectory() && !skipped.has(one.name)).map(({ name }) => name);
    const names = new Set(entries.map(({ name }) => name));
    const isBare = names.has("HEAD") && names.has("objects") && names.has("refs");
    return { folders, hasGit: names.has(".git"), isBare };
  } catch {
    return { folders: [], hasGit: false, isBare: false }; // not for us to read
  }
}

/** A `.git` file names the real folder, and that folder (a worktree's) may name the common one. */
export function gitFolders(file: string): readonly string[] {
  const pointer = /^gitdir: (.+)$/m.exec(readSmall(file) ?? "")?.[1];
  const folder = pointer === undefined ? undefined : resolved(resolve(dirname(file), pointer.trim()));
  if (folder === undefined) return [];
  const common = readSmall(join(folder, "commondir"))?.trim();
  const shared = common === undefined ? undefined : resolved(resolve(folder, common));
  return shared === undefined ? [folder] : [folder, shared];
}

function readSmall(path: string): string | undefined {
  const stat = statSync(path, { throwIfNoEntry: false });
  return stat?.isFile() === true && stat.size < 4096 ? readFileSync(path, "utf8") : undefined;
}
