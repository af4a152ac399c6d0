/** Sessions in a folder, served by one process: a journal, a small state file and a mailbox for each. */
import { checkOptions, optionsShape } from "../base/shape.ts";
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { defined, isObject, parseJson } from "../base/json.ts";
import { openJournal, readJournal, type Journal, type StoredRecord } from "./journal.ts";
import { lockFile } from "./lock.ts";
import {
  checkRequest,
  confineStore,
  Fenced,
  isProgress,
  takenMail,
  type Mail,
  type NewMail,
  type SessionStatus,
  type SessionStore,
  type StoredSession,
} from "./session-store.ts";
import { createListeners } from "./listeners.ts";
import { findRecorded, listRecorded, sessionPath, tenantFolder } from "./sessions.ts";
import { appendToFile } from "./whole.ts";

/** Options of `createFileStore`. */
export interface FileStoreOptions {
  /** Where everything lies. */
  readonly folder: string;
  /** Sessions of this tenant are ordinary journals of `folder`, so that `callgate sessions` lists them. */
  readonly ownTenant?: string;
  /** The clock, for tests. */
  readonly now?: () => number;
}

interface Held {
  session: StoredSession;
  readonly key?: string;
  readonly request?: string;
  mailbox?: Mailbox;
  journal?: Journal;
  /** The last records written here, so that a follower of a running session need not read everything again. */
  recent: StoredRecord[];
}

interface Mailbox {
  readonly mails: (Mail & Pick<NewMail, "key" | "request">)[];
  readonly taken: Set<number>;
}

const maxRecent = 2_000;
/** How long a parsed journal is kept after it was last used. */
const parsedMs = 2_000;

const shape = optionsShape<FileStoreOptions>({ folder: "string", ownTenant: "string", now: "function" }, "folder");

/** A session store in a folder, for a service of one process. Throws where another process serves this folder. */
/* oxlint-disable-next-line max-lines-per-function -- one store: its functions share the folder and what is held of it */
export function createFileStore(options: FileStoreOptions): SessionStore {
  checkOptions("createFileStore", options, shape);
  const { folder, ownTenant, now = Date.now } = options;
  const root = join(folder, "serve");
  mkdirSync(root, { recursive: true, mode: 0o700 });
  const unlock = lockFile(join(root, "sessions"));
  const { tell, watch, clear } = createListeners();
  const running = new Set<string>();
  let stamp = 0;
  const held = new Map<string, Held>();
  const folderOf = (tenant: string) => join(root, "tenants", tenantFolder(tenant));
  const statePath = ({ tenant, id }: StoredSession) => join(folderOf(tenant), `${id}.json`);
  const mailPath = ({ tenant, id }: StoredSession) => join(folderOf(tenant), `${id}.mail.jsonl`);
  const journalPath = ({ tenant, id }: StoredSession) =>
    sessionPath(tenant === ownTenant ? folder : folderOf(tenant), id);

  for (const one of readStates(join(root, "tenants"))) held.set(one.session.id, one);

  const find = (id: string): Held => {
    const found = held.get(id);
    if (found === undefined) throw new Error(`there is no session ${id}`);
    return found;
  };
  const write = (one: Held) => {
    const path = statePath(one.session);
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    writeFileSync(`${path}.new`, JSON.stringify({ session: one.session, key: one.key, request: one.request }), {
      mode: 0o600,
    });
    renameSync(`${path}.new`, path);
  };
  /**
   * A follower of a long session reads it piece by piece, and many may follow one, so it is parsed once
   * for all of them.
   */
  let parsed: { readonly stamp: string; readonly records: readonly StoredRecord[] } | undefined;
  let forgetting: NodeJS.Timeout | undefined;
  const recordsOf = (session: StoredSession): readonly StoredRecord[] => {
    const path = journalPath(session);
    const stat = statSync(path, { throwIfNoEntry: false });
    if (stat === undefined) return [];
    const version = `${path} ${stat.ino} ${stat.size} ${stat.mtimeMs}`;
    if (parsed?.stamp !== version) parsed = { stamp: version, records: readJournal(path).records };
    clearTimeout(forgetting);
    forgetting = setTimeout(() => (parsed = undefined), parsedMs).unref();
    return parsed.records;
  };
  const mailboxOf = (one: Held): Mailbox => {
    one.mailbox ??= readMailbox(mailPath(one.session), () => recordsOf(one.session));
    return one.mailbox;
  };
  const change = (one: Held, given: Partial<StoredSession>) => {
    const session = { ...one.session, ...given, updatedAt: now() };
    write({ ...one, session });
    one.session = session;
    tell({ type: "session", id: one.session.id, tenant: one.session.tenant });
  };

  const findCreated = (tenant: string, key?: string, request?: string) =>
    findKnown(
      [...held.values()].filter(({ session }) => session.tenant === tenant),
      key,
      request,
    )?.session;

  const store: SessionStore = {
    async create(given, key, request) {
      const known = findCreated(given.tenant, key, request);
      if (known !== undefined) return { session: known, isNew: false };
      if (held.has(given.id)) throw new Error(`there is a session ${given.id} already`);
      const at = now();
      const session: StoredSession = {
        ...given,
        status: "idle",
        startedAt: at,
        updatedAt: at,
        questions: [],
        takings: 0,
      };
      const one: Held = { session, recent: [], ...defined({ key, request }) };
      write(one);
      held.set(session.id, one);
      tell({ type: "session", id: session.id, tenant: session.tenant });
      return { session, isNew: true };
    },
    created: async (tenant, key, request) => findCreated(tenant, key, request),
    get: async (id) => held.get(id)?.session ?? findRecorded(folder, ownTenant, id),
    async list({ tenant, status, q, before, limit }) {
      const own = [...held.values()].map(({ session }) => session).filter((session) => session.tenant === tenant);
      const others = tenant === ownTenant ? listRecorded(folder, tenant, held) : [];
      const words = q?.toLowerCase();
      const all = [...own, ...others]
        .filter((session) => status === undefined || session.status === status)
        .filter(({ id, title }) => words === undefined || title.toLowerCase().includes(words) || id.includes(words))
        .toSorted((a, b) => b.updatedAt - a.updatedAt || (a.id < b.id ? 1 : -1));
      const start = before === undefined ? 0 : all.findIndex(({ id }) => id === before) + 1;
      return { sessions: all.slice(start, start + limit), more: all.length > start + limit };
    },
    async counts(tenant) {
      const counts: Partial<Record<SessionStatus, number>> = {};
      for (const { session } of held.values())
        if (session.tenant === tenant) counts[session.status] = (counts[session.status] ?? 0) + 1;
      return counts;
    },
    async remove(id) {
      const one = find(id);
      one.journal?.close();
      held.delete(id);
      for (const path of [statePath(one.session), mailPath(one.session), journalPath(one.session)])
        rmSync(path, { force: true });
      tell({ type: "removed", id, tenant: one.session.tenant });
    },
    async read(id, after, limit = Infinity) {
      const session = held.get(id)?.session ?? findRecorded(folder, ownTenant, id);
      if (session === undefined) return [];
      const recent = held.get(id)?.recent ?? [];
      const first = recent[0]?.n;
      if (first !== undefined && after + 1 >= first) return recent.slice(after + 1 - first, after + 1 - first + limit);
      const records = recordsOf(session);
      // Record n is at index n, because the journal counts from 0 and leaves nothing out.
      return records.slice(after + 1, limit === Infinity ? undefined : after + 1 + limit);
    },
    async append(id, at, records) {
      const one = find(id);
      one.journal ??= openJournal(journalPath(one.session), () => stamp);
      if (one.journal.length !== at) throw new Fenced(id, at);
      const mailbox = mailboxOf(one);
      // First, because it may fail, and then nothing is appended. The other way round, what is written would look refused.
      if (one.session.takings > 0 && records.some(isProgress)) change(one, { takings: 0 });
      stamp = now();
      one.journal.append(...records);
      for (const mail of records.flatMap((record) => takenMail(record) ?? [])) mailbox.taken.add(mail);
      const told = records.map((record, place) => ({ ...record, n: at + place, at: stamp }));
      one.recent.push(...told);
      if (one.recent.length > maxRecent) one.recent = one.recent.slice(-maxRecent / 2);
      tell({ type: "records", id, tenant: one.session.tenant, head: one.journal.length, records: told });
    },
    async update(id, given, at) {
      const one = find(id);
      if (at !== undefined && at !== (one.journal?.length ?? recordsOf(one.session).length)) throw new Fenced(id, at);
      change(one, given);
    },
    async post(id, { kind, body, key, request }, wake) {
      const one = find(id);
      const mailbox = mailboxOf(one);
      const known = findKnown(mailbox.mails, key, request);
      if (known !== undefined) return { mail: known, isNew: false };
      const mail = { id: mailbox.mails.length + 1, kind, body, at: now(), ...defined({ key, request }) };
      const path = mailPath(one.session);
      mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
      appendToFile(path, `${JSON.stringify(mail)}\n`);
      mailbox.mails.push(mail);
      tell({ type: "mail", id, tenant: one.session.tenant });
      await wake?.();
      return { mail, isNew: true };
    },
    posted: async (id, key, request) => findKnown(mailboxOf(find(id)).mails, key, request),
    async mail(id) {
      const { mails, taken } = mailboxOf(find(id));
      return mails.filter((mail) => !taken.has(mail.id));
    },
    async unfinished() {
      return [...held.values()]
        .filter((one) => one.session.status !== "ended" && one.session.status !== "faulty")
        .filter((one) => {
          const { status } = one.session;
          const { mails, taken } = mailboxOf(one);
          return (
            status === "running" ||
            // A waiting session accepts answers and a request to end. Messages wait until it is idle again.
            mails.some((mail) => !taken.has(mail.id) && !(status === "waiting" && mail.kind === "message"))
          );
        })
        .map(({ session: { id, tenant } }) => ({ id, tenant }));
    },
    async take(id) {
      if (running.has(id) || !held.has(id)) return undefined;
      running.add(id);
      return async () => {
        const one = held.get(id);
        one?.journal?.close();
        if (one !== undefined) {
          delete one.journal;
          one.recent = [];
        }
        running.delete(id);
      };
    },
    publish: (id, tenant, event) => tell({ type: "live", id, tenant, event }),
    watch,
    forTenant: (tenant) => confineStore(store, tenant),
    async close() {
      clearTimeout(forgetting);
      for (const one of held.values()) one.journal?.close();
      clear();
      unlock();
    },
  };
  return store;
}

/** What was stored under the key. Throws KeyReused if it was stored for another request. */
function findKnown<T extends Pick<NewMail, "key" | "request">>(all: readonly T[], key?: string, request?: string) {
  const known = key === undefined ? undefined : all.find((one) => one.key === key);
  if (known !== undefined) checkRequest(known.request, request);
  return known;
}

function readStates(tenants: string): readonly Held[] {
  if (!existsSync(tenants)) return [];
  return readdirSync(tenants).flatMap((tenant) =>
    readdirSync(join(tenants, tenant))
      .filter((name) => name.endsWith(".json"))
      .flatMap((name): readonly Held[] => {
        const parsed = parseJson(readFileSync(join(tenants, tenant, name), "utf8"));
        if (!parsed.ok || !isObject(parsed.value) || !isObject(parsed.value["session"])) return [];
        // This is our own file, written completely or not at all.
        const stored = parsed.value as unknown as Pick<Held, "session" | "key" | "request">;
        return [{ ...stored, recent: [] }];
      }),
  );
}

function readMailbox(path: string, records: () => readonly StoredRecord[]): Mailbox {
  if (!existsSync(path)) return { mails: [], taken: new Set() };
  const text = readFileSync(path, "utf8");
  // A line that a kill cut off was never acknowledged. What comes next begins on a new line.
  if (!text.endsWith("\n")) appendFileSync(path, "\n");
  const mails = text.split("\n").flatMap((line) => {
    const parsed = parseJson(line);
    return parsed.ok && isObject(parsed.value) ? [parsed.value as unknown as Mail] : [];
  });
  return { mails, taken: new Set(records().flatMap((record) => takenMail(record) ?? [])) };
}
