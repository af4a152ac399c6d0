/** Events over HTTP (SSE): every record once and in order, what happens meanwhile as it comes. */
import type { ServerResponse } from "node:http";
import type { JsonObject } from "../base/json.ts";
import { joinLive } from "../store/live-events.ts";
import type { SessionStore, StoreChange, StoredSession } from "../store/session-store.ts";
import type { SessionRow } from "../client/index.ts";

const keepAliveMs = 15_000;
/** Parts of an answer are joined for this long, so that a fast model is told at most twenty times a second. */
const joinMs = 50;
/** A client that reads slower than this is let go; it comes back and misses nothing. */
const maxBuffered = 1024 * 1024;
const batch = 500;

export interface Stream {
  send(event: string, data: unknown, id?: number): void;
  /** Resolves when the client has gone. */
  readonly closed: Promise<void>;
  end(): void;
}

export function openStream(response: ServerResponse): Stream {
  response.writeHead(200, {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-store",
    "x-accel-buffering": "no",
  });
  response.flushHeaders();
  const write = (text: string) => {
    if (response.destroyed || response.writableEnded) return;
    response.write(text);
    if (response.writableLength > maxBuffered) response.destroy();
  };
  const alive = setInterval(() => write(": still here\n\n"), keepAliveMs);
  const closed = new Promise<void>((resolve) => {
    response.once("close", () => {
      clearInterval(alive);
      resolve();
    });
  });
  return {
    send(event, data, id) {
      // JSON has no line break of its own: one event is one data line.
      write(`event: ${event}\n${id === undefined ? "" : `id: ${id}\n`}data: ${JSON.stringify(data)}\n\n`);
    },
    closed,
    end: () => void response.end(),
  };
}

/** Everything of one session after record `after`, then as it happens, until the client goes. */
export async function followSession(
  stream: Stream,
  store: SessionStore,
  id: string,
  after: number,
  toRow: (session: StoredSession) => SessionRow,
): Promise<void> {
  let last = after;
  let isReading = false;
  let isDirty = false;
  const live = createJoiner((event) => stream.send("live", event));
  const read = async () => {
    isDirty = true;
    if (isReading) return;
    isReading = true;
    try {
      while (isDirty) {
        isDirty = false;
        const records = await store.read(id, last, batch);
        // What was told live belongs before the record that has it whole.
        live.flush();
        for (const record of records) {
          if (record.n <= last) continue;
          last = record.n;
          stream.send("record", record, record.n);
        }
        if (records.length === batch) isDirty = true;
      }
    } finally {
      isReading = false;
    }
  };
  const tellStatus = async () => {
    const session = await store.get(id);
    if (session === undefined) stream.end();
    else stream.send("status", toRow(session));
  };
  const heard = (change: StoreChange) => {
    if (change.id !== id) return;
    if (change.type === "records") run(read);
    else if (change.type === "live") live.add(change.event);
    else if (change.type === "session") run(tellStatus);
    else if (change.type === "removed") stream.end();
  };
  // A store that cannot be read ends the stream: the client comes back and goes on where it was.
  const run = (work: () => Promise<void>) => void work().catch(() => stream.end());
  const stop = store.watch(heard);
  try {
    run(tellStatus);
    run(read);
    await stream.closed;
  } finally {
    stop();
    live.stop();
  }
}

/** Changes of any session of the tenant. */
export async function followTenant(
  stream: Stream,
  store: SessionStore,
  tenant: string,
  toRow: (session: StoredSession) => SessionRow,
): Promise<void> {
  const told = new Map<string, string>();
  const tell = async (id: string) => {
    const session = await store.get(id);
    if (session === undefined) return;
    stream.send("status", toRow(session));
    const open = session.questions.map(({ callId, hash }) => `${callId} ${hash}`).join();
    if (open !== "" && told.get(id) !== open)
      for (const { callId, tool, reason, hash } of session.questions)
        stream.send("approval", { session: toRow(session), callId, tool, reason, hash });
    told.set(id, open);
  };
  const stop = store.watch((change) => {
    if (change.tenant === tenant && change.type === "session") void tell(change.id).catch(() => stream.end());
  });
  try {
    await stream.closed;
  } finally {
    stop();
  }
}

interface Joiner {
  add(event: JsonObject): void;
  flush(): void;
  stop(): void;
}

function createJoiner(send: (event: JsonObject) => void): Joiner {
  let waiting: JsonObject[] = [];
  let timer: NodeJS.Timeout | undefined;
  const flush = () => {
    clearTimeout(timer);
    timer = undefined;
    const events = waiting;
    waiting = [];
    for (const event of events) send(event);
  };
  return {
    add(event) {
      const last = waiting.at(-1);
      const joined = last === undefined ? undefined : joinLive(last, event);
      if (joined === undefined) waiting.push(event);
      else waiting[waiting.length - 1] = joined;
      timer ??= setTimeout(flush, joinMs);
    },
    flush,
    stop: () => clearTimeout(timer),
  };
}
