/**
 * Chat Completions answers to neutral events. Calls are judged when the whole answer has ended, never
 * by `finish_reason` alone: servers say `stop` with calls and `tool_calls` without any.
 */
import { isObject } from "../../base/json.ts";
import type { Answer, AnswerEnd, Finish, ModelError, ModelEvent, Outcome, Usage } from "../../spec/model.ts";
import { collect } from "../answer.ts";
import type { AnswerDecoder, DecodeOptions, Frame } from "../codec.ts";
import { createOutbox } from "../outbox.ts";
import { defined, json, object, parseObject, word, type Raw } from "../raw.ts";
import { createCalls } from "./calls.ts";
import { createChoices } from "./choices.ts";
import { readCalls, readError, readUsage } from "./delta.ts";
import { createWords } from "./words.ts";

export function createDecoder(options?: DecodeOptions): AnswerDecoder {
  return createChunkDecoder(options);
}

/** A body that came as a whole reads like a single chunk. */
export function decodeAnswer(body: unknown, options?: DecodeOptions): Answer {
  const decoder = createChunkDecoder(options);
  return collect([...decoder.pushChunk(object(body)), ...decoder.end()]);
}

interface ChunkDecoder extends AnswerDecoder {
  pushChunk(chunk: Raw): readonly ModelEvent[];
}

/** What a stream has said about its end so far. */
interface Ending {
  finish?: Finish | undefined;
  usage?: Usage;
  error?: ModelError;
  /** `[DONE]` was seen. */
  isFinal: boolean;
}

function createChunkDecoder(options: DecodeOptions = {}): ChunkDecoder {
  const events = createOutbox<ModelEvent>();
  const words = createWords(events.push, options.thinkTags === true);
  const calls = createCalls(events.push, options);
  const choices = createChoices();
  const ending: Ending = { isFinal: false };
  let answerId = "";
  let hasStarted = false;
  let hasEnded = false;

  function start(chunk: Raw): void {
    if (hasStarted) return;
    hasStarted = true;
    answerId = word(chunk["id"]) ?? "";
    events.push({ type: "answer.started", ...defined({ id: word(chunk["id"]), model: word(chunk["model"]) }) });
  }

  function follow(choice: Raw): void {
    ending.finish = readFinish(choice["finish_reason"]) ?? ending.finish;
    if (ending.error !== undefined) return;
    const delta = isObject(choice["delta"]) ? choice["delta"] : object(choice["message"]);
    words.take(delta);
    for (const call of readCalls(delta)) calls.take(call);
  }

  function pushChunk(chunk: Raw): readonly ModelEvent[] {
    if (hasEnded) return [];
    start(chunk);
    const choice = choices.take(chunk);
    if (choice !== undefined) follow(choice);
    if (!readEnding(chunk, ending) && choice === undefined)
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
function readEnding(chunk: Raw, ending: Ending): boolean {
  const groq = chunk["x_groq"];
  const usage = readUsage(chunk["usage"]) ?? (isObject(groq) ? readUsage(groq["usage"]) : undefined);
  if (usage !== undefined) ending.usage = usage;
  const isError = chunk["object"] === "error" || chunk["type"] === "error";
  const error = readError(chunk["error"] ?? (isError ? chunk : undefined));
  if (error !== undefined) ending.error ??= error;
  return usage !== undefined || error !== undefined || Array.isArray(chunk["choices"]);
}

function outcomeOf({ finish, error, isFinal }: Ending): Outcome {
  if (error !== undefined || finish === "error") return "error";
  if (finish === "length" || finish === "content_filter") return "incomplete";
  return finish !== undefined || isFinal ? "ok" : "truncated";
}

function toEnd(ending: Ending, outcome: Outcome, calls: number): AnswerEnd {
  const error =
    outcome === "error" ? (ending.error ?? { message: "the provider ended the answer with an error" }) : undefined;
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
  ["content_filter", "content_filter"],
  ["safety", "content_filter"],
  ["error", "error"],
  ["insufficient_system_resource", "error"],
]);

/** A reason nobody knows still says that the answer ended. */
function readFinish(value: unknown): Finish | undefined {
  const reason = word(value);
  return reason === undefined ? undefined : (finishes.get(reason.toLowerCase()) ?? "stop");
}
