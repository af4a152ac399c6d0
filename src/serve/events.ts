/** Events over HTTP (SSE): every record once and in order, and live events as they happen. */
import type { ServerResponse } from "node:http";
import type { JsonObject } from "../base/json.ts";
import { joinLive } from "../store/live-events.ts";
import type { StoredRecord } from "../store/journal.ts";
import type { SessionStore, StoredSession } from "../store/session-store.ts";
import type { SessionRow } from "../client/index.ts";

const keepAliveMs = 15_000;
/** Parts of an answer are joined for this long, so that a fast model causes at most twenty events a second. */
const joinMs = 50;
/** A client with this many unread bytes is sent nothing more until it has read them. */
const maxBuffered = 1024 * 1024;
/** A client that reads nothing for this long is disconnected. When it connects again it has missed nothing. */
const maxStalledMs = 60_000;
const batch = 500;

/** Gives the text of an event as it is sent. */
export type Encode = (event: string, data: object, id?: number) => string;

/** The text of each value is kept, so that an event for a thousand listeners is encoded only once. */
export function createEncode(): Encode {
  const known = new WeakMap<object, string>();
  return (event, data, id) => {
    let text = known.get(data);
    if (text === undefined) {
      // Encoded JSON contains no line breaks, so one event is one data line.
      text = `event: ${event}\n${id === undefined ? "" : `id: ${id}\n`}data: ${JSON.stringify(data)}\n\n`;
      known.set(data, text);
    }
    return text;
  };
}

export interface Stream {
  send(event: string, data: object, id?: number): void;
  /** Resolves when there is room, at once if there is room already. */
  drained(): Promise<void>;
  readonly isFull: boolean;
  /** Resolves when the client has disconnected. */
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

/** Runs the work when asked, never twice at the same time, and once more if it was asked for in the meantime. */
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

/** Sends everything of one session after record `after`, then what happens, until the client disconnects. */
export async function followSession(
  stream: Stream,
  store: SessionStore,
  id: string,
  after: number,
  toRow: (session: StoredSession) => SessionRow,
): Promise<void> {
  let last = after;
  const live = createJoiner((event) => {
    // A client that cannot keep up gets the whole from the record later.
    if (!stream.isFull) stream.send("live", event);
  });
  // If the store cannot be read, the stream ends. The client connects again and continues where it was.
  const readAll = createRepeater(async () => {
    for (let isMore = true; isMore;) {
      await stream.drained();
      const records = await store.read(id, last, batch);
      isMore = records.length === batch;
      // Live events must be sent before the record that contains the whole.
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
  /**
   * Sends records that were written in this process directly. If earlier ones are missing, all are read
   * from the store.
   */
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

/** Sends the changes of all sessions of the tenant. */
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
  // If a session changes often, only its last state is sent.
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
