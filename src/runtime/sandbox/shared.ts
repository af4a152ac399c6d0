/**
 * What the commands of one sandbox share, whichever backend confines them: the private temp folder, what
 * was found on this machine, and the guard over protected names.
 */
import { chownSync } from "node:fs";
import { join } from "node:path";
import { defined } from "../../base/json.ts";
import { configDir } from "../../base/paths.ts";
import { findPlace } from "../effects/place.ts";
import type { NoPlace, Place } from "../effects/place.ts";
import { guardNames } from "./guard.ts";
import { keepTree, putBack } from "./keep.ts";
import type { Kept } from "./keep.ts";
import type { Guard } from "./guard.ts";
import { hostSockets } from "./machine.ts";
import type { Machine } from "./machine.ts";
import type { Owner } from "./owner.ts";
import { canReach } from "./owner.ts";
import { hiddenEntries } from "./plan.ts";
import type { OwnFolders, PlanEntry } from "./plan.ts";
import { createRepositories } from "./repositories.ts";
import { makePrivateFolder, removePrivateFolder } from "./private-folder.ts";

export interface Shared {
  /** The host's folder behind the private temp folder, made when first needed; one per user it runs commands as. */
  tempFolder(owner: { readonly uid: number; readonly gid: number } | undefined): string;
  /** Restores, when the command has ended, what it changed although it should not have. */
  guard(guarded: Guarded): Guard;
  /** The `.git` of every repository below these folders. */
  repositories(roots: readonly string[]): readonly string[];
  /**
   * What was at these paths within the last second. It is remembered because every command has some thirty
   * masks to look up.
   */
  hide(paths: readonly string[]): readonly PlanEntry[];
  hostSockets(): readonly string[];
  /** Our own folders: sessions, journals, logins, settings. */
  readonly own: OwnFolders;
  /** Where what is written to these roots can be held, or why nowhere. */
  place(roots: readonly string[], owner: Owner | undefined): Place | NoPlace;
  /** A command runs unconfined, so protected names that appear from now on may be legitimate. */
  ranUnconfined(): void;
  close(): Promise<void>;
}

export interface Guarded {
  /** Protected names that no mount can hold. */
  readonly watched: readonly string[];
  /** Those of them that are links, if somebody has just looked. */
  readonly links?: readonly string[];
  /** Each function finds out again which of them may exist. */
  readonly names?: readonly (() => ReadonlySet<string>)[];
  /** The `.git` of each repository below the roots, if somebody has just looked. */
  readonly repositories?: readonly string[] | undefined;
  /** Protected paths that exist and that the backend cannot keep from being changed. */
  readonly unheld?: readonly string[];
  /** Writable folders: where something that was moved away is looked for. */
  readonly roots: readonly string[];
  /** New repositories in them are moved aside. */
  readonly guardsRepositories?: boolean;
}

export function createShared(machine: Machine, outputs?: string): Shared {
  const folders = new Map<number, string>();
  const kept = new Map<string, Kept>();
  const repositories = createRepositories();
  let unconfinedRuns = 0;
  const entries = rememberBriefly((key: string) => hiddenEntries(key.split("\0")));
  const sockets = rememberBriefly(() => hostSockets(machine));
  const none: readonly PlanEntry[] = [];
  const hide = (paths: readonly string[]) => (paths.length === 0 ? none : entries(paths.join("\0")));

  return {
    tempFolder(owner) {
      const uid = owner?.uid ?? machine.uid;
      const known = folders.get(uid);
      if (known !== undefined) return known;
      const folder = makePrivateFolder();
      if (owner !== undefined) chownSync(folder, owner.uid, owner.gid);
      folders.set(uid, folder);
      return folder;
    },
    guard({ watched, links, names: look, unheld = [], roots, guardsRepositories = false, repositories: known }) {
      const then = unconfinedRuns;
      const options = {
        quarantine: join(machine.stateDir, "quarantine"),
        isOnlySuspect: () => then === unconfinedRuns,
      };
      const trees = unheld.map((path) => keepTree(path, kept.get(path)));
      kept.clear();
      for (const tree of trees) kept.set(tree.path, tree);
      const names = guardNames(watched, { ...options, ...defined({ links, names: look }) });
      const searched = guardsRepositories ? roots : [];
      const there = new Set(known ?? repositories.find(searched));
      return {
        undo: () => {
          // All three always run: what one of them finds must not keep the others from looking.
          const made = names.undo();
          const changed = putBack(trees, roots);
          const appeared = repositories.find(searched).filter((path) => !there.has(path));
          return [...made, ...changed, ...guardNames(appeared, { ...options, wereMissing: true }).undo()];
        },
      };
    },
    repositories: (roots) => repositories.find(roots),
    hide,
    own: {
      folders: [...new Set([machine.stateDir, configDir(machine.env)])],
      ...defined({ kept: outputs }),
    },
    // Without its capabilities, root cannot enter folders that others have closed, so nothing in them needs to be
    // hidden, or could be.
    hostSockets: () =>
      sockets("host").filter((path) => machine.uid !== 0 || canReach(path, { uid: machine.uid, gid: machine.gid })),
    place: (roots, owner) =>
      findPlace(roots, { stateDir: machine.stateDir, uid: machine.uid, gid: machine.gid, ...defined({ owner }) }),
    ranUnconfined() {
      unconfinedRuns += 1;
    },
    async close() {
      for (const folder of folders.values()) removePrivateFolder(folder);
      folders.clear();
    },
  };
}

const lastsMs = 1000;

/** The last few answers, for a second each. */
function rememberBriefly<T>(ask: (key: string) => T, now: () => number = Date.now): (key: string) => T {
  const known = new Map<string, { readonly answer: T; readonly at: number }>();
  return (key) => {
    const last = known.get(key);
    if (last !== undefined && now() - last.at < lastsMs) return last.answer;
    if (known.size > 8) known.clear();
    const answer = ask(key);
    known.set(key, { answer, at: now() });
    return answer;
  };
}
