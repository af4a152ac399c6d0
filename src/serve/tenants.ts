/** Who may do what: tokens with a tenant and roles, kept as hashes; how much a tenant may use, and what it has used. */
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
  /** Only a token of that tenant. */
  remove(tenant: string, id: string): Promise<boolean>;
}

/** Whose token it is to be, and for how long. */
export interface NewToken extends Principal {
  readonly lifetimeMs?: number;
}

/** The new token: it cannot be shown again. */
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

/** In one file; without a path in memory, until the process ends. */
export function createTokenFile(path?: string): TokenStore {
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

/** What one tenant may use. */
export interface TenantLimits {
  /** Sessions that run at once; the others wait. */
  readonly running: number;
  readonly sessions: number;
  readonly messagesPerMinute: number;
  readonly requestsPerMinute: number;
  /** Streams of events open at once. */
  readonly listeners: number;
  readonly callsPerDay: number;
  readonly usdPerDay: number;
}

export const defaultLimits: TenantLimits = {
  running: 50,
  sessions: 10_000,
  messagesPerMinute: 120,
  requestsPerMinute: 6_000,
  listeners: 2_000,
  callsPerDay: Infinity,
  usdPerDay: Infinity,
};

/** Counts how often something was done within a minute. */
export interface Rates {
  /** True where one more is within the rate; it is counted then. */
  take(what: string, perMinute: number): boolean | Promise<boolean>;
}

/** Buckets that fill evenly: a rate a minute, of which a whole minute's worth may come at once. */
export function createRates(now: () => number = Date.now): Rates {
  const buckets = new Map<string, { left: number; at: number }>();
  return {
    take(what, perMinute) {
      if (perMinute === Infinity) return true;
      const at = now();
      // A full bucket remembers nothing: whoever has been quiet for a minute is as new.
      if (buckets.size > 10_000) for (const [key, one] of buckets) if (at - one.at > 60_000) buckets.delete(key);
      const bucket = buckets.get(what) ?? { left: perMinute, at };
      const left = Math.min(perMinute, bucket.left + ((at - bucket.at) * perMinute) / 60_000);
      buckets.set(what, { left: left >= 1 ? left - 1 : left, at });
      return left >= 1;
    },
  };
}

/** What a tenant has used of its day. */
export interface TenantUsage {
  readonly calls: number;
  readonly usd: number;
}

/** Counts what tenants use. */
export interface UsageBook {
  /** Of today, in UTC. */
  today(tenant: string): TenantUsage | Promise<TenantUsage>;
  add(tenant: string, used: Partial<TenantUsage>): void | Promise<void>;
}

/** Per tenant and day, kept in one file; without a path in memory. */
export function createUsageBook(path?: string, now: () => number = Date.now): UsageBook {
  const dayOf = (at: number) => new Date(at).toISOString().slice(0, 10);
  let day = dayOf(now());
  const used = new Map<string, TenantUsage>();
  const parsed = path !== undefined && existsSync(path) ? parseJson(readFileSync(path, "utf8")) : undefined;
  if (parsed?.ok && isObject(parsed.value) && parsed.value["day"] === day && isObject(parsed.value["tenants"]))
    for (const [tenant, one] of Object.entries(parsed.value["tenants"]))
      used.set(tenant, one as unknown as TenantUsage);
  const turnDay = () => {
    if (dayOf(now()) === day) return;
    day = dayOf(now());
    used.clear();
  };
  return {
    today(tenant) {
      turnDay();
      return used.get(tenant) ?? { calls: 0, usd: 0 };
    },
    add(tenant, { calls = 0, usd = 0 }) {
      turnDay();
      const before = used.get(tenant) ?? { calls: 0, usd: 0 };
      used.set(tenant, { calls: before.calls + calls, usd: before.usd + usd });
      if (path === undefined) return;
      mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
      writeFileSync(`${path}.new`, JSON.stringify({ day, tenants: Object.fromEntries(used) }), { mode: 0o600 });
      renameSync(`${path}.new`, path);
    },
  };
}
