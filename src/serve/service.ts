/** `callgate serve` without HTTP: the store, the runner of sessions, and what every route needs of them. */
import { checkOptions, optionsShape } from "../base/shape.ts";
import type { Json, JsonObject } from "../base/json.ts";
import type { SessionRow } from "../client/index.ts";
import type { Telemetry } from "../result/telemetry.ts";
import type { SessionEvent } from "../session/index.ts";
import type { StoredRecord } from "../store/journal.ts";
import type { NewMail, SessionStore, StoredSession } from "../store/session-store.ts";
import { createLocalDispatcher, type Dispatcher } from "./dispatcher.ts";
import { createEncode, type Encode } from "./events.ts";
import { createServeMetrics, type ServeMetrics } from "./metrics.ts";
import type { OpenSession } from "./open-session.ts";
import { createRunner } from "./runner.ts";
import { defaultLimits } from "./limits.ts";
import { createQuotas, type QuotaOptions, type Quotas } from "./quotas.ts";
import type { Principal, TokenStore } from "./tenants.ts";

/** Options of `createService`. */
export interface ServiceOptions extends QuotaOptions {
  /** Where sessions are stored. */
  readonly store: SessionStore;
  /** Who may use the service. */
  readonly tokens: TokenStore;
  /** How a session is opened, for one wake. Left out: this process only answers requests, others run the sessions. */
  readonly open?: OpenSession;
  /** Left out: this process runs what it is asked for. */
  readonly dispatcher?: Dispatcher;
  /** Sessions that run at once here. */
  readonly places?: number;
  /**
   * Checks what a client asks for. Throws a Problem, or returns where the session works and which settings
   * are stored.
   */
  readonly checkSettings: (
    tenant: string,
    wanted: JsonObject,
  ) => Promise<{ readonly cwd: string; readonly settings: JsonObject }>;
  /** What the routes about tools, rules and policy answer. */
  readonly look: Look;
  /** Writes a session as Markdown. Left out: the service has no such form. */
  readonly toMarkdown?: (session: SessionRow, records: readonly StoredRecord[]) => string;
  /** Your program's version, which clients are told. */
  readonly version: string;
  /** The tenant that runs the service: it alone sees figures about all of them. */
  readonly operator?: string;
  /** The model of sessions that name none. */
  readonly model: string;
  /** What `createTelemetry` gives: turns, requests and calls of every session as spans. */
  readonly telemetry?: Telemetry;
  /** Randomness for ids, for tests. */
  readonly random?: () => number;
}

/** The tools, the rules, and the policy's decision about a command, as the commands print them. */
export interface Look {
  tools(): Promise<Json>;
  rules(): Promise<Json>;
  checkPolicy(wanted: JsonObject): Promise<Json>;
}

/** Sessions of many users, with everything the HTTP API needs. */
export interface Service
  extends
    Pick<ServiceOptions, "store" | "tokens" | "checkSettings" | "look" | "toMarkdown" | "version" | "model">,
    Quotas {
  /** The same service with only the part that one tenant may see. */
  forTenant(tenant: string): Service;
  readonly operator: string;
  readonly metrics: ServeMetrics;
  now(): number;
  random(): number;
  countSessions(tenant: string): Promise<number>;
  /** Sends something to a session, and makes sure that a process will look at it. */
  post(session: StoredSession, mail: NewMail): ReturnType<SessionStore["post"]>;
  /** Events as text, made once for all who listen. */
  readonly encode: Encode;
  /** Runs a stream, within the number of streams that the tenant may have open. */
  listening(who: Principal, follow: () => Promise<void>): Promise<void>;
  /** Called when the service stops, for streams that would not end by themselves. To be forgotten when one has ended. */
  onStop(end: () => void): () => void;
  readonly isStopping: boolean;
  /** Takes nothing new, lets running calls end, and leaves open turns to the next process. */
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
  const metrics = createServeMetrics();
  const { refusal, add, flush, ...quotas } = createQuotas(options, (tenant) => runner?.interrupt(tenant) ?? false);
  const listeners = new Map<string, number>();
  const ends = new Set<() => void>();
  let isStopping = false;

  /** What each running session had cost when it was last heard of. */
  const spent = new Map<string, number>();
  const book = ({ id, tenant, usage }: StoredSession, event: SessionEvent) => {
    metrics.heard(event);
    if (event.type === "call.ended") add(tenant, { calls: 1, usd: 0 });
    if (event.type !== "usage.updated" || event.costUsd === undefined) return;
    add(tenant, { calls: 0, usd: event.costUsd - (spent.get(id) ?? usage?.costUsd ?? 0) });
    spent.set(id, event.costUsd);
  };
  const runner =
    options.open === undefined
      ? undefined
      : createRunner({
          store,
          open: options.open,
          refuse: ({ tenant }) => refusal(tenant),
          onEvent: book,
          onError: (error, id) => onError?.(error, `session ${id}`),
          ...(options.telemetry === undefined ? {} : { telemetry: options.telemetry }),
        });
  /** The dispatcher cannot wait for an answer, so a tenant's limit is looked up when one of its sessions is woken. */
  const mayRun = new Map<string, number>();
  const dispatcher =
    options.dispatcher ??
    createLocalDispatcher({
      placesPerTenant: (tenant) => mayRun.get(tenant) ?? defaultLimits.running,
      onError: (error, id) => onError?.(error, `session ${id}`),
      ...(options.places === undefined ? {} : { places: options.places }),
    });
  const wake: Dispatcher["wake"] = async (id, tenant, when) => {
    if (options.dispatcher === undefined) mayRun.set(tenant, (await quotas.limits(tenant)).running);
    return dispatcher.wake(id, tenant, when);
  };
  if (runner !== undefined) {
    await dispatcher.start(async (id) => {
      metrics.count("wakes");
      await runner.run(id).finally(() => spent.delete(id));
    });
    // With several processes, another one may be running these; then the dispatcher finds those that nobody runs.
    if (options.dispatcher === undefined) for (const { id, tenant } of await store.unfinished()) await wake(id, tenant);
  }

  const encode = createEncode();
  const serviceOn = (own: SessionStore): Service => ({
    store: own,
    tokens,
    checkSettings: options.checkSettings,
    look: options.look,
    version: options.version,
    operator: options.operator ?? "main",
    model: options.model,
    ...(options.toMarkdown === undefined ? {} : { toMarkdown: options.toMarkdown }),
    ...quotas,
    encode,
    forTenant: (tenant) => serviceOn(store.forTenant(tenant)),
    metrics,
    now,
    random,
    async countSessions(tenant) {
      return Object.values(await own.counts(tenant)).reduce((sum, n) => sum + n, 0);
    },
    post: ({ id, tenant }, mail) =>
      own.post(id, mail, (transaction) => wake(id, tenant, transaction === undefined ? {} : { transaction })),
    async listening(who, follow) {
      const { tenant } = who;
      const { listeners: most } = await quotas.limits(tenant);
      const open = listeners.get(tenant) ?? 0;
      if (open >= most) throw quotas.tooMany(who, "listeners", `The tenant may have ${most} streams open.`, 10_000);
      listeners.set(tenant, open + 1);
      metrics.gauge("listeners", 1);
      try {
        await follow();
      } finally {
        metrics.gauge("listeners", -1);
        listeners.set(tenant, (listeners.get(tenant) ?? 1) - 1);
      }
    },
    onStop(end) {
      ends.add(end);
      return () => void ends.delete(end);
    },
    get isStopping() {
      return isStopping;
    },
    async stop() {
      isStopping = true;
      runner?.drain();
      await dispatcher.stop();
      await flush();
      for (const end of ends) end();
      await store.close();
    },
  });
  return serviceOn(store);
}
