/** What the commands of one sandbox share: a private temp folder and the place for things moved aside. */
import { chownSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { guardNames } from "./guard.ts";
import { keepTree, putBack } from "./keep.ts";
import type { Guard } from "./guard.ts";
import type { Machine } from "./machine.ts";

export interface Session {
  /** The host's folder behind the private temp folder, made when first needed; one per user it runs commands as. */
  tempFolder(owner: { readonly uid: number; readonly gid: number } | undefined): string;
  /** `unheld`: protected paths that exist and that the backend cannot keep from being changed. */
  guard(paths: readonly string[], unheld?: readonly string[]): Guard;
  /** A command runs unconfined: what appears from now on may be rightful. */
  ranUnconfined(): void;
  close(): Promise<void>;
}

export function createSession(machine: Machine): Session {
  const folders = new Map<number, string>();
  let unconfinedRuns = 0;

  return {
    tempFolder(owner) {
      const uid = owner?.uid ?? machine.uid;
      const known = folders.get(uid);
      if (known !== undefined) return known;
      const folder = mkdtempSync(join(tmpdir(), "callgate-"));
      if (owner !== undefined) chownSync(folder, owner.uid, owner.gid);
      folders.set(uid, folder);
      return folder;
    },
    guard(paths, unheld = []) {
      const then = unconfinedRuns;
      const kept = unheld.map(keepTree);
      const names = guardNames(paths, {
        quarantine: join(machine.stateDir, "quarantine"),
        isOnlySuspect: () => then === unconfinedRuns,
      });
      return { settle: () => names.settle() ?? putBack(kept) };
    },
    ranUnconfined() {
      unconfinedRuns += 1;
    },
    async close() {
      for (const folder of folders.values()) rmSync(folder, { recursive: true, force: true });
      folders.clear();
    },
  };
}
