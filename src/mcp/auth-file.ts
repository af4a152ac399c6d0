/** Logins on disk: one file a server, readable by its owner alone, changed by one process at a time. */
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { StoredOAuthClientInformation, StoredOAuthTokens } from "@modelcontextprotocol/client";
import { isObject } from "../base/json.ts";

export interface Login {
  /** Whom it is for: a token never goes to another address, even under the same name. */
  readonly url: string;
  readonly client?: StoredOAuthClientInformation;
  /** What the client was registered with. */
  readonly redirectUrl?: string;
  readonly tokens?: StoredOAuthTokens;
  /** In milliseconds since 1970. */
  readonly expiresAt?: number;
}

export interface LoginFile {
  read(): Login | undefined;
  write(login: Login): void;
  /** False where there was none. */
  remove(): boolean;
  /** Runs `body` while no other process of ours does. A holder that died is passed over after a minute. */
  locked<Result>(body: () => Promise<Result>): Promise<Result>;
}

const staleMs = 60_000;
const pollMs = 50;

export function createLoginFile(stateDir: string, server: string, url: string): LoginFile {
  const folder = join(stateDir, "mcp", "logins");
  const path = join(folder, `${server}.json`);
  const lock = `${path}.lock`;
  return {
    read() {
      if (!existsSync(path)) return undefined;
      try {
        const login: unknown = JSON.parse(readFileSync(path, "utf8"));
        // Our own file; a broken one is as good as none.
        return isObject(login) && login["url"] === url ? (login as unknown as Login) : undefined;
      } catch {
        return undefined;
      }
    },
    write(login) {
      mkdirSync(folder, { recursive: true, mode: 0o700 });
      const temporary = `${path}.${process.pid}`;
      writeFileSync(temporary, JSON.stringify(login), { mode: 0o600 });
      renameSync(temporary, path);
    },
    remove() {
      const was = existsSync(path);
      rmSync(path, { force: true });
      return was;
    },
    async locked(body) {
      mkdirSync(folder, { recursive: true, mode: 0o700 });
      while (!take(lock)) await new Promise((resolve) => setTimeout(resolve, pollMs));
      try {
        return await body();
      } finally {
        rmSync(lock, { force: true });
      }
    },
  };
}

function take(lock: string): boolean {
  try {
    writeFileSync(lock, String(process.pid), { flag: "wx", mode: 0o600 });
    return true;
  } catch {
    // Taken; a lock that outlived its holder is put away, and taken in the next round.
    const age = Date.now() - (statSync(lock, { throwIfNoEntry: false })?.mtimeMs ?? Date.now());
    if (age > staleMs) rmSync(lock, { force: true });
    return false;
  }
}
