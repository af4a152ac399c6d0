/**
 * Failures as each wire's clients know them. A client decides by these words whether to ask again,
 * compact its history or give up, so an error keeps its kind whichever wire it came from.
 */
import { defined, type JsonObject } from "../base/json.ts";
import type { ModelError } from "../spec/model.ts";

/**
 * Thrown by `decodeRequest` for a client's request that makes no sense on its wire. It carries the
 * answer in that wire's own form.
 */
export class RequestError extends Error {
  override readonly name = "RequestError";
  readonly status: number;
  readonly body: JsonObject;

  constructor(status: number, message: string, body: JsonObject) {
    super(message);
    this.status = status;
    this.body = body;
  }

  static is(value: unknown): value is RequestError {
    return value instanceof Error && value.name === "RequestError";
  }
}

/** What to answer over HTTP. */
export interface WireFailure {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: JsonObject;
}

interface Kind {
  readonly status: number;
  /** `error.type` and `error.code` of Chat. */
  readonly chat: readonly [type: string, code: string | null];
  /** `error.code` of Responses. */
  readonly responses: string;
  readonly messages: string;
  readonly gemini: string;
}

function kind(
  status: number,
  type: string,
  code: string | null,
  responses: string,
  rest: readonly [string, string],
): Kind {
  return { status, chat: [type, code], responses, messages: rest[0], gemini: rest[1] };
}

const badRequest = kind(400, "invalid_request_error", null, "invalid_prompt", [
  "invalid_request_error",
  "INVALID_ARGUMENT",
]);
const serverError = kind(502, "server_error", null, "server_error", ["api_error", "INTERNAL"]);

/** The kinds that `model/` gives to failures, and those that only a gateway has. */
const kinds: ReadonlyMap<string, Kind> = new Map([
  [
    "auth",
    kind(401, "invalid_request_error", "invalid_api_key", "invalid_api_key", [
      "authentication_error",
      "UNAUTHENTICATED",
    ]),
  ],
  [
    "unknown_model",
    kind(404, "invalid_request_error", "model_not_found", "model_not_found", ["not_found_error", "NOT_FOUND"]),
  ],
  [
    "context_overflow",
    kind(400, "invalid_request_error", "context_length_exceeded", "context_length_exceeded", [
      "invalid_request_error",
      "INVALID_ARGUMENT",
    ]),
  ],
  [
    "rate_limit",
    kind(429, "rate_limit_error", "rate_limit_exceeded", "rate_limit_exceeded", [
      "rate_limit_error",
      "RESOURCE_EXHAUSTED",
    ]),
  ],
  [
    "overloaded",
    kind(503, "server_error", "server_is_overloaded", "server_is_overloaded", ["overloaded_error", "UNAVAILABLE"]),
  ],
  [
    "billing",
    kind(402, "insufficient_quota", "insufficient_quota", "insufficient_quota", [
      "billing_error",
      "RESOURCE_EXHAUSTED",
    ]),
  ],
  ["permission", kind(403, "invalid_request_error", null, "invalid_prompt", ["permission_error", "PERMISSION_DENIED"])],
  ["no_endpoint", kind(404, "invalid_request_error", null, "invalid_prompt", ["not_found_error", "NOT_FOUND"])],
  [
    "body_too_large",
    kind(413, "invalid_request_error", null, "invalid_prompt", ["request_too_large", "INVALID_ARGUMENT"]),
  ],
  ["bad_tool", badRequest],
  ["bad_request", badRequest],
  ["network", serverError],
  ["aborted", kind(499, "server_error", "cancelled", "server_error", ["api_error", "CANCELLED"])],
  ["limit", serverError],
]);

/** The codes that the wires use for errors inside a stream, and the kind that each of them means. */
const kindsByWord: ReadonlyMap<string, string> = new Map([
  ["authentication_error", "auth"],
  ["invalid_api_key", "auth"],
  ["unauthenticated", "auth"],
  ["permission_error", "permission"],
  ["permission_denied", "permission"],
  ["billing_error", "billing"],
  ["insufficient_quota", "billing"],
  ["not_found_error", "unknown_model"],
  ["not_found", "unknown_model"],
  ["model_not_found", "unknown_model"],
  ["context_length_exceeded", "context_overflow"],
  ["request_too_large", "context_overflow"],
  ["rate_limit_error", "rate_limit"],
  ["rate_limit_exceeded", "rate_limit"],
  ["resource_exhausted", "rate_limit"],
  ["overloaded_error", "overloaded"],
  ["server_is_overloaded", "overloaded"],
  ["slow_down", "overloaded"],
  ["unavailable", "overloaded"],
  ["invalid_request_error", "bad_request"],
  ["invalid_argument", "bad_request"],
  ["invalid_prompt", "bad_request"],
]);

/** Statuses that say more than the kind that `model/` derived from them. */
const kindsByStatus: ReadonlyMap<number, string> = new Map([
  [402, "billing"],
  [403, "permission"],
  [500, "network"],
  [502, "network"],
  [504, "network"],
]);

function kindOf(error: ModelError): string | undefined {
  if (isOverflow(error.message)) return "context_overflow";
  const { status = 0 } = error;
  const told = status >= 200 && status < 300 ? "network" : kindsByStatus.get(status);
  if (told !== undefined && error.type !== "context_overflow") return told;
  for (const said of [error.type, error.code]) {
    if (said === undefined) continue;
    const found = kinds.has(said) ? said : kindsByWord.get(said.toLowerCase());
    // Every kind of refused request is an "invalid request" to some API, so its code decides.
    if (found !== undefined && (found !== "bad_request" || said === error.code)) return found;
  }
  return error.type === "bad_request" ? error.type : kindsByWord.get(error.type?.toLowerCase() ?? "");
}

/** Providers report in many ways that a conversation is too long. */
export function isOverflow(message: string): boolean {
  return /prompt is too long|context (length|window)|maximum context|too many tokens|input token count.*exceeds|exceeds the maximum number of tokens|input is too long/i.test(
    message,
  );
}

type Wire = "chat" | "responses" | "messages" | "gemini";

/** Whole seconds until a client may ask again. Clients give up on a 429 that does not say. */
function retryAfter(status: number, error: ModelError): Readonly<Record<string, string>> {
  if (status !== 429 && status !== 503 && status !== 529 && error.retryAfterMs === undefined) return {};
  return { "retry-after": String(Math.max(1, Math.ceil((error.retryAfterMs ?? 2000) / 1000))) };
}

/** The status that the model's server gave is kept: clients know from it whether to ask again. */
function statusOf(error: ModelError, wire: Wire): number {
  const kind = kindOf(error);
  const known = kinds.get(kind ?? "");
  if (kind === "context_overflow") return 400;
  if (wire === "messages" && known?.messages === "overloaded_error") return 529;
  const own = error.status !== undefined && error.status >= 400 && error.status <= 599 ? error.status : undefined;
  if (own !== undefined) return own;
  // After 402 and 403 Codex asks again, but it shows a 400 to the user. A refusal of ours is final, so it is sent as
  // 400.
  if (wire === "responses" && (known?.status === 402 || known?.status === 403)) return 400;
  return known?.status ?? 502;
}

export function toFailure(error: ModelError, wire: Wire, body: JsonObject): WireFailure {
  const status = statusOf(error, wire);
  return { status, headers: retryAfter(status, error), body };
}

const cutOff: ModelError = { message: "The model's answer ended before it was complete." };

/** `error` of a Chat body or chunk. A code of the provider's own is kept where its kind is not known. */
export function chatError(error: ModelError = cutOff): JsonObject {
  const known = kinds.get(kindOf(error) ?? "");
  return {
    message: error.message,
    type: known?.chat[0] ?? error.type ?? "server_error",
    param: null,
    code: known === undefined ? (error.code ?? null) : (known.chat[1] ?? error.code ?? null),
  };
}

/** `error` of a failed response. Codex reads the waiting time from the sentence. */
export function responsesError(error: ModelError = cutOff): JsonObject {
  const known = kindOf(error);
  const wait = error.retryAfterMs;
  const isWait = known === "rate_limit" && wait !== undefined && !/try again in/i.test(error.message);
  const message = isWait ? `${error.message} Please try again in ${Math.ceil(wait / 100) / 10}s.` : error.message;
  return defined({
    code: kinds.get(known ?? "")?.responses ?? error.code ?? "server_error",
    message,
    type: known === undefined ? error.type : undefined,
  });
}

/** Claude Code compacts by itself when it reads "prompt is too long". */
export function messagesError(error: ModelError = cutOff): JsonObject {
  const known = kindOf(error);
  const isLong = known === "context_overflow" && !/prompt is too long/i.test(error.message);
  return {
    type: "error",
    error: {
      type: kinds.get(known ?? "")?.messages ?? "api_error",
      message: isLong ? `prompt is too long: ${error.message}` : error.message,
    },
  };
}

export function geminiError(error: ModelError = cutOff): JsonObject {
  const known = kinds.get(kindOf(error) ?? "");
  return {
    code: statusOf(error, "gemini"),
    message: error.message,
    status: known?.gemini ?? error.code ?? "INTERNAL",
  };
}
