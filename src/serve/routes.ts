/**
 * The API as one table: who may ask for what, with which body. The router, the OpenAPI document and the
 * tests read it.
 */
import type { Role } from "../client/index.ts";
import type { JsonObject } from "../base/json.ts";
import type { ApiRequest, Reply } from "./api-request.ts";
import * as answer from "./answers.ts";
import * as changing from "./changing.ts";
import * as reading from "./reading.ts";
import { approval, count, newMessage, newSession, newToken, object, short, text } from "./bodies.ts";
import type { Service } from "./service.ts";

export interface Route {
  readonly method: "GET" | "POST" | "DELETE";
  /** `:name` is a parameter. */
  readonly path: string;
  /** What a token must be allowed to do. */
  readonly role: Role;
  readonly summary: string;
  readonly query?: Readonly<Record<string, JsonObject>>;
  readonly body?: JsonObject;
  /** Whether two requests with the same Idempotency-Key count as one. */
  readonly isRepeatable?: boolean;
  /** Answers with a stream of events. */
  readonly isStream?: boolean;
  /** The statuses of a successful answer, each with a description. */
  readonly answers: Readonly<Record<number, string>>;
  /** The schema of a successful answer, if it is JSON. */
  readonly answer?: JsonObject;
  readonly run: (asked: ApiRequest, service: Service) => Promise<Reply>;
}

export const routes: readonly Route[] = [
  {
    method: "GET",
    path: "/v1/me",
    role: "watch",
    summary: "Who the token belongs to, and what it may do",
    answers: { 200: "tenant, name, roles, version, model" },
    answer: answer.me,
    run: reading.me,
  },
  {
    method: "GET",
    path: "/v1/limits",
    role: "watch",
    summary: "What the tenant may use, and what it has used today",
    answers: { 200: "limits, used" },
    answer: answer.limits,
    run: reading.getLimits,
  },
  {
    method: "GET",
    path: "/v1/sessions",
    role: "watch",
    summary: "Sessions, the last changed first",
    query: {
      status: { enum: ["idle", "running", "waiting", "faulty", "ended"] },
      q: short,
      limit: count,
      before: short,
    },
    answers: { 200: "sessions, and whether there are more" },
    answer: answer.sessions,
    run: reading.listSessions,
  },
  {
    method: "POST",
    path: "/v1/sessions",
    role: "talk",
    summary: "A new session; with an Idempotency-Key, the same one again",
    body: newSession,
    isRepeatable: true,
    answers: { 201: "the session" },
    answer: answer.session,
    run: changing.createSession,
  },
  {
    method: "GET",
    path: "/v1/sessions/:id",
    role: "watch",
    summary: "One session with its plan, its last diff and the size of its context",
    answers: { 200: "session, plan, diff, context" },
    answer: answer.oneSession,
    run: reading.getSession,
  },
  {
    method: "DELETE",
    path: "/v1/sessions/:id",
    role: "administer",
    summary: "Removes a session and its records",
    answers: { 204: "removed" },
    run: changing.removeSession,
  },
  {
    method: "GET",
    path: "/v1/sessions/:id/records",
    role: "watch",
    summary: "The records of a session after number 'after'",
    query: { after: { type: "integer", minimum: -1 }, limit: count },
    answers: { 200: "records, and whether there are more" },
    answer: answer.records,
    run: reading.readRecords,
  },
  {
    method: "GET",
    path: "/v1/sessions/:id/events",
    role: "watch",
    summary: "Every record after Last-Event-ID, then everything as it happens",
    query: { after: { type: "integer", minimum: -1 } },
    isStream: true,
    answers: { 200: "events: record, live, status" },
    run: reading.followOne,
  },
  {
    method: "POST",
    path: "/v1/sessions/:id/messages",
    role: "talk",
    summary: "A message: begins a turn, waits for the running one, or steers it",
    body: newMessage,
    isRepeatable: true,
    answers: { 202: "the number of the message" },
    answer: answer.message,
    run: changing.postMessage,
  },
  {
    method: "POST",
    path: "/v1/sessions/:id/approvals/:callId",
    role: "approve",
    summary: "The answer to a question, bound to what was shown by its hash",
    body: approval,
    isRepeatable: true,
    answers: { 202: "taken" },
    answer: answer.nothing,
    run: changing.approve,
  },
  {
    method: "POST",
    path: "/v1/sessions/:id/cancel",
    role: "talk",
    summary: "Interrupts the running or waiting turn",
    body: object({}),
    isRepeatable: true,
    answers: { 202: "taken" },
    answer: answer.nothing,
    run: changing.cancel,
  },
  {
    method: "POST",
    path: "/v1/sessions/:id/undo",
    role: "approve",
    summary: "Takes back what the last turn did to files, whole or not at all",
    body: object({ turn: short }),
    isRepeatable: true,
    answers: { 200: "what was undone, and what stood against it" },
    answer: answer.undone,
    run: changing.undo,
  },
  {
    method: "GET",
    path: "/v1/sessions/:id/export",
    role: "watch",
    summary: "The session as a file",
    query: { format: { enum: ["jsonl", "md", "html"] } },
    answers: { 200: "the file" },
    run: reading.exportSession,
  },
  {
    method: "GET",
    path: "/v1/approvals",
    role: "watch",
    summary: "Every question that waits for an answer",
    answers: { 200: "approvals: session, request, askedAt" },
    answer: answer.approvals,
    run: reading.listApprovals,
  },
  {
    method: "GET",
    path: "/v1/events",
    role: "watch",
    summary: "Changes of any session, as they happen",
    isStream: true,
    answers: { 200: "events: status, approval" },
    run: reading.followAll,
  },
  {
    method: "GET",
    path: "/v1/tools",
    role: "watch",
    summary: "The tools as a model gets them",
    answers: { 200: "tools" },
    run: async (_asked, service) => ({ status: 200, json: await service.look.tools() }),
  },
  {
    method: "GET",
    path: "/v1/rules",
    role: "watch",
    summary: "The rules that calls are judged by",
    answers: { 200: "rules" },
    run: async (_asked, service) => ({ status: 200, json: await service.look.rules() }),
  },
  {
    method: "POST",
    path: "/v1/policy/check",
    role: "watch",
    summary: "What the policy says of a command; nothing runs",
    body: {
      ...object({
        shell: { type: "string", maxLength: 100_000 },
        argv: { type: "array", items: text, maxItems: 1000 },
      }),
      minProperties: 1,
      maxProperties: 1,
    },
    answers: { 200: "the verdict" },
    answer: answer.verdict,
    run: async ({ body }, service) => ({ status: 200, json: await service.look.checkPolicy(body) }),
  },
  {
    method: "GET",
    path: "/v1/tokens",
    role: "administer",
    summary: "The tenant's tokens, without the tokens themselves",
    answers: { 200: "tokens" },
    answer: answer.tokens,
    run: changing.listTokens,
  },
  {
    method: "POST",
    path: "/v1/tokens",
    role: "administer",
    summary: "A new token of the tenant; it is shown once",
    body: newToken,
    answers: { 201: "id and token" },
    answer: answer.newToken,
    run: changing.addToken,
  },
  {
    method: "DELETE",
    path: "/v1/tokens/:id",
    role: "administer",
    summary: "The token is good for nothing from now on",
    answers: { 204: "removed" },
    run: changing.removeToken,
  },
];

export interface Match {
  readonly route: Route;
  readonly params: Readonly<Record<string, string>>;
}

/** The route of a request, or else the `methods` that its path has: none if the path is unknown. */
export function findRoute(method: string, path: string): Match | { readonly methods: readonly string[] } {
  const matches = routes.flatMap((route) => {
    const params = matchPath(route.path, path);
    return params === undefined ? [] : [{ route, params }];
  });
  return matches.find(({ route }) => route.method === method) ?? { methods: matches.map(({ route }) => route.method) };
}

function matchPath(pattern: string, path: string): Readonly<Record<string, string>> | undefined {
  const wanted = pattern.split("/");
  const given = path.split("/");
  if (wanted.length !== given.length) return undefined;
  const params: Record<string, string> = {};
  for (const [index, part] of wanted.entries()) {
    const value = given[index]!;
    if (part.startsWith(":")) {
      try {
        params[part.slice(1)] = decodeURIComponent(value);
      } catch {
        return undefined;
      }
      if (value === "") return undefined;
    } else if (part !== value) return undefined;
  }
  return params;
}
