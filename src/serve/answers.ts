/** The answers of the routes as JSON Schema, for the OpenAPI document. Clients must tolerate additional fields. */
import type { Json, JsonObject } from "../base/json.ts";
import { count, text } from "./bodies.ts";

const object = (properties: Readonly<Record<string, Json>>, optional: readonly string[] = []): JsonObject => ({
  type: "object",
  properties,
  required: Object.keys(properties).filter((name) => !optional.includes(name)),
});
const list = (items: JsonObject): JsonObject => ({ type: "array", items });
const number: JsonObject = { type: "number" };
const limit: JsonObject = { type: ["number", "null"] };
const roles = list({ enum: ["watch", "talk", "approve", "administer"] });
const time: JsonObject = { type: "string", format: "date-time" };

export const nothing = object({});

export const session = object(
  {
    id: text,
    title: text,
    status: { enum: ["idle", "running", "waiting", "faulty", "ended"] },
    kind: { enum: ["session", "recorded", "gateway"] },
    model: text,
    cwd: text,
    startedAt: time,
    updatedAt: time,
    waitingFor: object({ callId: text, tool: text, reason: text }),
    usage: object({ input: count, output: count, costUsd: number }, ["costUsd"]),
  },
  ["waitingFor", "usage"],
);

export const me = object({ tenant: text, name: text, roles, version: text, model: text });

export const limits = object({
  limits: object({
    running: limit,
    sessions: limit,
    messagesPerMinute: limit,
    requestsPerMinute: limit,
    listeners: limit,
    callsPerDay: limit,
    usdPerDay: limit,
  }),
  used: object({ running: count, sessions: count, calls: count, usd: number }),
});

export const sessions = object({ sessions: list(session), more: { type: "boolean" } });

export const oneSession = object(
  {
    session,
    plan: {},
    diff: object({ diff: text, files: list({ type: "object" }), notes: list(text) }),
    context: object({ tokens: count }),
  },
  ["plan", "diff", "context"],
);

/** The other fields of a record depend on its type and are described in docs/events.md. */
export const records = object({
  records: list(object({ n: count, at: number, type: text })),
  more: { type: "boolean" },
});

export const message = object({ n: count });

export const undone = object({ undone: list({}), conflicts: list(text) });

export const approvals = object({
  approvals: list(
    object({
      session,
      askedAt: number,
      request: object({
        call: object({ id: text, tool: text, input: {} }),
        reason: text,
        hash: text,
        commands: list(list(text)),
        access: { type: "object" },
        grant: { type: "object" },
      }),
    }),
  ),
});

export const verdict = object({ decision: { enum: ["allow", "ask", "deny"] }, reason: text });

export const tokens = object({ tokens: list(object({ id: text, name: text, tenant: text, roles })) });

export const newToken = object({ id: text, token: text });
