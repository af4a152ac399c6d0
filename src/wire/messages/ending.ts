/** How a Messages answer ended: stop reason, usage and errors, both ways. */
import { defined, type JsonObject } from "../../base/json.ts";
import type { AnswerEnd, Finish, ModelError, Outcome, Usage } from "../../spec/model.ts";
import { count, echoed, object, type Raw, string, word } from "../raw.ts";

export const wire = "messages";

interface StopRow {
  readonly outcome: Outcome;
  /** Absent where the calls decide. */
  readonly finish?: Finish;
}

const stopRows: ReadonlyMap<string, StopRow> = new Map<string, StopRow>([
  ["end_turn", { outcome: "ok" }],
  ["tool_use", { outcome: "ok" }],
  ["stop_sequence", { outcome: "ok" }],
  ["max_tokens", { outcome: "incomplete", finish: "length" }],
  ["model_context_window_exceeded", { outcome: "incomplete", finish: "length" }],
  ["pause_turn", { outcome: "ok", finish: "pause" }],
  ["compaction", { outcome: "ok", finish: "pause" }],
  ["refusal", { outcome: "ok", finish: "refusal" }],
]);

/** What the end of a message said, from `message_delta` or from the whole body. */
export interface Said {
  readonly stopReason: string | undefined;
  readonly stopSequence: string | undefined;
  readonly stopDetails: Raw | undefined;
  readonly usage: Usage | undefined;
}

/** The stop fields of `message_delta` or of a whole body. */
export function readStop(stop: Raw): Omit<Said, "usage"> {
  const details = object(stop["stop_details"]);
  return {
    stopReason: word(stop["stop_reason"]),
    stopSequence: word(stop["stop_sequence"]),
    stopDetails: Object.keys(details).length > 0 ? details : undefined,
  };
}

export function endOf(said: Said, hasCalls: boolean): AnswerEnd {
  const row = stopRows.get(said.stopReason ?? "end_turn") ?? { outcome: "ok" };
  const end = defined({
    outcome: row.outcome,
    finish: row.finish ?? (hasCalls ? "tool_calls" : "stop"),
    usage: said.usage,
  });
  const fields = defined({
    stop_reason: said.stopReason === undefined || said.stopReason === stopReasonOf(end) ? undefined : said.stopReason,
    stop_sequence: said.stopSequence,
    stop_details: said.stopDetails,
  });
  return Object.keys(fields).length > 0 ? { ...end, extra: { wire, fields: fields as JsonObject } } : end; // parsed from JSON
}

/** The stop reason that a finish becomes when nothing more is known. */
function stopReasonOf(end: AnswerEnd): string {
  switch (end.finish) {
    case "tool_calls":
      return "tool_use";
    case "length":
      return "max_tokens";
    case "pause":
      return "pause_turn";
    case "content_filter":
    case "refusal":
      return "refusal";
    default:
      return end.outcome === "incomplete" ? "max_tokens" : "end_turn";
  }
}

/** The last fields of a message, as `message_delta` and the whole body carry them. */
export function encodeStop(end: AnswerEnd, refusal: string | undefined): JsonObject {
  const own = echoed(end.extra, wire);
  const isRefusal = refusal !== undefined && end.outcome !== "incomplete";
  return {
    stop_reason: own["stop_reason"] ?? (isRefusal ? "refusal" : stopReasonOf(end)),
    stop_sequence: own["stop_sequence"] ?? null,
    ...(own["stop_details"] !== undefined
      ? { stop_details: own["stop_details"] }
      : refusal === undefined
        ? {}
        : { stop_details: { type: "refusal", category: null, explanation: refusal } }),
  };
}

/** What is said later replaces what was said before; null and absent fields say nothing. */
export function overlay(before: Raw, after: unknown): Raw {
  const merged = { ...before };
  for (const [key, value] of Object.entries(object(after))) {
    if (value !== null && value !== undefined) merged[key] = value;
  }
  return merged;
}

/** This API counts cached input apart, the neutral count includes it. */
export function decodeUsage(usage: Raw): Usage | undefined {
  const fresh = count(usage["input_tokens"]);
  const output = count(usage["output_tokens"]);
  if (fresh === undefined && output === undefined) return undefined;
  const cached = count(usage["cache_read_input_tokens"]) ?? 0;
  const written = count(usage["cache_creation_input_tokens"]) ?? 0;
  // Nothing counted at all is how a server that does not count fills the field.
  if (((fresh ?? 0) + cached + written || (output ?? 0)) === 0) return undefined;
  return defined({
    input: (fresh ?? 0) + cached + written,
    cached: cached || undefined,
    cacheWritten: written || undefined,
    output: output ?? 0,
    reasoning: count(object(usage["output_tokens_details"])["thinking_tokens"]) || undefined,
  });
}

export function encodeUsage(usage: Usage | undefined): JsonObject {
  const cached = usage?.cached ?? 0;
  const written = usage?.cacheWritten ?? 0;
  return {
    input_tokens: Math.max(0, (usage?.input ?? 0) - cached - written),
    cache_creation_input_tokens: written,
    cache_read_input_tokens: cached,
    output_tokens: usage?.output ?? 0,
    ...(usage?.reasoning === undefined ? {} : { output_tokens_details: { thinking_tokens: usage.reasoning } }),
  };
}

/** `{type:"error", error:{type, message}}`; the type is this API's code. */
export function decodeError(raw: unknown): ModelError {
  const outer = object(raw);
  const error = object(outer["error"]);
  const type = word(error["type"]);
  const code = word(error["code"]) ?? word(object(error["details"])["error_code"]) ?? type;
  return defined({
    message:
      string(error["message"]) ??
      string(outer["error"]) ??
      string(outer["message"]) ??
      "The model's server reported an error without a message.",
    code,
    type: type === code ? undefined : type,
    status: count(outer["status"]),
  });
}
