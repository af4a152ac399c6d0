/** Events over HTTP (SSE): every record once and in order, what happens meanwhile as it comes. */
import type { ServerResponse } from "node:http";
import type { JsonObject } from "../base/json.ts";
import { joinLive } from "../store/live-events.ts";
import type { StoredRecord } from "../store/journal.ts";
import type { SessionStore, StoredSession } from "../store/session-store.ts";
import type { SessionRow } from "../client/index.ts";

const keepAliveMs = 15_000;
/** Parts of an answer are joined for this long, so that a fast model is told at most twenty times a second. */
const joinMs = 50;
/** A client that has not read so much yet gets nothing more until it has. */
const maxBuffered = 1024 * 1024;
/** One that takes nothing for this long is let go; it comes back and misses nothing. */
const maxStalledMs = 60_000;
const batch = 500;

/** An event as it is sent: written once, however many listen. */
export type Encode = (event: string, data: object, id?: number) => string;

/** The same value is the same text: what is told to a thousand listeners is made into JSON once. */
export function createEncode(): Encode {
  const known = new WeakMap<object, string>();
  return (event, data, id) => {
    let text = known.get(data);
    if (text === undefined) {
      // JSON has no line break of its own: one event is one data line.
      text = `event: ${event}\n${id === undefined ? "" : `id: ${id}\n`}data: ${JSON.stringify(data)}\n\n`;
      known.set(data, text);
    }
    return text;
  };
}

export interface Stream {
  send(event: string, data: object, id?: number): void;
  /** Resolves when there is room again, at once where there is. */
  drained(): Promise<void>;
  readonly isFull: boolean;
  /** Resolves when the client has gone. */
  readonly closed: Promise<void>;
  end(): void;
}

export function openStream(response: ServerResponse, encode: Encode): Stream {
  response.writeHead(200, {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-store",
    "x-accel-buffering": "no",
  });
  response.flushHeaders();
  const write = (text: string) => {
    if (!response.destroyed && !response.writableEnded) response.write(text);
  };
  const isFull = () => !response.destroyed && response.writableLength > maxBuffered;
  const alive = setInterval(() => {
    if (!isFull()) write(": still here\n\n");
  }, keepAliveMs);
  const state = { isClosed: false };
  const closed = new Promise<void>((resolve) => {
    response.once("close", () => {
      state.isClosed = true;
      clearInterval(alive);
      resolve();
    });
  });
  const untilDrained = () =>
    new Promise<void>((resolve) => {
      const stalled = setTimeout(() => response.destroy(), maxStalledMs);
      const done = () => {
        clearTimeout(stalled);
        response.off("drain", done);
        resolve();
      };
      response.once("drain", done);
      void closed.then(done);
    });
  return {
    send: (event, data, id) => write(encode(event, data, id)),
    async drained() {
      while (!state.isClosed && isFull()) await untilDrained();
    },
    get isFull() {
      return isFull();
    },
    closed,
    end: () => void response.end(),
  };
}

/** Runs something once more if it was asked for meanwhile, and never twice at the same time. */
function createRepeater(work: () => Promise<void>, onError: () => void): () => void {
  let isRunning = false;
  let isAsked = false;
  const run = async () => {
    isAsked = true;
    if (isRunning) return;
    isRunning = true;
    try {
      while (isAsked) {
        isAsked = false;
        await work();
      }
    } finally {
      isRunning = false;
    }
  };
  return () => void run().catch(onError);
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
  const live = createJoiner((event) => {
    // Who cannot keep up is told the whole by its record.
    if (!stream.isFull) stream.send("live", event);
  });
  // A store that cannot be read ends the stream: the client comes back and goes on where it was.
  const readAll = createRepeater(async () => {
    for (let isMore = true; isMore;) {
      await stream.drained();
      const records = await store.read(id, last, batch);
      isMore = records.length === batch;
      // What was told live belongs before the record that has it whole.
      live.flush();
      for (const record of records) {
        send(record);
        if (stream.isFull) await stream.drained();
      }
    }
  }, stream.end);
  const send = (record: StoredRecord) => {
    if (record.n <= last) return;
    last = record.n;
    stream.send("record", record, record.n);
  };
  /** What was written in this process is at hand; what is missing before it, or was written elsewhere, is read. */
  const tellRecords = (records: readonly StoredRecord[] = []) => {
    const [first] = records;
    if (first === undefined || first.n > last + 1 || stream.isFull) return readAll();
    live.flush();
    for (const record of records) send(record);
  };
  const tellStatus = createRepeater(async () => {
    await stream.drained();
    const session = await store.get(id);
    if (session === undefined) stream.end();
    else stream.send("status", toRow(session));
  }, stream.end);
  const stop = store.watch((change) => {
    if (change.type === "records") tellRecords(change.records);
    else if (change.type === "live") live.add(change.event);
    else if (change.type === "session") tellStatus();
    else if (change.type === "removed") stream.end();
  }, id);
  try {
    tellStatus();
    readAll();
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
    const row = toRow(session);
    stream.send("status", row);
    const open = session.questions.map(({ callId, hash }) => `${callId} ${hash}`).join();
    if (open !== "" && told.get(id) !== open)
      for (const { callId, tool, reason, hash } of session.questions)
        stream.send("approval", { session: row, callId, tool, reason, hash });
    told.set(id, open);
  };
  // Of a session that changes often, the last state is told.
  const changed = new Set<string>();
  const tellAll = createRepeater(async () => {
    for (const id of changed) {
      changed.delete(id);
      await stream.drained();
      await tell(id);
    }
  }, stream.end);
  const stop = store.watch((change) => {
    if (change.tenant !== tenant || change.type !== "session") return;
    changed.add(change.id);
    tellAll();
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
