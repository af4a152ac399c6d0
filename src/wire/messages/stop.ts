/** The stop reasons of a Messages answer, and its last fields as a client gets them. */
import type { JsonObject } from "../../base/json.ts";
import type { AnswerEnd, Finish, Outcome, Usage } from "../../spec/model.ts";
import { echoed } from "../raw.ts";

export const wire = "messages";

interface StopRow {
  readonly outcome: Outcome;
  /** Absent if the calls decide. */
  readonly finish?: Finish;
}

export const stopRows: ReadonlyMap<string, StopRow> = new Map<string, StopRow>([
  ["end_turn", { outcome: "ok" }],
  ["tool_use", { outcome: "ok" }],
  ["stop_sequence", { outcome: "ok" }],
  ["max_tokens", { outcome: "incomplete", finish: "length" }],
  ["model_context_window_exceeded", { outcome: "incomplete", finish: "length" }],
  ["pause_turn", { outcome: "ok", finish: "pause" }],
  ["compaction", { outcome: "ok", finish: "pause" }],
  ["refusal", { outcome: "ok", finish: "refusal" }],
]);

/** The stop reason that a finish becomes when nothing more is known. */
export function stopReasonOf(end: AnswerEnd): string {
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
