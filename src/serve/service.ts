/** `callgate serve` without HTTP: the store, whoever runs sessions, and what every route needs of them. */
import { checkOptions, optionsShape } from "../base/shape.ts";
import type { Json, JsonObject } from "../base/json.ts";
import type { SessionRow } from "../client/index.ts";
import type { Telemetry } from "../result/telemetry.ts";
import type { SessionEvent } from "../session/index.ts";
import { createAudit } from "../store/audit.ts";
import type { StoredRecord } from "../store/journal.ts";
import { takenMail, type NewMail, type SessionStore, type StoredSession } from "../store/session-store.ts";
import { createLocalDispatcher, type Dispatcher } from "./dispatcher.ts";
import { createServeMetrics, type ServeMetrics } from "./metrics.ts";
import { Problem } from "./problem.ts";
import type { OpenSession } from "./open-session.ts";
import { createRunner } from "./runner.ts";
import {
  createRates,
  createUsageBook,
  defaultLimits,
  type Principal,
  type Rates,
  type TenantLimits,
  type TenantUsage,
  type TokenStore,
  type UsageBook,
} from "./tenants.ts";

/** Options of `createService`. */
export interface ServiceOptions {
  readonly store: SessionStore;
  readonly tokens: TokenStore;
  /** How a session is opened, for one wake. Left out: this process only answers requests, others run the sessions. */
  readonly open?: OpenSession;
  /** Left out: this process runs what it is asked for. */
  readonly dispatcher?: Dispatcher;
  /** Sessions that run at once here. */
  readonly places?: number;
  readonly limits?: (tenant: string) => Partial<TenantLimits>;
  /** What a client may ask for: throws a Problem, or says where the session works and what is kept of its wishes. */
  readonly checkSettings: (
    tenant: string,
    wanted: JsonObject,
  ) => Promise<{ readonly cwd: string; readonly settings: JsonObject }>;
  readonly look: Look;
  readonly toMarkdown?: (session: SessionRow, records: readonly StoredRecord[]) => string;
  readonly version: string;
  /** The tenant that runs the service: it alone sees figures about all of them. */
  readonly operator?: string;
  /** The model of sessions that name none. */
  readonly model: string;
  /** Audit logs, one a tenant, and what tenants have used are kept below this folder. Left out: nowhere. */
  readonly folder?: string;
  /** The same, and the rate of messages, where several processes share them. */
  readonly shared?: SharedBooks;
  /** What `createTelemetry` gives: turns, requests and calls of every session as spans. */
  readonly telemetry?: Telemetry;
  readonly onError?: (error: unknown, where: string) => void;
  readonly now?: () => number;
  readonly random?: () => number;
}

/** The tools, the rules, and the policy's word about a command, as the commands print them. */
export interface Look {
  tools(): Promise<Json>;
  rules(): Promise<Json>;
  checkPolicy(wanted: JsonObject): Promise<Json>;
}

/** What tenants have used and asked for, kept for all processes of a service. */
export interface SharedBooks {
  readonly rates: Rates;
  readonly usage: UsageBook;
  audit(tenant: string, entry: JsonObject): Promise<void>;
}

/** Sessions of many users, with everything the HTTP API needs. */
export interface Service extends Pick<
  ServiceOptions,
  "store" | "tokens" | "checkSettings" | "look" | "toMarkdown" | "version" | "model"
> {
  readonly rates: Rates;
  /** Of messages: the same bucket for every process. */
  readonly messageRates: Rates;
  /** The same service, of which one tenant sees its own part. */
  forTenant(tenant: string): Service;
  readonly operator: string;
  readonly metrics: ServeMetrics;
  now(): number;
  random(): number;
  limits(tenant: string): TenantLimits;
  countSessions(tenant: string): Promise<number>;
  /** Sends something to a session; somebody will look at it. */
  post(session: StoredSession, mail: NewMail): ReturnType<SessionStore["post"]>;
  audit(who: Principal, action: string, about: JsonObject): void;
  /** Runs a stream within the tenant's number of them. */
  listening(tenant: string, follow: () => Promise<void>): Promise<void>;
  /** Called when the service stops, for streams that would not end by themselves. */
  onStop(end: () => void): void;
  /** The record that took a mail, once there is one; undefined after `waitMs`. */
  untilTaken(id: string, mail: number, waitMs: number): Promise<StoredRecord | undefined>;
  readonly isStopping: boolean;
  /** Takes nothing new, lets running calls end, leaves open turns for whoever goes on with them. */
  stop(): Promise<void>;
}

const serviceShape = optionsShape<ServiceOptions>(
  {
    store: "table",
    tokens: "table",
    open: "function",
    dispatcher: "table",
    shared: "table",
    places: { above: 0 },
    limits: "function",
    checkSettings: "function",
    look: "any",
    toMarkdown: "function",
    version: "string",
    operator: "string",
    model: "string",
    folder: "string",
    telemetry: "table",
    onError: "function",
    now: "function",
    random: "function",
  },
  "store",
  "tokens",
  "checkSettings",
  "look",
  "version",
  "model",
);

/** A service over a store; `startServing` gives it an address. */
/* oxlint-disable-next-line max-lines-per-function -- one service: its functions share what is counted and who runs */
export async function createService(options: ServiceOptions): Promise<Service> {
  checkOptions("createService", options, serviceShape);
  const { store, tokens, now = Date.now, random = Math.random, onError } = options;
  const limits = (tenant: string): TenantLimits => ({ ...defaultLimits, ...options.limits?.(tenant) });
  const metrics = createServeMetrics();
  const usage = options.shared?.usage ?? createUsageBook(options.folder && `${options.folder}/usage.json`, now);
  const fail = (error: unknown) => onError?.(error, "usage");
  const addUsage = (tenant: string, used: Partial<TenantUsage>) => {
    const added = usage.add(tenant, used);
    if (added instanceof Promise) added.catch(fail);
  };
  const listeners = new Map<string, number>();
  const ends = new Set<() => void>();
  let isStopping = false;

  const book = ({ tenant }: StoredSession, event: SessionEvent, spent: Map<string, number>, id: string) => {
    metrics.heard(event);
    if (event.type === "call.ended") addUsage(tenant, { calls: 1 });
    if (event.type === "usage.updated" && event.costUsd !== undefined) {
      addUsage(tenant, { usd: event.costUsd - (spent.get(id) ?? event.costUsd) });
      spent.set(id, event.costUsd);
    }
  };
  const spent = new Map<string, number>();
  const runner =
    options.open === undefined
      ? undefined
      : createRunner({
          store,
          open: options.open,
          async refuse({ tenant }) {
            const { calls, usd } = await usage.today(tenant);
            const { callsPerDay, usdPerDay } = limits(tenant);
            if (calls >= callsPerDay) return `The tenant has made its ${callsPerDay} calls of today.`;
            if (usd >= usdPerDay) return `The tenant has spent its ${usdPerDay} US dollars of today.`;
            return undefined;
          },
          onEvent(session, event) {
            if (!spent.has(session.id)) spent.set(session.id, session.usage?.costUsd ?? 0);
            book(session, event, spent, session.id);
          },
          onError: (error, id) => onError?.(error, `session ${id}`),
          ...(options.telemetry === undefined ? {} : { telemetry: options.telemetry }),
        });
  const dispatcher =
    options.dispatcher ??
    createLocalDispatcher({
      placesPerTenant: (tenant) => limits(tenant).running,
      onError: (error, id) => onError?.(error, `session ${id}`),
      ...(options.places === undefined ? {} : { places: options.places }),
    });
  if (runner !== undefined) {
    await dispatcher.start(async (id) => {
      metrics.count("wakes");
      await runner.run(id);
      spent.delete(id);
    });
    // Others may be running them where there are others; their dispatcher finds what nobody runs.
    if (options.dispatcher === undefined)
      for (const { id, tenant } of await store.unfinished()) await dispatcher.wake(id, tenant);
  }
  const rates = createRates(now);
  const audit = createAudits(options, onError);

  const serviceOn = (own: SessionStore): Service => ({
    store: own,
    tokens,
    checkSettings: options.checkSettings,
    look: options.look,
    version: options.version,
    operator: options.operator ?? "main",
    model: options.model,
    ...(options.toMarkdown === undefined ? {} : { toMarkdown: options.toMarkdown }),
    rates,
    messageRates: options.shared?.rates ?? rates,
    forTenant: (tenant) => serviceOn(store.forTenant(tenant)),
    metrics,
    now,
    random,
    limits,
    async countSessions(tenant) {
      return Object.values(await own.counts(tenant)).reduce((sum, n) => sum + n, 0);
    },
    post: ({ id, tenant }, mail) =>
      own.post(id, mail, (transaction) =>
        dispatcher.wake(id, tenant, transaction === undefined ? {} : { transaction }),
      ),
    audit,
    async listening(tenant, follow) {
      const open = listeners.get(tenant) ?? 0;
      if (open >= limits(tenant).listeners) throw new Problem(429, "listeners", "Too many streams are open.");
      listeners.set(tenant, open + 1);
      metrics.gauge("listeners", 1);
      try {
        await follow();
      } finally {
        metrics.gauge("listeners", -1);
        listeners.set(tenant, (listeners.get(tenant) ?? 1) - 1);
      }
    },
    onStop: (end) => void ends.add(end),
    untilTaken: (id, mail, waitMs) => untilTaken(own, id, mail, waitMs),
    get isStopping() {
      return isStopping;
    },
    async stop() {
      isStopping = true;
      runner?.drain();
      await dispatcher.stop();
      for (const end of ends) end();
      await store.close();
    },
  });
  return serviceOn(store);
}

/** One log a tenant: who asked for what. */
function createAudits({ folder, shared }: ServiceOptions, onError: ServiceOptions["onError"]): Service["audit"] {
  const logs = new Map<string, (entry: JsonObject) => void>();
  return ({ tenant, name }, action, about) => {
    const entry = { who: name, action, ...about };
    if (shared !== undefined)
      return void shared.audit(tenant, entry).catch((error: unknown) => onError?.(error, "audit"));
    if (folder === undefined) return;
    let append = logs.get(tenant);
    if (append === undefined) {
      const log = createAudit({ path: `${folder}/tenants/${encodeURIComponent(tenant)}/audit.jsonl` });
      logs.set(tenant, (append = log.append));
    }
    append(entry);
  };
}

async function untilTaken(
  store: SessionStore,
  id: string,
  mail: number,
  waitMs: number,
): Promise<StoredRecord | undefined> {
  let after = -1;
  let stop = () => {};
  let timer: NodeJS.Timeout | undefined;
  const look = async () => {
    const records = await store.read(id, after);
    after = records.at(-1)?.n ?? after;
    return records.find((record) => takenMail(record) === mail);
  };
  try {
    return await new Promise((resolve, reject) => {
      const tryNow = () =>
        void look().then((found) => {
          if (found !== undefined) resolve(found);
        }, reject);
      stop = store.watch((change) => {
        if (change.id === id && change.type === "records") tryNow();
      });
      timer = setTimeout(() => resolve(undefined), waitMs);
      tryNow();
    });
  } finally {
    stop();
    clearTimeout(timer);
  }
}
