/** Sessions of clients that use the 2025 protocol over HTTP: one server object for each, limited in number and age. */
import { randomUUID } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { NodeStreamableHTTPServerTransport } from "@modelcontextprotocol/node";
import {
  isInitializeRequest,
  type McpServer,
  type EventStore,
  type JSONRPCMessage,
} from "@modelcontextprotocol/server";
import type { SessionLimits } from "./serve-options.ts";

export interface HttpSessionsOptions extends SessionLimits {
  readonly open: () => McpServer;
}

export interface HttpSessions {
  /** Answers one request; `refuse` says no in the protocol's own form. */
  serve(request: IncomingMessage, response: ServerResponse, body: unknown, refuse: Refuse): Promise<void>;
  count(): number;
  close(): Promise<void>;
}

export type Refuse = (status: number, message: string) => void;

interface Session {
  readonly server: McpServer;
  readonly transport: NodeStreamableHTTPServerTransport;
  /** Requests that are being answered right now, including listening streams. */
  busy: number;
  usedAt: number;
}

/** How long a client waits after its stream broke before it asks for the rest. */
const retryMs = 1_000;

export function createHttpSessions(options: HttpSessionsOptions): HttpSessions {
  const { maxSessions = 64, idleMs = 30 * 60_000, now = Date.now } = options;
  const sessions = new Map<string, Session>();

  const drop = async (id: string) => {
    const session = sessions.get(id);
    sessions.delete(id);
    await session?.server.close().catch(() => undefined);
  };
  const idle = () => [...sessions].filter(([, { busy }]) => busy === 0).toSorted(([, a], [, b]) => a.usedAt - b.usedAt);
  const sweep = () => {
    for (const [id, { usedAt }] of idle()) if (now() - usedAt > idleMs) void drop(id);
  };
  const timer = setInterval(sweep, Math.min(idleMs, 60_000));
  timer.unref();

  const open = async (): Promise<Session | undefined> => {
    const [oldest] = idle();
    if (sessions.size >= maxSessions && oldest === undefined) return undefined;
    if (sessions.size >= maxSessions) void drop(oldest![0]);
    const server = options.open();
    const transport = new NodeStreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      eventStore: createEventLog(),
      retryInterval: retryMs,
      onsessioninitialized: (id) => void sessions.set(id, session),
      onsessionclosed: (id) => void sessions.delete(id),
    });
    const session: Session = { server, transport, busy: 0, usedAt: now() };
    await server.connect(transport);
    return session;
  };

  return {
    async serve(request, response, body, refuse) {
      const id = request.headers["mcp-session-id"];
      if (typeof id === "string" && !sessions.has(id)) return refuse(404, "there is no such session (any more)");
      if (typeof id !== "string" && !isInitializeRequest(body))
        return refuse(400, "begin with an initialize request, and send its session id with every other");
      const session = typeof id === "string" ? sessions.get(id) : await open();
      if (session === undefined) return refuse(503, "too many sessions are in use");
      session.busy++;
      response.once("close", () => {
        session.busy--;
        session.usedAt = now();
      });
      await session.transport.handleRequest(request, response, body);
    },
    count: () => sessions.size,
    async close() {
      clearInterval(timer);
      await Promise.all([...sessions.keys()].map(drop));
    },
  };
}

/**
 * Kept for one session, with the oldest dropped first: enough to bridge a broken connection, but not
 * to repeat a session.
 */
const maxEvents = 256;
const maxBytes = 4 * 1024 * 1024;

interface Event {
  readonly stream: string;
  readonly message: JSONRPCMessage;
  readonly bytes: number;
}

/**
 * What was sent last, so that a client whose stream broke gets the rest. Messages are repeated, but
 * calls never are.
 */
function createEventLog(): EventStore {
  const events = new Map<number, Event>();
  let next = 0;
  let bytes = 0;
  return {
    async storeEvent(stream, message) {
      const event = { stream, message, bytes: JSON.stringify(message).length };
      events.set(next, event);
      bytes += event.bytes;
      for (const [id, oldest] of events) {
        if (events.size <= maxEvents && bytes <= maxBytes) break;
        events.delete(id);
        bytes -= oldest.bytes;
      }
      return String(next++);
    },
    getStreamIdForEventId: async (id) => events.get(Number(id))?.stream,
    async replayEventsAfter(last, { send }) {
      const stream = events.get(Number(last))?.stream;
      if (stream === undefined) throw new Error("that is no event of this session any more");
      for (const [id, event] of events)
        if (id > Number(last) && event.stream === stream && "jsonrpc" in event.message)
          await send(String(id), event.message);
      return stream;
    },
  };
}
