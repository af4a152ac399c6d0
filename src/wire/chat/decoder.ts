/**
 * Chat Completions answers to neutral events. Calls are judged when the whole answer has ended, never
 * by `finish_reason` alone: servers say `stop` with calls and `tool_calls` without any.
 */
import { defined, isObject } from "../../base/json.ts";
import type { AnswerEnd, Finish, ModelError, ModelEvent, Outcome, Usage } from "../../spec/model.ts";
import { type ChunkDecoder, toAnswerReader } from "../chunk-decoder.ts";
import type { DecodeOptions, Frame } from "../codec.ts";
import { createOutbox } from "../outbox.ts";
import { json, object, parseObject, word, type Raw } from "../raw.ts";
import { createCalls } from "./calls.ts";
import { createChoices } from "./choices.ts";
import { bareError, readCalls, readError, readUsage } from "./delta.ts";
import { createWords } from "./words.ts";

export const decodeAnswer = toAnswerReader(createDecoder);

/** What a stream has said about its end so far. */
interface Ending {
  finish?: Finish | undefined;
  /** In the server's own words. */
  reason?: string;
  usage?: Usage;
  error?: ModelError;
  /** `[DONE]` was seen. */
  isFinal: boolean;
}

export function createDecoder(options: DecodeOptions = {}): ChunkDecoder {
  const events = createOutbox<ModelEvent>();
  const words = createWords(events.push, options.thinkTags === true);
  const calls = createCalls(events.push, options);
  const choices = createChoices();
  const ending: Ending = { isFinal: false };
  let answerId = "";
  let hasStarted = false;
  let hasEnded = false;

  function start(chunk: Raw): void {
    // Azure opens with a chunk that says nothing, not even who speaks.
    if (hasStarted || (chunk["id"] === "" && chunk["model"] === "")) return;
    hasStarted = true;
    answerId = word(chunk["id"]) ?? "";
    events.push({ type: "answer.started", ...defined({ id: word(chunk["id"]), model: word(chunk["model"]) }) });
  }

  function follow(choice: Raw): void {
    const reason = word(choice["finish_reason"]);
    if (reason !== undefined && !noReasons.has(reason)) Object.assign(ending, { reason, finish: readFinish(reason) });
    if (ending.error !== undefined) return;
    const delta = isObject(choice["delta"]) ? choice["delta"] : object(choice["message"]);
    words.take(delta);
    const called = readCalls(delta);
    if (called.length > 0) words.endThought();
    for (const call of called) calls.take(call);
  }

  function pushChunk(chunk: Raw): readonly ModelEvent[] {
    if (hasEnded) return [];
    start(chunk);
    const choice = choices.take(chunk);
    if (choice !== undefined) follow(choice);
    if (!readEnding(chunk, choice, ending) && choice === undefined)
      events.push({ type: "other", wire: "chat", raw: json(chunk) });
    return events.drain();
  }

  function endAnswer(): readonly ModelEvent[] {
    if (hasEnded) return [];
    start({});
    hasEnded = true;
    choices.end().forEach(follow);
    const outcome = outcomeOf(ending);
    words.done();
    events.push({ type: "answer.ended", answer: toEnd(ending, outcome, calls.done(outcome, answerId)) });
    return events.drain();
  }

  return {
    pushChunk,
    push(frame: Frame) {
      if (frame.data.length < 16 && frame.data.trim() === "[DONE]") {
        ending.isFinal = true;
        return endAnswer();
      }
      const chunk = parseObject(frame.data);
      if (frame.event === "error") return pushChunk({ error: chunk ?? frame.data });
      return chunk === undefined ? [] : pushChunk(chunk);
    },
    end: endAnswer,
  };
}

/** Takes usage and error from a chunk; says whether it had anything that belongs to this wire. */
function readEnding(chunk: Raw, choice: Raw | undefined, ending: Ending): boolean {
  const usage = findUsage(chunk, choice);
  // Zeros are how servers that do not count fill the field; they take nothing back.
  if (usage !== undefined && (ending.usage === undefined || usage.input + usage.output > 0)) ending.usage = usage;
  const isOurs = usage !== undefined || Array.isArray(chunk["choices"]);
  const error = readError(chunk["error"] ?? choice?.["error"] ?? (isOurs ? undefined : bareError(chunk)));
  if (error !== undefined) ending.error ??= error;
  return isOurs || error !== undefined;
}

/** The usual place, or where Moonshot and Groq have it. */
function findUsage(chunk: Raw, choice: Raw | undefined): Usage | undefined {
  const usage = readUsage(chunk["usage"]);
  return usage ?? readUsage(choice?.["usage"]) ?? readUsage(object(chunk["x_groq"])["usage"]);
}

function outcomeOf({ finish, error, isFinal }: Ending): Outcome {
  if (error !== undefined || finish === "error") return "error";
  if (finish === "length" || finish === "content_filter") return "incomplete";
  return finish !== undefined || isFinal ? "ok" : "truncated";
}

function toEnd(ending: Ending, outcome: Outcome, calls: number): AnswerEnd {
  const error =
    outcome === "error"
      ? (ending.error ?? { message: `the provider ended the answer with '${ending.reason}'` })
      : undefined;
  const finish = outcome === "ok" ? (calls > 0 ? "tool_calls" : "stop") : ending.finish;
  const isSaid = finish !== undefined && (outcome !== "error" || finish === "error");
  return { outcome, ...defined({ finish: isSaid ? finish : undefined, usage: ending.usage, error }) };
}

const finishes: ReadonlyMap<string, Finish> = new Map<string, Finish>([
  ["stop", "stop"],
  ["tool_calls", "tool_calls"],
  ["function_call", "tool_calls"],
  ["tool_use", "tool_calls"],
  ["length", "length"],
  ["max_tokens", "length"],
  ["model_length", "length"],
  ["model_context_window_exceeded", "length"],
  ["content_filter", "content_filter"],
  ["content-filter", "content_filter"],
  ["safety", "content_filter"],
  ["sensitive", "content_filter"],
  ["refusal", "content_filter"],
  ["error", "error"],
  ["abort", "error"],
  ["aborted", "error"],
  ["cancelled", "error"],
  ["network_error", "error"],
  ["function_call_filter", "error"],
  ["malformed_function_call", "error"],
  ["insufficient_system_resource", "error"],
]);

/** What servers write that mean to write nothing. */
const noReasons: ReadonlySet<string> = new Set(["null", "None"]);

/** A reason nobody knows still says that the answer ended. Gemini's door for Chat adds its own after a colon. */
function readFinish(reason: string): Finish {
  return finishes.get(reason.toLowerCase().split(":")[0]!) ?? "stop";
}
