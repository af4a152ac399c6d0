/** What the commands of one sandbox share: a private temp folder, the place for things moved aside, and proxies. */
import { chownSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Denial } from "../../spec/access.ts";
import type { ConfineRequest } from "./backend.ts";
import { guardNames } from "./guard.ts";
import type { Guard } from "./guard.ts";
import type { Machine } from "./machine.ts";

export interface Session {
  /** The host's folder behind the private temp folder, made when first needed; one per user it runs commands as. */
  tempFolder(owner: { readonly uid: number; readonly gid: number } | undefined): string;
  guard(paths: readonly string[]): Guard;
  /** A command runs unconfined: what appears from now on may be rightful. */
  ranUnconfined(): void;
  /** Undefined where the grant names no hosts. */
  proxy(request: ConfineRequest): CommandProxy | undefined;
  close(): Promise<void>;
}

/** The way out of one command's network namespace. */
export interface CommandProxy {
  /** The command, with what must run before it inside the sandbox. */
  wrap(argv: readonly string[]): readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Must be reachable inside. */
  readonly visible: readonly string[];
  /** Says which host was refused, if one was. */
  close(): Promise<Denial | undefined>;
}

export interface SessionOptions {
  readonly machine: Machine;
  readonly openProxy?: (request: ConfineRequest) => CommandProxy;
}

export function createSession({ machine, openProxy }: SessionOptions): Session {
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
    guard(paths) {
      const then = unconfinedRuns;
      return guardNames(paths, {
        quarantine: join(machine.stateDir, "quarantine"),
        isOnlySuspect: () => then === unconfinedRuns,
      });
    },
    ranUnconfined() {
      unconfinedRuns += 1;
    },
    proxy(request) {
      return openProxy === undefined || typeof request.grant.network === "string" || request.grant.network.length === 0
        ? undefined
        : openProxy(request);
    },
    async close() {
      for (const folder of folders.values()) rmSync(folder, { recursive: true, force: true });
      folders.clear();
    },
  };
}
