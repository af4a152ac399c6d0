/**
 * Logins: one file per server, readable by its owner only and changed by one process at a time. The
 * secrets are in the keyring if there is one.
 */
import { randomUUID, type JsonWebKey } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { StoredOAuthClientInformation, StoredOAuthTokens } from "@modelcontextprotocol/client";
import { isObject } from "../../base/json.ts";
import type { Keyring } from "./keyring.ts";

export interface Login {
  /** The server's address: a token never goes to another one, even under the same name. */
  readonly url: string;
  readonly client?: StoredOAuthClientInformation;
  /** What the client was registered with. */
  readonly redirectUrl?: string;
  readonly tokens?: StoredOAuthTokens;
  /** The authorization server that accepted our own credentials. They go nowhere else. */
  readonly issuer?: string;
  /** The key to which the tokens are bound, if they are. */
  readonly proofKey?: JsonWebKey;
  /** In milliseconds since 1970. */
  readonly expiresAt?: number;
}

export interface LoginFile {
  read(): Promise<Login | undefined>;
  write(login: Login): Promise<void>;
  /** False where there was none. */
  remove(): Promise<boolean>;
  /** Runs `body` while no other process of ours does. A holder that died is ignored after a minute. */
  locked<Result>(body: () => Promise<Result>): Promise<Result>;
}

/** What the file holds for a login that is in the keyring: a new stamp with each change, so that others notice it. */
interface Kept {
  readonly url: string;
  readonly keyring: string;
}

/** A lock that nobody has touched for this long belongs to a process that died. */
const defaultStaleMs = 60_000;
const pollMs = 50;

/**
 * With a keyring the file only says that the secrets are there. If the keyring does not accept them,
 * they are in the file.
 */
export function createLoginFile(
  stateDir: string,
  server: string,
  url: string,
  keyring?: Keyring,
  staleMs = defaultStaleMs,
): LoginFile {
  const folder = join(stateDir, "mcp", "logins");
  const path = join(folder, `${server}.json`);
  const lock = `${path}.lock`;
  const account = `${server} ${url}`;
  let known: { readonly stamp: string; readonly login: Login | undefined } | undefined;

  const readFile = (): Login | Kept | undefined => {
    if (!existsSync(path)) return undefined;
    const held = parse(readFileSync(path, "utf8"));
    return held?.url === url ? held : undefined;
  };
  const writeFile = (held: Login | Kept) => {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const temporary = `${path}.${process.pid}`;
    writeFileSync(temporary, JSON.stringify(held), { mode: 0o600 });
    renameSync(temporary, path);
  };
  return {
    async read() {
      const held = readFile();
      if (held === undefined || !("keyring" in held)) return held;
      if (known?.stamp !== held.keyring) {
        const secret = await keyring?.get(account);
        const login = secret === undefined ? undefined : parse(Buffer.from(secret, "base64").toString("utf8"));
        known = { stamp: held.keyring, login: login && !("keyring" in login) ? login : undefined };
      }
      return known.login;
    },
    async write(login) {
      const secret = Buffer.from(JSON.stringify(login)).toString("base64");
      // Read back, because a keyring that cuts or loses what it was given is of no use.
      if (!keyring || !(await keyring.set(account, secret)) || (await keyring.get(account)) !== secret)
        return writeFile(login);
      known = { stamp: randomUUID(), login };
      writeFile({ url, keyring: known.stamp });
    },
    async remove() {
      const held = readFile();
      if (held !== undefined && "keyring" in held) await keyring?.delete(account);
      known = undefined;
      const was = existsSync(path);
      rmSync(path, { force: true });
      return was;
    },
    async locked(body) {
      mkdirSync(folder, { recursive: true, mode: 0o700 });
      const mine = randomUUID();
      while (!take(lock, mine, staleMs)) await new Promise((resolve) => setTimeout(resolve, pollMs));
      // A person may take minutes to log in. As long as this process lives, its lock stays young.
      const alive = setInterval(() => keepYoung(lock), staleMs / 4);
      try {
        return await body();
      } finally {
        clearInterval(alive);
        if (readLock(lock) === mine) rmSync(lock, { force: true });
      }
    },
  };
}

/** This is our own file; a damaged one counts as missing. */
function parse(text: string): Login | Kept | undefined {
  try {
    const held: unknown = JSON.parse(text);
    return isObject(held) && typeof held["url"] === "string" ? (held as unknown as Login | Kept) : undefined;
  } catch {
    return undefined;
  }
}

function take(lock: string, name: string, staleMs: number): boolean {
  try {
    writeFileSync(lock, name, { flag: "wx", mode: 0o600 });
    return true;
  } catch {
    // The lock is taken. One that outlived its holder is removed, and taken in the next round.
    const age = Date.now() - (statSync(lock, { throwIfNoEntry: false })?.mtimeMs ?? Date.now());
    if (age > staleMs) rmSync(lock, { force: true });
    return false;
  }
}

function keepYoung(lock: string): void {
  try {
    utimesSync(lock, new Date(), new Date());
  } catch {
    // Somebody has removed it, and may hold one of their own by now.
  }
}

function readLock(lock: string): string | undefined {
  try {
    return readFileSync(lock, "utf8");
  } catch {
    return undefined; // it is gone
  }
}
