/**
 * Tells every process what happens to sessions: here at once, elsewhere by notifications.
 * Notifications are collected for a moment, because each of them takes a lock on the whole database.
 * One can be lost with its process or its connection, so the tables are checked now and then, and what
 * was missed is reported.
 */
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { isObject, parseJson } from "../../base/json.ts";
import { joinLive } from "../live-events.ts";
import { createListeners } from "../listeners.ts";
import type { StoreChange } from "../session-store.ts";
import type { Connection, Database } from "./database.ts";
import { nowMs } from "./schema.ts";

export interface Changes {
  tell(change: StoreChange): void;
  watch(listener: (change: StoreChange) => void, id?: string): () => void;
  close(): Promise<void>;
}

export interface ChangesOptions {
  readonly gatherMs?: number;
  readonly lookMs?: number;
  readonly onError?: (error: unknown) => void;
}

const channel = "callgate";
/** PostgreSQL accepts less than 8,000 bytes. */
const maxPayload = 7_900;
const recentMs = 10_000;

export async function createChanges(database: Database, options: ChangesOptions = {}): Promise<Changes> {
  const { gatherMs = 50, lookMs = 2_000, onError } = options;
  const origin = randomUUID();
  const listeners = createListeners();
  /** Up to which record each session was reported, and when its row had changed at the last check. */
  let told = new Map<string, number>();
  let changedAt = new Map<string, string>();
  let gathered: StoreChange[] = [];
  let timer: NodeJS.Timeout | undefined;
  let sentAt = 0;
  const state = { isClosed: false };

  const tellHere = (change: StoreChange) => {
    if (change.type === "records") told.set(change.id, Math.max(change.head, told.get(change.id) ?? 0));
    listeners.tell(change);
  };
  const send = async () => {
    clearTimeout(timer);
    timer = undefined;
    sentAt = performance.now();
    const changes = gathered;
    gathered = [];
    if (changes.length === 0) return;
    await database.query(`select pg_notify('${channel}', part) from unnest($1::text[]) as part`, [
      toPayloads(origin, changes),
    ]);
  };
  const heard = (payload: string) => {
    const parsed = parseJson(payload);
    if (!parsed.ok || !isObject(parsed.value) || parsed.value["origin"] === origin) return;
    // Written by another process of ours.
    for (const change of (parsed.value["changes"] ?? []) as unknown as readonly StoreChange[]) tellHere(change);
  };

  const look = async () => {
    if (listeners.isEmpty || state.isClosed) return;
    const [changed, mail] = await Promise.all([
      database.query<{ id: string; tenant: string; head: number; updated_at: string }>(
        `select id, tenant, head, updated_at from callgate.session where status = 'running' or updated_at > ${nowMs} - ${recentMs}`,
      ),
      database.query<{ id: string; tenant: string }>(
        "select distinct session as id, tenant from callgate.mail where taken is null",
      ),
    ]);
    const [before, lastChange] = [told, changedAt];
    told = new Map();
    changedAt = new Map(changed.rows.map((row) => [row.id, row.updated_at]));
    for (const { id, tenant, head, updated_at: updatedAt } of changed.rows) {
      if (lastChange.get(id) !== updatedAt) tellHere({ type: "session", id, tenant });
      if ((before.get(id) ?? 0) < head) tellHere({ type: "records", id, tenant, head });
      else told.set(id, head);
    }
    for (const { id, tenant } of mail.rows) tellHere({ type: "mail", id, tenant });
  };
  const run = (work: () => Promise<void>) =>
    void work().catch((error: unknown) => {
      if (!state.isClosed) onError?.(error);
    });

  let connection: Connection | undefined;
  const listen = async () => {
    const opened = await database.connect({
      name: "changes",
      onNotification: heard,
      // One that breaks before it listens is replaced by whoever opens it.
      onLost: () => connection === opened && run(listenAgain),
    });
    await opened.query(`listen ${channel}`).catch((error: unknown) => {
      void opened.end();
      throw error;
    });
    connection = opened;
  };
  const listenAgain = async () => {
    for (let waitMs = 100; !state.isClosed; waitMs = Math.min(2 * waitMs, 2_000)) {
      try {
        await listen();
        return await look();
      } catch {
        await sleep(waitMs, undefined, { ref: false });
      }
    }
  };
  await listen();
  const looking = setInterval(() => run(look), lookMs).unref();

  return {
    tell(change) {
      tellHere(change);
      gather(gathered, change);
      // Mail is sent at once, because somebody waits for it. If there is much to send, it is collected like the rest.
      const waitMs = change.type === "mail" && performance.now() - sentAt > gatherMs ? 0 : gatherMs;
      if (waitMs === 0) clearTimeout(timer);
      if (waitMs === 0 || timer === undefined) timer = setTimeout(() => run(send), waitMs);
    },
    watch: listeners.watch,
    async close() {
      clearInterval(looking);
      await send().catch(() => undefined); // listeners check by themselves
      state.isClosed = true;
      listeners.clear();
      await connection?.end();
    },
  };
}

/** A collected change that the new one covers is not sent twice. */
function gather(gathered: StoreChange[], change: StoreChange): void {
  if (change.type === "live") {
    const at = gathered.findLastIndex((one) => one.id === change.id);
    const last = gathered[at];
    const joined = last?.type === "live" ? joinLive(last.event, change.event) : undefined;
    if (joined === undefined) gathered.push(change);
    else gathered[at] = { ...change, event: joined };
    return;
  }
  const at = gathered.findLastIndex((one) => one.id === change.id && one.type === change.type);
  if (at !== -1) gathered.splice(at, 1);
  gathered.push(withoutRecords(change));
}

/** Elsewhere records are read: what is sent is only how many there are. */
function withoutRecords(change: StoreChange): StoreChange {
  if (change.type !== "records") return change;
  const { records: _written, ...told } = change;
  return told;
}

function toPayloads(origin: string, changes: readonly StoreChange[]): readonly string[] {
  const frame = JSON.stringify({ origin, part: 1_000_000, changes: [] }).length;
  const payloads: string[] = [];
  let parts: string[] = [];
  let size = frame;
  const end = () => {
    // Numbered, because PostgreSQL drops a notification that equals another of the same transaction.
    const part = payloads.length;
    if (parts.length > 0)
      payloads.push(`{"origin":${JSON.stringify(origin)},"part":${part},"changes":[${parts.join(",")}]}`);
    parts = [];
    size = frame;
  };
  for (const part of changes.flatMap((change) => toParts(change, maxPayload - frame))) {
    const bytes = Buffer.byteLength(part) + 1;
    if (size + bytes > maxPayload) end();
    parts.push(part);
    size += bytes;
  }
  end();
  return payloads;
}

/**
 * One change as JSON, or a long text as several. What cannot be shortened is left out, because its
 * record will have it.
 */
function toParts(change: StoreChange, maxBytes: number): readonly string[] {
  const whole = JSON.stringify(change);
  if (Buffer.byteLength(whole) < maxBytes) return [whole];
  if (change.type !== "live") return [];
  const field = ["delta", "text"].find((name) => typeof change.event[name] === "string");
  if (field === undefined) return [];
  const text = String(change.event[field]);
  const middle = Math.floor(text.length / 2);
  if (middle === 0) return [];
  const half = (piece: string): StoreChange => ({
    ...change,
    event: { ...change.event, [field]: piece },
  });
  return [text.slice(0, middle), text.slice(middle)].flatMap((piece) => toParts(half(piece), maxBytes));
}
