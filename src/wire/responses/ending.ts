/** How a Responses answer ended: status, usage and errors, both ways; and the object that surrounds it. */
import { defined, isObject, type Json, type JsonObject } from "../../base/json.ts";
import type { AnswerEnd, Finish, ModelError, Outcome, Usage } from "../../spec/model.ts";
import { responsesError } from "../failure.ts";
import { boolean, count, json, number, object, type Raw, string, word } from "../raw.ts";
import { wire } from "./decode-item.ts";

export interface Ending {
  readonly outcome: Outcome;
  /** Absent if the calls decide: `tool_calls` with any, `stop` without. */
  readonly finish?: Finish;
  readonly error?: ModelError;
}

/** `status` is what the event's name or the body's own field says. */
export function decodeEnding(status: string, response: Raw): Ending {
  switch (status) {
    case "incomplete":
      return { outcome: "incomplete", finish: finishOf(string(object(response["incomplete_details"])["reason"])) };
    case "failed":
      return { outcome: "error", error: decodeError(response["error"]) };
    case "cancelled":
      return { outcome: "error", error: { message: "The response was cancelled.", code: "cancelled" } };
    case "in_progress":
    case "queued":
      return { outcome: "truncated" };
    default:
      return { outcome: "ok" };
  }
}

function finishOf(reason: string | undefined): Finish {
  if (reason === "content_filter") return "content_filter";
  return reason === "steered" ? "pause" : "length";
}

/** The last fields of an answer. Anything else that the server said is kept. */
export function endOf(ending: Ending, response: Raw, hasCalls: boolean): AnswerEnd {
  const finish = ending.finish ?? (ending.outcome === "ok" ? (hasCalls ? "tool_calls" : "stop") : undefined);
  const kept = defined({
    incomplete_details: standardReasons.has(string(object(response["incomplete_details"])["reason"]) ?? "")
      ? undefined
      : json(response["incomplete_details"]),
    service_tier: word(response["service_tier"]),
    end_turn: response["end_turn"] === undefined ? undefined : json(response["end_turn"]),
  });
  const fields = Object.fromEntries(Object.entries(kept).filter(([, value]) => value !== null));
  return defined({
    outcome: ending.outcome,
    finish,
    usage: decodeUsage(response["usage"]),
    error: ending.error,
    extra: Object.keys(fields).length > 0 ? { wire, fields } : undefined,
  });
}

const standardReasons: ReadonlySet<string> = new Set(["max_output_tokens", "content_filter"]);

/** Both known forms: the fields themselves, or an `error` object that holds them. */
export function decodeError(raw: unknown): ModelError {
  const outer = object(raw);
  const error = typeof outer["error"] === "object" && outer["error"] !== null ? object(outer["error"]) : outer;
  const type = error["type"] === "error" ? undefined : word(error["type"]);
  const code = word(error["code"]) ?? (typeof error["code"] === "number" ? String(error["code"]) : type);
  const message =
    string(error["message"]) ??
    string(raw) ??
    string(outer["error"]) ??
    "The model's server reported an error without a message.";
  return defined({
    message,
    code,
    type: type === code ? undefined : type,
    status: count(outer["status"]) ?? count(error["status"]),
    retryAfterMs: code === "rate_limit_exceeded" ? waitIn(message) : undefined,
  });
}

/** This API states the waiting time only in its sentence: "try again in 1.5s", "in 300ms", "in 2 seconds". */
function waitIn(message: string): number | undefined {
  const found = /try again in (\d+(?:\.\d+)?)\s*(ms|s\b|seconds?|minutes?|m\b)/i.exec(message);
  if (found === null) return undefined;
  const unit = found[2]!.toLowerCase();
  return Math.round(Number(found[1]) * (unit === "ms" ? 1 : unit.startsWith("m") ? 60_000 : 1000));
}

export function decodeUsage(raw: unknown): Usage | undefined {
  const usage = object(raw);
  const input = count(usage["input_tokens"]) ?? count(usage["prompt_tokens"]);
  const output = count(usage["output_tokens"]) ?? count(usage["completion_tokens"]);
  if (input === undefined && output === undefined) return undefined;
  const inputs = object(usage["input_tokens_details"]);
  return defined({
    input: input ?? 0,
    cached: count(inputs["cached_tokens"]) || undefined,
    cacheWritten: count(inputs["cache_write_tokens"]) || undefined,
    output: output ?? 0,
    reasoning: count(object(usage["output_tokens_details"])["reasoning_tokens"]) || undefined,
  });
}

/** Codex fails a finished turn if any of these fields is missing. */
export function encodeUsage(usage: Usage | undefined): JsonObject | null {
  if (usage === undefined) return null;
  return {
    input_tokens: usage.input,
    input_tokens_details: { cached_tokens: usage.cached ?? 0, cache_write_tokens: usage.cacheWritten ?? 0 },
    output_tokens: usage.output,
    output_tokens_details: { reasoning_tokens: usage.reasoning ?? 0 },
    total_tokens: usage.input + usage.output,
  };
}

/** The response object that surrounds items, complete enough for every client's types. */
export function encodeResponse(head: ResponseHead, output: readonly JsonObject[], ended?: AnswerEnd): JsonObject {
  const end = ended === undefined ? undefined : asTold(ended, output);
  return {
    id: head.id,
    object: "response",
    created_at: head.createdAt,
    status: end === undefined ? "in_progress" : statusOf(end.outcome),
    access_programs: null,
    error: end === undefined ? null : encodeFailure(end),
    incomplete_details:
      end?.outcome === "incomplete"
        ? { reason: end.finish === "content_filter" ? "content_filter" : "max_output_tokens" }
        : null,
    model: head.model,
    output,
    ...head.settings,
    usage: encodeUsage(end?.usage),
    ...(end?.extra?.wire === wire ? end.extra.fields : {}),
  };
}

/**
 * On this wire a refusal is a part of a message. A refusal without words would look like an answer that is complete,
 * so it is reported as filtered.
 */
function asTold(end: AnswerEnd, output: readonly JsonObject[]): AnswerEnd {
  const isTold = end.finish !== "refusal" || JSON.stringify(output).includes('"type":"refusal"');
  return isTold ? end : { ...end, outcome: "incomplete", finish: "content_filter" };
}

export interface ResponseHead {
  readonly id: string;
  readonly model: string;
  readonly createdAt: number;
  /** What the request asked for. */
  readonly settings: JsonObject;
}

function statusOf(outcome: Outcome): string {
  if (outcome === "ok") return "completed";
  return outcome === "incomplete" ? "incomplete" : "failed";
}

/** A stream that was cut upstream is reported as a failure here, because there is no other way to say it. */
function encodeFailure(end: AnswerEnd): JsonObject | null {
  if (end.outcome !== "error" && end.outcome !== "truncated") return null;
  return responsesError(end.error);
}

/**
 * The settings of a request, as this API repeats them in every response: what was asked for, or else its default.
 * A value that the API would not have accepted is not repeated.
 */
export function repeatSettings(asked: JsonObject | undefined): JsonObject {
  const raw = asked ?? {};
  return {
    background: false,
    instructions: string(raw["instructions"]) ?? list(raw["instructions"]) ?? null,
    max_output_tokens: number(raw["max_output_tokens"]) ?? null,
    max_tool_calls: number(raw["max_tool_calls"]) ?? null,
    metadata: table(raw["metadata"]) ?? {},
    parallel_tool_calls: boolean(raw["parallel_tool_calls"]) ?? true,
    previous_response_id: string(raw["previous_response_id"]) ?? null,
    reasoning: { effort: null, summary: null, ...table(raw["reasoning"]) },
    // A request that does not mention `store` asks for it. Without a request nothing is stored.
    store: asked !== undefined && raw["store"] !== false,
    temperature: number(raw["temperature"]) ?? 1,
    text: { format: { type: "text" }, ...table(raw["text"]) },
    tool_choice: word(raw["tool_choice"]) ?? table(raw["tool_choice"]) ?? "auto",
    tools: (list(raw["tools"]) ?? []).map(repeatTool),
    top_p: number(raw["top_p"]) ?? 1,
    truncation: word(raw["truncation"]) ?? "disabled",
    ...defined({
      conversation: conversationOf(raw["conversation"]),
      prompt: table(raw["prompt"]),
      prompt_cache_key: string(raw["prompt_cache_key"]),
      prompt_cache_retention: word(raw["prompt_cache_retention"]),
      safety_identifier: string(raw["safety_identifier"]),
      top_logprobs: number(raw["top_logprobs"]),
      user: string(raw["user"]),
    }),
  };
}

/** Clients' types want these two fields of a function, which a request may leave out. */
function repeatTool(tool: Json): Json {
  return isObject(tool) && tool["type"] === "function" ? { parameters: null, strict: null, ...tool } : tool;
}

function conversationOf(given: Json | undefined): JsonObject | undefined {
  const id = string(given) ?? string(table(given)?.["id"]);
  return id === undefined ? undefined : { id };
}

function list(given: Json | undefined): readonly Json[] | undefined {
  return Array.isArray(given) ? given : undefined;
}

function table(given: Json | undefined): JsonObject | undefined {
  return isObject(given) ? given : undefined;
}
