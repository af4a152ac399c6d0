/**
 * Reads a Chat Completions answer, chunk by chunk. Calls are judged when the whole answer has ended,
 * and never by `finish_reason` alone: servers say `stop` with calls, and `tool_calls` without any. Of
 * text and thoughts, one item grows at a time. A thought is done when text or a call begins, so that a
 * client sees the text live.
 */
import { type Part, text as textPart } from "../../base/content.ts";
import { createGrowingText, type GrowingText } from "../../base/growing-text.ts";
import { defined, isObject } from "../../base/json.ts";
import type { AnswerEnd, Finish, Item, ModelError, ModelEvent, Outcome, Usage } from "../../spec/model.ts";
import { type ChunkDecoder, toAnswerReader } from "../chunk-decoder.ts";
import type { DecodeOptions, Frame, RepeatedFrame } from "../codec.ts";
import { createOutbox } from "../outbox.ts";
import { cutFrame } from "../runs.ts";
import { json, object, objects, parseObject, type Raw, word } from "../raw.ts";
import { createCalls } from "./calls.ts";
import { bareError, createChoices, readCalls, readContent, readError, readReasoning, readUsage } from "./delta.ts";
import { decodeContent } from "./parts.ts";

export const decodeAnswer = toAnswerReader(createDecoder);

/** What a stream has said about its end so far. */
interface Ending {
  finish?: Finish | undefined;
  /** Why the answer ended, in the server's own words. */
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
  /** The last frame that held only text, and that text. */
  let spoken: { readonly frame: Frame; readonly words: string } | undefined;
  let cut: { readonly of: Frame; readonly frame: RepeatedFrame | undefined } | undefined;
  let answerId = "";
  let hasStarted = false;
  let hasEnded = false;

  function start(chunk: Raw): void {
    // Azure begins with an empty chunk that does not even name a model.
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
      const said = chunk === undefined ? "" : onlyWords(chunk);
      spoken = said === "" ? undefined : { frame, words: said };
      if (frame.event === "error") return pushChunk({ error: chunk ?? frame.data });
      return chunk === undefined ? [] : pushChunk(chunk);
    },
    repeated() {
      if (spoken === undefined || hasEnded || ending.error !== undefined) return undefined;
      if (cut?.of !== spoken.frame) {
        const halves = cutFrame(spoken.frame, "content", spoken.words);
        const hear = (text: string) => (words.hear(text), events.drain());
        cut = { of: spoken.frame, frame: halves && { ...halves, hear } };
      }
      return cut.frame;
    },
    end: endAnswer,
  };
}

/** The text of a chunk that holds nothing else; "" for every other chunk. */
function onlyWords(chunk: Raw): string {
  const choices = chunk["choices"];
  const [choice] = Array.isArray(choices) && choices.length === 1 ? choices : [];
  const delta = isObject(choice) ? choice["delta"] : undefined;
  if (!isObject(choice) || !isObject(delta) || typeof delta["content"] !== "string") return "";
  if (choice["index"] !== 0 || choice["finish_reason"] || choice["usage"] || choice["error"]) return "";
  if (chunk["usage"] || chunk["error"] || chunk["x_groq"]) return "";
  for (const name of Object.keys(delta)) if (name !== "content" && name !== "role" && delta[name]) return "";
  return delta["content"];
}

/** Takes usage and error from a chunk. Returns whether it had anything that belongs to this wire. */
function readEnding(chunk: Raw, choice: Raw | undefined, ending: Ending): boolean {
  const usage = findUsage(chunk, choice);
  // Servers that do not count fill the field with zeros, which must not replace earlier counts.
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

/** What some servers write instead of null. */
const noReasons: ReadonlySet<string> = new Set(["null", "None"]);

/** An unknown reason still means that the answer ended. Gemini's Chat endpoint adds its own reason after a colon. */
function readFinish(reason: string): Finish {
  return finishes.get(reason.toLowerCase().split(":")[0]!) ?? "stop";
}

interface Words {
  take(delta: Raw): void;
  /** A delta that contains only text. */
  hear(text: string): void;
  /** A call begins, so nothing more belongs to the thought before it. */
  endThought(): void;
  done(): void;
}

interface Thought {
  readonly type: "reasoning";
  readonly index: number;
  readonly text: GrowingText;
}

interface Message {
  readonly type: "message";
  readonly index: number;
  readonly text: GrowingText;
  readonly refusal: GrowingText;
  readonly media: Part[];
}

function createWords(emit: (event: ModelEvent) => void, thinkTags: boolean): Words {
  const think = thinkTags ? createThinkSplitter() : undefined;
  let next = 0;
  let open: Thought | Message | undefined;
  let details: Raw[] = [];

  function close(): void {
    if (open === undefined) return;
    const item = open.type === "message" ? toMessage(open) : toReasoning(open.text.toString(), details);
    if (open.type === "reasoning") details = [];
    emit({ type: "item.done", index: open.index, item });
    open = undefined;
  }

  function thought(): Thought {
    if (open?.type === "reasoning") return open;
    close();
    const begun: Thought = { type: "reasoning", index: next++, text: createGrowingText() };
    emit({ type: "item.started", index: begun.index, item: { type: "reasoning" } });
    open = begun;
    return begun;
  }

  function message(): Message {
    if (open?.type === "message") return open;
    close();
    const begun: Message = {
      type: "message",
      index: next++,
      text: createGrowingText(),
      refusal: createGrowingText(),
      media: [],
    };
    emit({ type: "item.started", index: begun.index, item: { type: "message", role: "assistant", content: [] } });
    open = begun;
    return begun;
  }

  function say(field: "text" | "refusal", delta: string): void {
    if (delta === "") return;
    const item = message();
    item[field].add(delta);
    emit({ type: "item.delta", index: item.index, field, delta });
  }

  function muse(delta: string): void {
    if (delta === "") return;
    const item = thought();
    item.text.add(delta);
    emit({ type: "item.delta", index: item.index, field: "reasoning", delta });
  }

  function sayPieces(pieces: readonly { readonly inside: boolean; readonly text: string }[]): void {
    for (const piece of pieces) {
      if (piece.inside) muse(piece.text);
      else say("text", piece.text);
    }
  }

  function hear(text: string): void {
    if (think === undefined) say("text", text);
    else sayPieces(think.push(text));
  }

  return {
    hear,
    take(delta) {
      const content = delta["content"];
      const said = typeof content === "string" ? content : undefined;
      const parts = said === undefined ? readContent(content) : undefined;
      const beside = readReasoning(delta);
      for (const detail of objects(delta["reasoning_details"])) addDetail(details, detail);
      muse(beside === "" ? (parts?.reasoning ?? "") : beside);
      const words = said ?? parts?.text ?? "";
      hear(words);
      say("refusal", word(delta["refusal"]) ?? "");
      // Pictures that a model made are beside its text.
      const images = delta["images"];
      if (Array.isArray(images) && images.length > 0)
        for (const image of decodeContent(images)) message().media.push(image);
    },
    endThought() {
      if (open?.type === "reasoning") close();
    },
    done() {
      sayPieces(think?.end() ?? []);
      close();
      // Details that came after their thought had ended go back as they came.
      if (details.length === 0) return;
      thought();
      close();
    },
  };
}

function toReasoning(text: string, details: readonly Raw[]): Item {
  return {
    type: "reasoning",
    ...(text === "" ? {} : { text }),
    ...(details.length === 0 ? {} : { extra: { wire: "chat", fields: { reasoning_details: json(details) } } }),
  };
}

function toMessage({ text: said, refusal: refused, media }: Message): Item {
  const text = said.toString();
  const refusal = refused.toString();
  const content = text === "" ? media : [textPart(text), ...media];
  return { type: "message", role: "assistant", content, ...(refusal === "" ? {} : { refusal }) };
}

/** OpenRouter's thoughts come in pieces and must go back complete. Pieces of the same kind and index are joined. */
function addDetail(details: Raw[], detail: Raw): void {
  const last = details.at(-1);
  if (
    last === undefined ||
    last["type"] !== detail["type"] ||
    last["index"] !== detail["index"] ||
    last["index"] === undefined
  ) {
    details.push(detail);
    return;
  }
  const joined: Raw = { ...last };
  for (const [key, value] of Object.entries(detail)) {
    const isText = key === "text" || key === "summary" || key === "data";
    if (isText && typeof value === "string" && typeof last[key] === "string") joined[key] = last[key] + value;
    else if (value !== null && value !== undefined) joined[key] = value;
  }
  details[details.length - 1] = joined;
}

/** `<think>…</think>` at the beginning of the text, from servers that leave a model's thoughts in its text. */
interface ThinkPiece {
  readonly inside: boolean;
  readonly text: string;
}

interface ThinkSplitter {
  push(text: string): readonly ThinkPiece[];
  end(): readonly ThinkPiece[];
}

const opener = "<think>";
const closer = "</think>";

/** Only a tag that opens the text counts. A model may mention one in the middle. */
function createThinkSplitter(): ThinkSplitter {
  let state: "before" | "inside" | "after" = "before";
  let held = "";

  function before(): readonly ThinkPiece[] {
    const start = held.trimStart();
    if (opener.startsWith(start)) return start === opener ? enter(start) : [];
    return start.startsWith(opener) ? enter(start) : leave(held);
  }

  function enter(start: string): readonly ThinkPiece[] {
    state = "inside";
    held = start.slice(opener.length);
    return inside();
  }

  function inside(): readonly ThinkPiece[] {
    const end = held.indexOf(closer);
    if (end === -1) {
      const keep = overlap(held);
      const ready = held.slice(0, held.length - keep);
      held = held.slice(held.length - keep);
      return ready === "" ? [] : [{ inside: true, text: ready }];
    }
    const thoughts = held.slice(0, end);
    return [...(thoughts === "" ? [] : [{ inside: true, text: thoughts }]), ...leave(held.slice(end + closer.length))];
  }

  function leave(rest: string): readonly ThinkPiece[] {
    state = "after";
    held = "";
    return rest === "" ? [] : [{ inside: false, text: rest }];
  }

  return {
    push(text) {
      if (state === "after") return text === "" ? [] : [{ inside: false, text }];
      held += text;
      return state === "before" ? before() : inside();
    },
    end() {
      if (held === "") return [];
      const last = { inside: state === "inside", text: held };
      held = "";
      return [last];
    },
  };
}

/** How many characters at the end may be the beginning of the closing tag. */
function overlap(text: string): number {
  for (let length = Math.min(closer.length - 1, text.length); length > 0; length--) {
    if (closer.startsWith(text.slice(-length))) return length;
  }
  return 0;
}
