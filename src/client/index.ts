/**
 * Entry of `callgate/client`: a typed client of `callgate serve`, for programs and for the page. Plain `fetch`, so it
 * runs in a browser as well as in Node.
 */
import { checkOptions, optionsShape } from "../base/shape.ts";
import { EventSourceParserStream } from "eventsource-parser/stream";
import type { Json } from "../base/json.ts";
import type { SessionEvent } from "../session/events.ts";
import type { ApprovalRequest } from "../spec/stages.ts";

/** What a token may do; a token can have several roles. */
export type Role = "watch" | "talk" | "approve" | "administer";

/** The status of a session: `waiting` for a person's answer, `faulty` after it broke its worker again and again. */
export type SessionStatus = "idle" | "running" | "waiting" | "faulty" | "ended";

/** A session in a list. */
export interface SessionRow {
  readonly id: string;
  readonly title: string;
  readonly status: SessionStatus;
  readonly kind: "session" | "recorded" | "gateway";
  readonly model: string;
  readonly cwd: string;
  readonly startedAt: string;
  readonly updatedAt: string;
  readonly waitingFor?: { readonly callId: string; readonly tool: string; readonly reason: string };
  readonly usage?: { readonly input: number; readonly output: number; readonly costUsd?: number };
}

/** Who this token belongs to, and what it may do. */
export interface Me {
  readonly tenant: string;
  readonly name: string;
  readonly roles: readonly Role[];
  readonly version: string;
  readonly model: string;
}

/** One record of a session's journal. */
export interface SessionRecord {
  readonly n: number;
  readonly at: number;
  readonly type: string;
  readonly [field: string]: unknown;
}

/** A question that waits for a person, with the session that asked it. */
export interface WaitingApproval {
  readonly session: SessionRow;
  readonly request: ApprovalRequest;
  readonly askedAt: number;
}

/** What a new session begins with. */
export interface NewSession {
  readonly title?: string;
  readonly model?: string;
  readonly instructions?: string;
  readonly base?:
    | { readonly kind: "empty" }
    | { readonly kind: "folder"; readonly path: string }
    | { readonly kind: "git"; readonly url: string; readonly ref?: string }
    | { readonly kind: "archive"; readonly url: string };
  readonly approval?: string;
  readonly sandbox?: string;
  readonly limits?: Readonly<Record<string, number>>;
}

/** What a person says to a session. */
export interface NewMessage {
  readonly text: string;
  readonly attachments?: readonly { readonly type: "image"; readonly mediaType: string; readonly data: string }[];
  /** Wait until the turn has ended, or say it now. */
  readonly mode?: "queue" | "steer";
}

/** A person's answer to a question. */
export interface ApprovalReply {
  readonly answer: "once" | "session" | "always" | "direct" | "no" | "stop";
  readonly message?: string;
  /** The hash of the question, so that an old click does not answer a changed question. */
  readonly hash: string;
  /** For a held run: the paths to keep. Left out: all of them. */
  readonly keep?: readonly string[];
}

/** An event of a session's stream. */
export type StreamEvent =
  | { readonly type: "record"; readonly record: SessionRecord }
  | { readonly type: "live"; readonly event: SessionEvent }
  | { readonly type: "status"; readonly session: SessionRow };

/** A refusal by the service, in its own words (RFC 9457). */
export class ServiceError extends Error {
  override readonly name = "ServiceError";
  readonly status: number;
  /** When it may be tried again, if the service said so. */
  readonly retryAfterMs: number | undefined;
  constructor(status: number, message: string, retryAfterMs?: number) {
    super(message);
    this.status = status;
    this.retryAfterMs = retryAfterMs;
  }
}

/** What the token's tenant may use (null: no limit), and what it has used of it. Calls and dollars are today's. */
export interface LimitsAndUse {
  readonly limits: Readonly<
    Record<
      "running" | "sessions" | "messagesPerMinute" | "requestsPerMinute" | "listeners" | "callsPerDay" | "usdPerDay",
      number | null
    >
  >;
  readonly used: Readonly<Record<"running" | "sessions" | "calls" | "usd", number>>;
}

/** Options of `createClient`. */
export interface ClientOptions {
  /** `http://127.0.0.1:PORT`. Left out in a page, which uses the address it came from. */
  readonly url?: string;
  /** Left out in a page, which is identified by its cookie. */
  readonly token?: string;
  /** Sends the requests. Left out: the global `fetch`. */
  readonly fetch?: typeof fetch;
}

/** The service's API as functions; each is one request. */
export interface Client {
  me(): Promise<Me>;
  limits(): Promise<LimitsAndUse>;
  sessions(query?: {
    readonly status?: string;
    readonly q?: string;
    readonly before?: string;
    readonly limit?: number;
  }): Promise<{
    readonly sessions: readonly SessionRow[];
    readonly more: boolean;
  }>;
  create(session: NewSession, key?: string): Promise<SessionRow>;
  session(id: string): Promise<{ readonly session: SessionRow; readonly plan?: Json; readonly diff?: Json }>;
  remove(id: string): Promise<void>;
  records(id: string, after?: number): Promise<{ readonly records: readonly SessionRecord[]; readonly more: boolean }>;
  send(id: string, message: NewMessage, key?: string): Promise<void>;
  approve(id: string, callId: string, reply: ApprovalReply, key?: string): Promise<void>;
  cancel(id: string, key?: string): Promise<void>;
  undo(id: string, key?: string): Promise<{ readonly undone: readonly Json[]; readonly conflicts: readonly string[] }>;
  approvals(): Promise<readonly WaitingApproval[]>;
  tools(): Promise<Json>;
  rules(): Promise<Json>;
  checkPolicy(shell: string): Promise<Json>;
  /**
   * Everything after record `after`, then live, until the signal ends it. It reconnects by itself and
   * loses nothing.
   */
  events(id: string, after: number, signal: AbortSignal): AsyncGenerator<StreamEvent>;
  /**
   * Changes of any session of the tenant, from now on. `onOpen` is called whenever the stream was opened, for
   * the first time or again: what changed while there was none is only in the lists.
   */
  watch(signal: AbortSignal, onOpen?: () => void): AsyncGenerator<SessionRow>;
}

/** One event of a stream, as it came. */
interface Told {
  readonly event: string;
  readonly data: string;
}

const clientShape = optionsShape<ClientOptions>({ url: "string", token: "string", fetch: "function" });

/** A client of a `callgate serve`, for programs and pages: `createClient({ url, token })`. */
export function createClient(options: ClientOptions = {}): Client {
  checkOptions("createClient", options, clientShape);
  const { url = "", token, fetch: send = (input, init) => fetch(input, init) } = options;
  const headers: Record<string, string> = {
    "x-callgate": "1",
    ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
  };

  const ask = async (method: string, path: string, body?: unknown, more: object = {}): Promise<Response> => {
    const response = await send(`${url}${path}`, {
      method,
      headers: { ...headers, ...more, ...(body === undefined ? {} : { "content-type": "application/json" }) },
      credentials: "same-origin",
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    if (!response.ok) throw await toError(response);
    return response;
  };
  // The service's OpenAPI document describes its answers, and a test compares it with these types.
  const json = async <T>(method: string, path: string, body?: unknown, more?: object): Promise<T> =>
    (await (await ask(method, path, body, more)).json()) as T;
  const at = (id: string, rest = "") => `/v1/sessions/${encodeURIComponent(id)}${rest}`;
  const once = (key: string | undefined) => (key === undefined ? {} : { "idempotency-key": key });

  async function* stream(path: () => string, signal: AbortSignal, onOpen?: () => void): AsyncGenerator<Told> {
    for (let failures = 0; !signal.aborted;) {
      let askedToWaitMs: number | undefined;
      try {
        const response = await send(`${url}${path()}`, {
          headers: { ...headers, accept: "text/event-stream" },
          credentials: "same-origin",
          signal,
        });
        if (!response.ok || response.body === null) throw await toError(response);
        failures = 0;
        onOpen?.();
        yield* readEvents(response.body, signal);
      } catch (error) {
        if (signal.aborted) return;
        // Too many requests or streams is over in a moment. Any other refusal will be the same next time.
        if (error instanceof ServiceError && error.status < 500 && error.status !== 429) throw error;
        if (error instanceof ServiceError) askedToWaitMs = error.retryAfterMs;
      }
      await wait(askedToWaitMs ?? Math.min(250 * 2 ** failures++, 10_000), signal);
    }
  }

  return {
    me: () => json("GET", "/v1/me"),
    limits: () => json("GET", "/v1/limits"),
    sessions: (query = {}) => {
      const given = Object.entries(query).flatMap(([name, value]) =>
        value === undefined ? [] : [[name, String(value)]],
      );
      return json("GET", `/v1/sessions?${new URLSearchParams(given)}`);
    },
    create: (session, key) => json("POST", "/v1/sessions", session, once(key)),
    session: (id) => json("GET", at(id)),
    remove: async (id) => void (await ask("DELETE", at(id))),
    records: (id, after = -1) => json("GET", at(id, `/records?after=${after}`)),
    send: async (id, message, key) => void (await ask("POST", at(id, "/messages"), message, once(key))),
    approve: async (id, callId, reply, key) =>
      void (await ask("POST", at(id, `/approvals/${encodeURIComponent(callId)}`), reply, once(key))),
    cancel: async (id, key) => void (await ask("POST", at(id, "/cancel"), {}, once(key))),
    undo: (id, key) => json("POST", at(id, "/undo"), {}, once(key)),
    approvals: async () => (await json<{ approvals: readonly WaitingApproval[] }>("GET", "/v1/approvals")).approvals,
    tools: () => json("GET", "/v1/tools"),
    rules: () => json("GET", "/v1/rules"),
    checkPolicy: (shell) => json("POST", "/v1/policy/check", { shell }),
    async *events(id, after, signal) {
      let last = after;
      for await (const { event, data } of stream(() => at(id, `/events?after=${last}`), signal)) {
        // As above: the service writes what the types say.
        if (event === "record") {
          const record = JSON.parse(data) as SessionRecord;
          if (record.n <= last) continue;
          last = record.n;
          yield { type: "record", record };
        } else if (event === "live") yield { type: "live", event: JSON.parse(data) as SessionEvent };
        else if (event === "status") yield { type: "status", session: JSON.parse(data) as SessionRow };
      }
    },
    async *watch(signal, onOpen) {
      for await (const { event, data } of stream(() => "/v1/events", signal, onOpen))
        if (event === "status") yield JSON.parse(data) as SessionRow;
    },
  };
}

async function toError(response: Response): Promise<ServiceError> {
  const body: unknown = await response.json().catch(() => undefined);
  const told = typeof body === "object" && body !== null && "detail" in body ? String(body.detail) : undefined;
  const seconds = Number(response.headers.get("retry-after") ?? Number.NaN);
  return new ServiceError(
    response.status,
    told ?? `the service answered with HTTP ${response.status}`,
    Number.isFinite(seconds) ? seconds * 1000 : undefined,
  );
}

async function* readEvents(body: ReadableStream<Uint8Array>, signal: AbortSignal): AsyncGenerator<Told> {
  // The DOM's and Node's types of the same stream differ in their buffers.
  const text = body.pipeThrough(new TextDecoderStream() as unknown as ReadableWritablePair<string, Uint8Array>);
  const reader = text.pipeThrough(new EventSourceParserStream()).getReader();
  const stop = () => void reader.cancel().catch(() => undefined);
  signal.addEventListener("abort", stop, { once: true });
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read())
      yield { event: next.value.event ?? "message", data: next.value.data };
  } finally {
    signal.removeEventListener("abort", stop);
    stop();
  }
}

function wait(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(done, ms);
    function done() {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      resolve();
    }
    signal.addEventListener("abort", done, { once: true });
  });
}
