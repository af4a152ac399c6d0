/** Everything that can go wrong between a request and an answer, as a ModelError that says what to do. */
import { defined, isObject } from "../base/json.ts";
import type { Redact } from "../base/redact.ts";
import type { ModelError, ModelEvent } from "../spec/model.ts";
import { isOverflow } from "../wire/failure.ts";
import { TransportError } from "./transport.ts";

/** The kind of a model's failure. It decides whether asking again can help. */
export type FailureKind = (typeof failureKinds)[number];

const failureKinds = [
  "auth",
  "unknown_model",
  "context_overflow",
  "rate_limit",
  "overloaded",
  "bad_tool",
  "bad_request",
  "network",
  "aborted",
  "limit",
] as const;

const kinds: ReadonlySet<string> = new Set(failureKinds);
const retryable: ReadonlySet<string> = new Set<FailureKind>(["rate_limit", "overloaded", "network"]);

/** Whether asking again may help. */
export function isRetryable(error: ModelError): boolean {
  return retryable.has(error.type ?? "");
}

/** The wires' names for failures that are reported inside a stream. */
const kindsByCode: ReadonlyMap<string, FailureKind> = new Map<string, FailureKind>([
  ["overloaded_error", "overloaded"],
  ["api_error", "overloaded"],
  ["server_error", "overloaded"],
  ["internal_server_error", "overloaded"],
  ["server_is_overloaded", "overloaded"],
  ["slow_down", "overloaded"],
  ["unavailable", "overloaded"],
  ["internal", "overloaded"],
  ["rate_limit_error", "rate_limit"],
  ["rate_limit_exceeded", "rate_limit"],
  ["resource_exhausted", "rate_limit"],
  ["context_length_exceeded", "context_overflow"],
  ["authentication_error", "auth"],
  ["permission_error", "auth"],
  ["model_not_found", "unknown_model"],
]);

/** An error from inside a stream, with our word for its kind if that is known. Its own word stays as its code. */
export function classify(error: ModelError): ModelError {
  const { code, type, status, message } = error;
  if (kinds.has(type ?? "")) return error;
  const named = kindsByCode.get(code?.toLowerCase() ?? "") ?? kindsByCode.get(type?.toLowerCase() ?? "");
  const told = status === undefined ? undefined : kindOf(status, defined({ message, code }));
  const kind = isOverflow(message) ? "context_overflow" : (named ?? told);
  if (kind === undefined) return error;
  const own = code ?? type;
  return { ...error, type: kind, ...defined({ code: own }) };
}

export interface FailureContext {
  readonly model: string;
  readonly host: string;
  readonly keyName: string;
  readonly toolNames: readonly string[];
}

/** An HTTP refusal as a ModelError whose message says what to do. */
export function readHttpFailure(
  status: number,
  headers: Readonly<Record<string, string | undefined>>,
  body: string,
  at: FailureContext,
): ModelError {
  const said = readRefusal(body);
  const kind = kindOf(status, said);
  const retryAfterMs = readRetryAfter(headers, said.message);
  return {
    message: advise(kind, status, said.message, at),
    type: kind,
    status,
    ...defined({ code: said.code, retryAfterMs, raw: body === "" ? undefined : body }),
  };
}

export function readTransportFailure(error: unknown): ModelError {
  if (!(error instanceof TransportError)) throw error;
  const kind = error.kind === "aborted" ? "aborted" : error.kind === "too_large" ? "limit" : "network";
  return { message: error.message, type: kind, code: error.kind };
}

/** What is said once nothing more is tried. A server that cannot be reached is mostly one that was not started. */
export function withAdvice(error: ModelError): ModelError {
  if (error.code !== "connect") return error;
  return { ...error, message: `${error.message}. Is the model's server running, and is its address right?` };
}

/** What a server said when it refused: its message and its own code, however they are wrapped. */
export function readRefusal(body: string): { readonly message: string; readonly code?: string } {
  try {
    const parsed: unknown = JSON.parse(body);
    // OpenAI and Anthropic nest it, Gemini wraps it in a list, some servers send it flat.
    const outer = Array.isArray(parsed) ? (parsed[0] as unknown) : parsed;
    const error = isObject(outer) ? (isObject(outer["error"]) ? outer["error"] : outer) : {};
    const code = error["code"] ?? error["type"] ?? error["status"];
    const message = error["message"] ?? (isObject(outer) ? (outer["error"] ?? outer["detail"]) : undefined);
    if (message !== undefined) {
      return {
        message: typeof message === "string" ? message : JSON.stringify(message),
        ...(typeof code === "string" ? { code } : {}),
      };
    }
  } catch {
    // Not JSON: a proxy's page or plain text. The text itself is the message.
  }
  return { message: body.trim().slice(0, 500) };
}

function kindOf(status: number, said: { readonly message: string; readonly code?: string }): FailureKind {
  const text = said.message;
  if (status === 401 || status === 403) return "auth";
  if (status === 429) return "rate_limit";
  if (said.code === "context_length_exceeded" || status === 413 || isOverflow(text)) return "context_overflow";
  if (status === 404 || said.code === "model_not_found") return "unknown_model";
  if (status >= 500) return "overloaded";
  if (/\btools?\b|function|schema|parameters/i.test(text)) return "bad_tool";
  return "bad_request";
}

function advise(kind: FailureKind, status: number, said: string, at: FailureContext): string {
  const quoted = said === "" ? `HTTP ${status}` : `HTTP ${status}: ${said}`;
  switch (kind) {
    case "auth":
      return `${at.host} refused the key (${quoted}). Set ${at.keyName}, or run 'callgate init'.`;
    case "unknown_model":
      return `${at.host} does not know the model '${at.model}' (${quoted}).`;
    case "context_overflow":
      return `The conversation is longer than '${at.model}' can take (${quoted}).`;
    case "rate_limit":
      return `${at.host} asks to slow down (${quoted}).`;
    case "overloaded":
      return `${at.host} is in trouble (${quoted}).`;
    case "bad_tool": {
      const named = at.toolNames.filter((name) => said.includes(name));
      return `${at.host} refused the request${named.length > 0 ? ` because of the tool ${named.join(", ")}` : ""} (${quoted}). 'callgate tools lint' checks the tools.`;
    }
    default:
      return `${at.host} refused the request (${quoted}).`;
  }
}

/** `retry-after` in seconds or as a date, or the words "try again in 1.5s". */
function readRetryAfter(headers: Readonly<Record<string, string | undefined>>, message: string): number | undefined {
  const ms = headers["retry-after-ms"];
  if (ms !== undefined && Number.isFinite(Number(ms))) return Number(ms);
  const after = headers["retry-after"];
  if (after !== undefined) {
    const seconds = Number(after);
    if (Number.isFinite(seconds)) return seconds * 1000;
    const date = Date.parse(after);
    if (!Number.isNaN(date)) return Math.max(0, date - Date.now());
  }
  const words = /try again in (\d+(?:\.\d+)?)\s*(ms|s|seconds?)/i.exec(message);
  return words ? Number(words[1]) * (words[2]!.toLowerCase() === "ms" ? 1 : 1000) : undefined;
}

/** The error for a stream that ended in order, but consisted mostly of frames that this wire does not know. */
export function otherWire(url: URL, wire: string): ModelError {
  return {
    message: `${url.host} answered with a stream that says nothing in '${wire}': does it speak another wire?`,
    type: "bad_request",
  };
}

/** The error for an address at which something else than a model answers. */
export function notAnApi(url: URL, status: number, begins: string): ModelError {
  const what = begins.startsWith("<") ? "a web page" : `'${begins}'`;
  return {
    message: `${url.host} answered with ${what} (HTTP ${status}), not as a model: is the base URL right?`,
    type: "bad_request",
    status,
  };
}

/** Whatever the server gave as its reason may contain the key. */
export function withoutKey({ message, code, type, raw, ...rest }: ModelError, redact: Redact): ModelError {
  const words = Object.entries(defined({ code, type, raw })).map(([name, text]) => [name, redact(text)]);
  return { ...rest, message: redact(message), ...Object.fromEntries(words) };
}

/** The end of an answer that never began. */
export function failed(error: ModelError): ModelEvent {
  return { type: "answer.ended", answer: { outcome: "error", finish: "error", error } };
}
