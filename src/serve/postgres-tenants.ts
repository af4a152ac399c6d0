/** Tokens, rates, use and audit logs of tenants in PostgreSQL, the same for every process of the service. */
import type { JsonObject } from "../base/json.ts";
import type { Role } from "../client/index.ts";
import type { Database } from "../store/postgres/database.ts";
import { nowMs } from "../store/postgres/schema.ts";
import { everyTenant, readLimits, untilRoom, writeLimits, type LimitStore, type TenantLimits } from "./limits.ts";
import type { SharedBooks } from "./quotas.ts";
import type { StoredToken, TokenStore } from "./tenants.ts";

interface TokenRow {
  readonly id: string;
  readonly tenant: string;
  readonly name: string;
  readonly roles: readonly Role[];
  readonly hash: string;
  readonly created_at: string;
  readonly expires_at: string | null;
}

/** Tokens in the database, kept as hashes. */
export function createPostgresTokens(database: Database): TokenStore {
  return {
    async list(tenant) {
      const { rows } = await database
        .as(tenant)
        .query<TokenRow>("select * from callgate.token where tenant = $1 order by created_at", [tenant]);
      return rows.map(toToken);
    },
    async find(hash) {
      // A hash of 256 bits is looked up by equality, and the time that takes reveals nothing about the token.
      const { rows } = await database.query<TokenRow>("select * from callgate.token where hash = $1", [hash]);
      return rows[0] && toToken(rows[0]);
    },
    async add({ id, tenant, name, roles, hash, createdAt, expiresAt }) {
      await database.query(`delete from callgate.token where expires_at <= ${nowMs}`);
      await database
        .as(tenant)
        .query(
          "insert into callgate.token (id, tenant, name, roles, hash, created_at, expires_at) values ($1, $2, $3, $4, $5, $6, $7)",
          [id, tenant, name, [...roles], hash, createdAt, expiresAt ?? null],
        );
    },
    async remove(tenant, id) {
      const { rowCount } = await database
        .as(tenant)
        .query("delete from callgate.token where tenant = $1 and id = $2", [tenant, id]);
      return (rowCount ?? 0) > 0;
    },
  };
}

function toToken({ created_at: createdAt, expires_at: expiresAt, ...row }: TokenRow): StoredToken {
  return { ...row, createdAt, ...(expiresAt === null ? {} : { expiresAt: Number(expiresAt) }) };
}

/** After this long every process sees a changed limit. */
const limitsMs = 1_000;

/** Limits of tenants in the database: the same for every process, after a second at the latest. */
export function createPostgresLimits(database: Database, now: () => number = Date.now): LimitStore {
  const known = new Map<string, { readonly until: number; readonly limits: Promise<Partial<TenantLimits>> }>();
  const read = async (tenant: string): Promise<Partial<TenantLimits>> => {
    const { rows } = await database.query<{ tenant: string; limits: unknown }>(
      "select tenant, limits from callgate.tenant_limits where tenant in ($1, $2)",
      [tenant, everyTenant],
    );
    const of = (name: string) => readLimits(rows.find((row) => row.tenant === name)?.limits ?? {});
    return { ...of(everyTenant), ...of(tenant) };
  };
  return {
    get(tenant) {
      const found = known.get(tenant);
      if (found !== undefined && found.until > now()) return found.limits;
      if (known.size > 10_000) known.clear();
      const limits = read(tenant);
      known.set(tenant, { until: now() + limitsMs, limits });
      limits.catch(() => known.delete(tenant)); // asked again by the next one
      return limits;
    },
    async list() {
      const { rows } = await database.query<{ tenant: string; limits: unknown }>(
        "select tenant, limits from callgate.tenant_limits order by tenant",
      );
      return rows.map(({ tenant, limits }) => ({
        ...(tenant === everyTenant ? {} : { tenant }),
        limits: readLimits(limits),
      }));
    },
    async set(tenant = everyTenant, limits) {
      known.clear();
      if (Object.keys(limits).length === 0)
        await database.query("delete from callgate.tenant_limits where tenant = $1", [tenant]);
      else
        await database.query(
          "insert into callgate.tenant_limits (tenant, limits) values ($1, $2) on conflict (tenant) do update set limits = $2",
          [tenant, JSON.stringify(writeLimits(limits))],
        );
    },
  };
}

/** Rates, use and audit logs of tenants, one for all processes. */
export function createPostgresBooks(database: Database): SharedBooks {
  return {
    rates: {
      async take(what, perMinute) {
        if (perMinute === Infinity) return 0;
        // A bucket that fills evenly. One statement takes from the row and reads it. A caller that asks too often
        // loses nothing of what has been added in the meantime.
        const { rows } = await database.query<{ remaining: number; granted: boolean }>(
          `insert into callgate.rate as bucket (what, remaining, at, granted)
           values ($1, greatest($2::float8 - 1, 0), ${nowMs}, $2::float8 >= 1)
           on conflict (what) do update set at = excluded.at, granted = ${filled} >= 1,
             remaining = ${filled} - case when ${filled} >= 1 then 1 else 0 end
           returning remaining, granted`,
          [what, perMinute],
        );
        const { remaining, granted } = rows[0]!;
        return granted ? 0 : untilRoom(remaining, perMinute);
      },
    },
    usage: {
      async today(tenant) {
        const { rows } = await database
          .as(tenant)
          .query<{ calls: string; usd: number }>(
            `select calls, usd from callgate.usage where tenant = $1 and day = ${today}`,
            [tenant],
          );
        return { calls: Number(rows[0]?.calls ?? 0), usd: rows[0]?.usd ?? 0 };
      },
      async add(tenant, { calls = 0, usd = 0 }) {
        const { rows } = await database.query<{ calls: string; usd: number }>(
          `insert into callgate.usage as used (tenant, day, calls, usd) values ($1, ${today}, $2, $3)
           on conflict (tenant, day) do update set calls = used.calls + $2, usd = used.usd + $3
           returning calls, usd`,
          [tenant, calls, usd],
        );
        return { calls: Number(rows[0]!.calls), usd: rows[0]!.usd };
      },
    },
    audit: (tenant, entry) => appendAudit(database, tenant, entry),
  };
}

/** What a bucket holds now: it fills with the time that has passed. */
const filled = "least($2::float8, greatest(bucket.remaining, 0) + (excluded.at - bucket.at) * $2::float8 / 60000)";
const today = "(now() at time zone 'utc')::date";

/** Each entry carries the hash of the one before it, so that removing or changing one later shows. */
async function appendAudit(database: Database, tenant: string, entry: JsonObject): Promise<void> {
  await database.as(tenant).transaction(async (transaction) => {
    await transaction.query("select pg_advisory_xact_lock(hashtextextended('audit ' || $1::text, 0))", [tenant]);
    await transaction.query(
      `with last as (select n, hash from callgate.audit where tenant = $1 order by n desc limit 1)
       insert into callgate.audit (tenant, n, entry, hash)
       select $1, coalesce((select n from last), 0) + 1, $2::text,
         encode(sha256(convert_to(coalesce((select hash from last), '') || $2::text, 'UTF8')), 'hex')`,
      [tenant, JSON.stringify(entry)],
    );
  });
}
