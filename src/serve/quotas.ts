/** Enforces the limits of tenants: rates and budgets are used up, and refusals say when to try again and are logged. */
import type { JsonObject } from "../base/json.ts";
import { openAudit } from "../store/audit.ts";
import {
  createRates,
  createUsageBook,
  createUsageMeter,
  defaultLimits,
  untilTomorrow,
  type Rates,
  type TenantLimits,
  type TenantUsage,
  type UsageBook,
} from "./limits.ts";
import { Problem } from "./problem.ts";
import type { Principal } from "./tenants.ts";

/** What is asked of the limits, for every tenant. */
export interface Quotas {
  /** Rates for guesses at tokens and similar, counted by this process alone. */
  readonly rates: Rates;
  limits(tenant: string): Promise<TenantLimits>;
  usage(tenant: string): Promise<TenantUsage>;
  /** Takes one from the tenant's rate, or throws the Problem that says when there is room again. */
  takeRate(who: Principal, what: "messages" | "requests"): Promise<void>;
  /** Throws the Problem if the tenant has used up its day. */
  checkBudget(who: Principal): Promise<void>;
  /** A refusal because of a limit. It is logged for the tenant, at most once a minute for each kind. */
  tooMany(who: Principal, kind: string, detail: string, retryAfterMs: number): Problem;
  audit(who: Principal, action: string, about: JsonObject): void;
}

/** The same, with what only the runner of sessions needs. */
export interface OwnQuotas extends Quotas {
  /** Why the tenant may begin no turn now, or undefined. */
  refusal(tenant: string): Promise<string | undefined>;
  add(tenant: string, used: TenantUsage): void;
  flush(): Promise<void>;
}

/** What tenants have used and asked for, shared by all processes of a service. */
export interface SharedBooks {
  readonly rates: Rates;
  readonly usage: UsageBook;
  audit(tenant: string, entry: JsonObject): Promise<void>;
}

/** The options of the service that say what tenants may use, and where that is stored. */
export interface QuotaOptions {
  /** What a tenant may use, if not the default. Called for each request, so it may change at any time. */
  readonly limits?: (tenant: string) => Partial<TenantLimits> | Promise<Partial<TenantLimits>>;
  /** The folder for audit logs, one per tenant, and for what tenants have used. Left out: nothing is stored. */
  readonly folder?: string;
  /** The same and the rate of messages, if several processes share them. */
  readonly shared?: SharedBooks;
  /** Called with what went wrong, and where. */
  readonly onError?: (error: unknown, where: string) => void;
  /** The clock, for tests. */
  readonly now?: () => number;
}

/**
 * `onSpent` is called for a tenant that continues although its day is used up. Returns whether there
 * was something to end.
 */
export function createQuotas(options: QuotaOptions, onSpent: (tenant: string) => boolean): OwnQuotas {
  const { shared, folder, now = Date.now, onError } = options;
  const rates = createRates(now);
  const messageRates = shared?.rates ?? rates;
  const book = shared?.usage ?? createUsageBook(folder && `${folder}/usage.json`, now);
  const audit = createAudits(options);

  const limits = async (tenant: string): Promise<TenantLimits> => ({
    ...defaultLimits,
    ...(await options.limits?.(tenant)),
  });
  const words = async (tenant: string, used: (tenant: string) => TenantUsage | Promise<TenantUsage>) => {
    const { callsPerDay, usdPerDay } = await limits(tenant);
    if (callsPerDay === Infinity && usdPerDay === Infinity) return undefined;
    const { calls, usd } = await used(tenant);
    if (calls >= callsPerDay) return `The tenant has made its ${callsPerDay} calls of today (UTC).`;
    return usd >= usdPerDay ? `The tenant has spent its ${usdPerDay} US dollars of today (UTC).` : undefined;
  };
  const refusal = (tenant: string) => words(tenant, (one) => book.today(one));
  const meter = createUsageMeter(
    book,
    async (tenant, sum) => {
      const detail = await words(tenant, () => sum);
      if (detail !== undefined && onSpent(tenant)) audit({ tenant, name: "service", roles: [] }, "budget", { detail });
    },
    (error) => onError?.(error, "usage"),
  );
  const tooMany: Quotas["tooMany"] = (who, kind, detail, retryAfterMs) => {
    if (rates.take(`noted ${kind} ${who.tenant}`, 1) === 0) audit(who, "refused", { limit: kind, detail });
    return new Problem(429, kind, detail, retryAfterMs);
  };
  return {
    ...meter,
    rates,
    limits,
    refusal,
    tooMany,
    audit,
    usage: async (tenant) => book.today(tenant),
    async takeRate(who, what) {
      const { tenant } = who;
      const perMinute = (await limits(tenant))[`${what}PerMinute`];
      const waitMs = await (what === "messages" ? messageRates : rates).take(`${what} ${tenant}`, perMinute);
      if (waitMs > 0) throw tooMany(who, "rate", `The tenant may send ${perMinute} ${what} a minute.`, waitMs);
    },
    async checkBudget(who) {
      const spent = await refusal(who.tenant);
      if (spent !== undefined) throw tooMany(who, "budget", spent, untilTomorrow(now()));
    },
  };
}

/** One log a tenant: who asked for what. */
function createAudits({ folder, shared, onError }: QuotaOptions): Quotas["audit"] {
  const logs = new Map<string, (entry: JsonObject) => void>();
  return ({ tenant, name }, action, about) => {
    const entry = { who: name, action, ...about };
    if (shared !== undefined)
      return void shared.audit(tenant, entry).catch((error: unknown) => onError?.(error, "audit"));
    if (folder === undefined) return;
    let append = logs.get(tenant);
    if (append === undefined) {
      const log = openAudit({ path: `${folder}/tenants/${encodeURIComponent(tenant)}/audit.jsonl` });
      logs.set(tenant, (append = log.append));
    }
    append(entry);
  };
}
