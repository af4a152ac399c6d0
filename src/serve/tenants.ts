/** Who may do what: tokens with a tenant and roles, kept as hashes. */
import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import type { Role } from "../client/index.ts";
import { isObject, parseJson } from "../base/json.ts";

export const roles = ["watch", "talk", "approve", "administer"] as const satisfies readonly Role[];

/** Who a request comes from. */
export interface Principal {
  readonly tenant: string;
  readonly name: string;
  readonly roles: readonly Role[];
}

/** A token, as it is kept. */
export interface StoredToken extends Principal {
  readonly id: string;
  /** SHA-256 of the token, in hex. The token itself is kept nowhere. */
  readonly hash: string;
  readonly createdAt: string;
  /** Milliseconds since the epoch; left out: it lasts until it is removed. */
  readonly expiresAt?: number;
}

/** Where tokens are kept. */
export interface TokenStore {
  list(tenant: string): Promise<readonly StoredToken[]>;
  find(hash: string): Promise<StoredToken | undefined>;
  add(token: StoredToken): Promise<void>;
  /** Removes a token, if it is one of that tenant. */
  remove(tenant: string, id: string): Promise<boolean>;
}

/** Whose token it is to be, and for how long. */
export interface NewToken extends Principal {
  readonly lifetimeMs?: number;
}

/** Gives out a new token, which cannot be shown again. */
export async function issueToken(
  store: TokenStore,
  { lifetimeMs, ...principal }: NewToken,
  now: number = Date.now(),
): Promise<{ readonly id: string; readonly token: string }> {
  const token = `cgs_${randomBytes(24).toString("base64url")}`;
  const id = randomBytes(6).toString("hex");
  await store.add({
    ...principal,
    id,
    hash: hashToken(token),
    createdAt: new Date(now).toISOString(),
    ...(lifetimeMs === undefined ? {} : { expiresAt: now + lifetimeMs }),
  });
  return { id, token };
}

export function hashToken(token: string): string {
  return createHash("sha256").update(token).digest("hex");
}

/** Tokens in one file; without a path in memory, until the process ends. */
export function openTokenFile(path?: string): TokenStore {
  let memory: readonly StoredToken[] = [];
  const read = (): readonly StoredToken[] => {
    if (path === undefined) return memory;
    if (!existsSync(path)) return [];
    const parsed = parseJson(readFileSync(path, "utf8"));
    if (!parsed.ok || !Array.isArray(parsed.value))
      throw new Error(`${path} is not a list of tokens; move it away to start anew`);
    // Our own file, written whole or not at all.
    return parsed.value.filter((entry) => isObject(entry)) as unknown as readonly StoredToken[];
  };
  const write = (tokens: readonly StoredToken[]) => {
    memory = tokens;
    if (path === undefined) return;
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    writeFileSync(`${path}.new`, `${JSON.stringify(tokens, null, 2)}\n`, { mode: 0o600 });
    renameSync(`${path}.new`, path);
  };
  return {
    list: async (tenant) => read().filter((token) => token.tenant === tenant),
    async find(hash) {
      const wanted = Buffer.from(hash, "hex");
      let found: StoredToken | undefined;
      for (const token of read()) if (timingSafeEqual(Buffer.from(token.hash, "hex"), wanted)) found = token;
      return found;
    },
    async add(token) {
      const now = Date.now();
      write([...read().filter(({ expiresAt }) => (expiresAt ?? Infinity) > now), token]);
    },
    async remove(tenant, id) {
      const tokens = read();
      const rest = tokens.filter((token) => token.tenant !== tenant || token.id !== id);
      if (rest.length === tokens.length) return false;
      write(rest);
      return true;
    },
  };
}
