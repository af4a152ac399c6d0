/**
 * How much a tenant may use, how fast, and what it has used. Each tenant is counted separately, so
 * that none holds up another.
 */
import { existsSync, mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { isObject, parseJson, type JsonObject } from "../base/json.ts";
import { nearest } from "../base/text.ts";

/** What one tenant may use. `Infinity` means no limit. */
export interface TenantLimits {
  /** Sessions that run at once; the others wait. */
  readonly running: number;
  /** Sessions that are kept. */
  readonly sessions: number;
  readonly messagesPerMinute: number;
  readonly requestsPerMinute: number;
  /** Streams of events open at once, on one process. */
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

// The names are the type's own.
export const limitNames = Object.keys(defaultLimits) as readonly (keyof TenantLimits)[];

/** Limits of single tenants, and those of all others, stored where every process sees them. */
export interface LimitStore {
  /** What differs from the defaults. */
  get(tenant: string): Partial<TenantLimits> | Promise<Partial<TenantLimits>>;
  /** An entry without a tenant applies to every tenant that does not have its own. */
  list(): Promise<readonly { readonly tenant?: string; readonly limits: Partial<TenantLimits> }[]>;
  /** Replaces what was set before. An empty object removes it. */
  set(tenant: string | undefined, limits: Partial<TenantLimits>): Promise<void>;
}

/** The name under which the limits of all other tenants are stored. No tenant can have it. */
export const everyTenant = "*";

/** Tenants' limits in one file, which is read again if it has changed. */
export function openLimitFile(path: string): LimitStore {
  let known: { readonly stamp: string; readonly limits: ReadonlyMap<string, Partial<TenantLimits>> } | undefined;
  const read = (): ReadonlyMap<string, Partial<TenantLimits>> => {
    const stat = statSync(path, { throwIfNoEntry: false });
    const stamp = `${stat?.mtimeMs} ${stat?.ino} ${stat?.size}`;
    if (known?.stamp !== stamp) known = { stamp, limits: stat === undefined ? new Map() : readLimitFile(path) };
    return known.limits;
  };
  return {
    get: (tenant) => ({ ...read().get(everyTenant), ...read().get(tenant) }),
    list: async () => [...read()].map(([tenant, limits]) => (tenant === everyTenant ? { limits } : { tenant, limits })),
    async set(tenant = everyTenant, limits) {
      const all = new Map(read());
      if (Object.keys(limits).length === 0) all.delete(tenant);
      else all.set(tenant, limits);
      const rows = [...all].map(([name, one]) => [name, writeLimits(one)]);
      mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
      writeFileSync(`${path}.new`, `${JSON.stringify(Object.fromEntries(rows), null, 2)}\n`, { mode: 0o600 });
      renameSync(`${path}.new`, path);
    },
  };
}

function readLimitFile(path: string): ReadonlyMap<string, Partial<TenantLimits>> {
  const parsed = parseJson(readFileSync(path, "utf8"));
  if (!parsed.ok || !isObject(parsed.value)) throw new Error(`${path} is no table of limits by tenant`);
  return new Map(Object.entries(parsed.value).map(([tenant, limits]) => [tenant, readLimits(limits)]));
}

/** JSON has no infinity, so null stands for it. */
export function writeLimits(limits: Partial<TenantLimits>): JsonObject {
  return Object.fromEntries(Object.entries(limits).map(([name, n]) => [name, n === Infinity ? null : n]));
}

/** Throws if something is not a limit, because an unknown word would be a limit that nobody enforces. */
export function readLimits(given: unknown): Partial<TenantLimits> {
  if (!isObject(given)) throw new Error("limits are a table of names and numbers");
  return Object.fromEntries(
    Object.entries(given).map(([name, n]) => {
      if (!limitNames.some((known) => known === name)) {
        const [meant] = nearest(name, limitNames, 1);
        throw new Error(`there is no limit '${name}'${meant === undefined ? "" : `; did you mean '${meant}'?`}`);
      }
      if (n !== null && !(typeof n === "number" && n >= 0)) throw new Error(`the limit '${name}' is no number`);
      return [name, n ?? Infinity];
    }),
  );
}

/** Counts how often something was done within a minute. */
export interface Rates {
  /** 0 if one more is within the rate, which then counts it; otherwise the milliseconds until there is room again. */
  take(what: string, perMinute: number): number | Promise<number>;
}

/** Buckets that fill evenly: a rate per minute, of which a whole minute's worth may come at once. */
export function createRates(now: () => number = Date.now): Rates {
  const buckets = new Map<string, { left: number; at: number }>();
  return {
    take(what, perMinute) {
      if (perMinute === Infinity) return 0;
      const at = now();
      // A full bucket holds no information, because a caller that was quiet for a minute is as good as new.
      if (buckets.size > 10_000) for (const [key, one] of buckets) if (at - one.at > 60_000) buckets.delete(key);
      const bucket = buckets.get(what) ?? { left: perMinute, at };
      const left = Math.min(perMinute, bucket.left + ((at - bucket.at) * perMinute) / 60_000);
      buckets.set(what, { left: left >= 1 ? left - 1 : left, at });
      return left >= 1 ? 0 : untilRoom(left, perMinute);
    },
  };
}

/** How long a bucket with less than one takes to have one. A rate below one per minute never has one. */
export function untilRoom(left: number, perMinute: number): number {
  return perMinute < 1 ? 60_000 : Math.ceil(((1 - left) * 60_000) / perMinute);
}

/** What a tenant has used of its day. */
export interface TenantUsage {
  readonly calls: number;
  readonly usd: number;
}

/** Counts what tenants use. */
export interface UsageBook {
  /** What the tenant has used today, in UTC. */
  today(tenant: string): TenantUsage | Promise<TenantUsage>;
  /** Adds to today's use, and returns the sum. */
  add(tenant: string, used: Partial<TenantUsage>): TenantUsage | Promise<TenantUsage>;
}

/** Milliseconds until the next day begins, in UTC, when a daily budget starts again. */
export function untilTomorrow(now: number): number {
  const day = 86_400_000;
  return day - (now % day);
}

/** Per tenant and day, stored in one file, or in memory without a path. */
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
      const after = { calls: before.calls + calls, usd: before.usd + usd };
      used.set(tenant, after);
      if (path === undefined) return after;
      mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
      writeFileSync(`${path}.new`, JSON.stringify({ day, tenants: Object.fromEntries(used) }), { mode: 0o600 });
      renameSync(`${path}.new`, path);
      return after;
    },
  };
}

/** Use is collected for a moment, because hundreds of sessions of one tenant may end a call in the same second. */
export interface UsageMeter {
  add(tenant: string, used: TenantUsage): void;
  flush(): Promise<void>;
}

const gatherMs = 200;

export function createUsageMeter(
  book: UsageBook,
  onSum: (tenant: string, sum: TenantUsage) => Promise<void>,
  onError: (error: unknown) => void,
): UsageMeter {
  let gathered = new Map<string, TenantUsage>();
  let timer: NodeJS.Timeout | undefined;
  const flush = async () => {
    clearTimeout(timer);
    timer = undefined;
    const used = gathered;
    gathered = new Map();
    for (const [tenant, one] of used)
      try {
        await onSum(tenant, await book.add(tenant, one));
      } catch (error) {
        onError(error);
      }
  };
  return {
    add(tenant, { calls, usd }) {
      const before = gathered.get(tenant) ?? { calls: 0, usd: 0 };
      gathered.set(tenant, { calls: before.calls + calls, usd: before.usd + usd });
      timer ??= setTimeout(() => void flush(), gatherMs).unref();
    },
    flush,
  };
}
