/**
 * Sessions that many processes may serve: their records, what was sent to them, and their status. The
 * records are the state; everything else can be derived from them. A writer states the number of the
 * record it writes next. A writer that was overtaken is stopped by that number, whatever locks and
 * clocks say.
 */
import type { JsonObject } from "../base/json.ts";
import type { JournalRecord, StoredRecord } from "./journal.ts";

/** The status of a session. */
export type SessionStatus = "idle" | "running" | "waiting" | "faulty" | "ended";

/** A question that waits for a person, and the record that holds it. */
export interface WaitingQuestion {
  readonly callId: string;
  readonly tool: string;
  readonly reason: string;
  readonly hash: string;
  readonly at: number;
  /** The record number of its `approval.asked`. */
  readonly n: number;
}

/** The status of a session, as lists show it. */
export interface StoredSession {
  readonly id: string;
  readonly tenant: string;
  readonly title: string;
  readonly status: SessionStatus;
  readonly model: string;
  readonly cwd: string;
  /** The settings with which it was created. */
  readonly settings: JsonObject;
  readonly startedAt: number;
  readonly updatedAt: number;
  readonly questions: readonly WaitingQuestion[];
  readonly usage?: { readonly input: number; readonly output: number; readonly costUsd?: number };
  /** How often it was taken without a record being written since. A session that kills its process shows here. */
  readonly takings: number;
}

/** What a session begins with in the store. */
export type NewStoredSession = Pick<StoredSession, "id" | "tenant" | "title" | "model" | "cwd" | "settings">;

/** What may be changed of a session. */
export type SessionChange = Partial<
  Pick<StoredSession, "title" | "status" | "model" | "cwd" | "questions" | "usage" | "takings">
>;

/**
 * Something sent to a session. It is kept until a record says that it was taken (`mail` in the record
 * is its number).
 */
export interface Mail {
  readonly id: number;
  readonly kind: "message" | "approval" | "cancel" | "undo";
  readonly body: JsonObject;
  readonly at: number;
}

/** Something that is to be sent to a session. */
export interface NewMail extends Pick<Mail, "kind" | "body"> {
  /** The same key again means the same mail. */
  readonly key?: string;
  /** A hash of the request that the key came with. The key of another request is refused. */
  readonly request?: string;
}

/** Something in the store that listeners are told of. */
export type StoreChange =
  | {
      readonly type: "records";
      readonly id: string;
      readonly tenant: string;
      readonly head: number;
      /** The last of them, where this process has written them: nobody here need read them again. */
      readonly records?: readonly StoredRecord[];
    }
  | { readonly type: "session"; readonly id: string; readonly tenant: string }
  | { readonly type: "removed"; readonly id: string; readonly tenant: string }
  /** `worker` is the process that should look at it at once. */
  | { readonly type: "mail"; readonly id: string; readonly tenant: string; readonly worker?: string }
  /** What happens and is not recorded, such as parts of an answer as they come. */
  | { readonly type: "live"; readonly id: string; readonly tenant: string; readonly event: JsonObject };

/** Which sessions are wanted. */
export interface SessionQuery {
  readonly tenant: string;
  readonly status?: SessionStatus;
  /** Words that the title or the id must contain. */
  readonly q?: string;
  /** Sessions that come after this id in the list's order. */
  readonly before?: string;
  readonly limit: number;
}

/** Where sessions are stored: in files for one process, in PostgreSQL for many. */
export interface SessionStore {
  /**
   * If the tenant already has a session with the same key, that session is returned. Throws KeyReused
   * if it was made with another `request`, a hash of what was asked for.
   */
  create(
    session: NewStoredSession,
    key?: string,
    request?: string,
  ): Promise<{ readonly session: StoredSession; readonly isNew: boolean }>;
  /** What `create` would return for a key that it knows, whatever else a new session would be refused for by now. */
  created(tenant: string, key: string, request?: string): Promise<StoredSession | undefined>;
  get(id: string): Promise<StoredSession | undefined>;
  /** Newest change first. */
  list(query: SessionQuery): Promise<{ readonly sessions: readonly StoredSession[]; readonly more: boolean }>;
  /** How many sessions of a tenant have which status. Those that were recorded elsewhere are not counted. */
  counts(tenant: string): Promise<Readonly<Partial<Record<SessionStatus, number>>>>;
  remove(id: string): Promise<void>;
  /** Records after number `after` (-1: all), in order. */
  read(id: string, after: number, limit?: number): Promise<readonly StoredRecord[]>;
  /** Appends all of the records or none, the first of them as number `at`. Throws Fenced if that number is taken. */
  append(id: string, at: number, records: readonly JournalRecord[]): Promise<void>;
  /** With `at`: only while the next record has this number; throws Fenced otherwise. */
  update(id: string, change: SessionChange, at?: number): Promise<void>;
  /**
   * `wake` is called with new mail. If the store has transactions, it is called within the same one and
   * is given it, so that there is never mail that nobody will look at. It returns the process that
   * should be told at once, if any. Throws KeyReused if the key belongs to another request.
   */
  post(
    id: string,
    mail: NewMail,
    wake?: (transaction?: unknown) => Promise<string | undefined>,
  ): Promise<{ readonly mail: Mail; readonly isNew: boolean }>;
  /** What `post` would return for a key that it knows. Throws KeyReused as `post` does. */
  posted(id: string, key: string, request?: string): Promise<Mail | undefined>;
  /** What was sent and not yet taken, oldest first. */
  mail(id: string): Promise<readonly Mail[]>;
  /** Sessions that have mail, or were running when their process ended. */
  unfinished(): Promise<readonly { readonly id: string; readonly tenant: string }[]>;
  /**
   * Makes the caller the only one that may run the session. The returned function gives it back.
   * Undefined if somebody has it.
   */
  take(id: string): Promise<(() => Promise<void>) | undefined>;
  /** Sends an event to whoever listens now, which may be nobody. */
  publish(id: string, tenant: string, event: JsonObject): void;
  /** With an `id`, only what happens to this session is reported. */
  watch(listener: (change: StoreChange) => void, id?: string): () => void;
  /** The same store for one tenant, without anything that belongs to another. */
  forTenant(tenant: string): SessionStore;
  close(): Promise<void>;
}

/** Another process has written in the meantime, so what this one assumed about the session is out of date. */
export class Fenced extends Error {
  override readonly name = "Fenced";
  constructor(id: string, at: number) {
    super(`another process has gone on with session ${id}: record ${at} is taken`);
  }
}

/** A key that stands for one request came with another. */
export class KeyReused extends Error {
  override readonly name = "KeyReused";
  constructor() {
    super("This Idempotency-Key was used for another request: take a new key for a new request.");
  }
}

/** Throws KeyReused if both are known and differ. What was stored without its request is taken as the same. */
export function checkRequest(stored: string | null | undefined, given: string | undefined): void {
  if (typeof stored === "string" && given !== undefined && stored !== given) throw new KeyReused();
}

/** The store cannot be reached right now. The outcome of the request is unknown, and it can be repeated. */
export class Unavailable extends Error {
  override readonly name = "Unavailable";
  constructor(cause: unknown) {
    // A refused connection comes as a list, with one error for each address that was tried.
    const first: unknown = cause instanceof AggregateError ? cause.errors[0] : cause;
    super(`the store cannot be reached: ${first instanceof Error ? first.message : String(first)}`, { cause });
  }
}

/** The mail that a record says it took. */
export function takenMail(record: JournalRecord): number | undefined {
  return typeof record["mail"] === "number" ? record["mail"] : undefined;
}

/** Records that are written before anything can go wrong. A session that writes only these makes no progress. */
const beginnings = new Set([
  "session.started",
  "turn.resumed",
  "request.sent",
  "call.started",
  "terminals.gone",
  "warning",
]);

/** Whether the record shows progress by whoever took the session. */
export function isProgress({ type }: JournalRecord): boolean {
  return !beginnings.has(type);
}

/** Confines a store without its own walls to one tenant: every session is looked up before it is touched. */
export function confineStore(store: Omit<SessionStore, "forTenant">, tenant: string): SessionStore {
  const own = async (id: string): Promise<StoredSession | undefined> => {
    const session = await store.get(id);
    return session?.tenant === tenant ? session : undefined;
  };
  const need = async (id: string) => {
    if ((await own(id)) === undefined) throw new Error(`there is no session ${id}`);
  };
  const checkTenant = (given: string) => {
    if (given !== tenant) throw new Error(`this store is confined to the tenant ${tenant}`);
  };
  const confined: SessionStore = {
    async create(session, key, request) {
      checkTenant(session.tenant);
      return store.create(session, key, request);
    },
    async created(given, key, request) {
      checkTenant(given);
      return store.created(given, key, request);
    },
    get: own,
    async list(query) {
      checkTenant(query.tenant);
      return store.list(query);
    },
    async counts(given) {
      checkTenant(given);
      return store.counts(given);
    },
    async remove(id) {
      await need(id);
      return store.remove(id);
    },
    read: async (id, after, limit) => ((await own(id)) === undefined ? [] : store.read(id, after, limit)),
    async append(id, at, records) {
      await need(id);
      return store.append(id, at, records);
    },
    async update(id, change, at) {
      await need(id);
      return store.update(id, change, at);
    },
    async post(id, mail, wake) {
      await need(id);
      return store.post(id, mail, wake);
    },
    async posted(id, key, request) {
      await need(id);
      return store.posted(id, key, request);
    },
    async mail(id) {
      await need(id);
      return store.mail(id);
    },
    unfinished: async () => (await store.unfinished()).filter((session) => session.tenant === tenant),
    take: async (id) => ((await own(id)) === undefined ? undefined : store.take(id)),
    publish(id, given, event) {
      checkTenant(given);
      store.publish(id, given, event);
    },
    watch: (listener, id) =>
      store.watch((change) => {
        if (change.tenant === tenant) listener(change);
      }, id),
    forTenant(given) {
      checkTenant(given);
      return confined;
    },
    close: async () => undefined, // the whole store's business
  };
  return confined;
}
