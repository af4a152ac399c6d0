/**
 * Writes an answer for a client of the Chat wire, as chunks or as one body. Text and thoughts are
 * written as they come. A call waits for the end of the answer, because only then is it certain what
 * the model meant.
 */
import { defined, type JsonObject } from "../../base/json.ts";
import type { Answer, AnswerEnd, CallItem, DeltaField, Finish, Item, ModelEvent, Usage } from "../../spec/model.ts";
import { thoughtsOf, wordsOf } from "../answer.ts";
import { argumentsText } from "../arguments.ts";
import type { AnswerEncodeOptions, AnswerEncoder, Frame } from "../codec.ts";
import { sealTurn, type Sign } from "../envelope.ts";
import { chatError } from "../failure.ts";
import { createHold, handedOut } from "../hold.ts";
import { type Spell, spellerOf } from "../names.ts";
import { createOutbox } from "../outbox.ts";
import { echoed, object } from "../raw.ts";

export function createEncoder(options: AnswerEncodeOptions = {}): AnswerEncoder {
  const writeCall = createCallWriter(spellerOf(options.names), options.sign);
  const frames = createOutbox<Frame>();
  const hold = createHold({ inOrder: false, write: (event) => write(event).forEach(frames.push) });
  const sent = new Map<string, string>();
  let head = headOf({}, options);
  let calls = 0;
  let hasStarted = false;

  const chunk = (delta: JsonObject): Frame => toFrame({ ...head, choices: [{ index: 0, delta, finish_reason: null }] });

  function start(): readonly Frame[] {
    if (hasStarted) return [];
    hasStarted = true;
    return [chunk({ role: "assistant", content: "" })];
  }

  function say(index: number, field: WordField, delta: string): readonly Frame[] {
    if (delta === "") return [];
    const key = `${index} ${field}`;
    sent.set(key, (sent.get(key) ?? "") + delta);
    return [...start(), chunk({ [field]: delta })];
  }

  function sayRest(index: number, field: WordField, whole: string): readonly Frame[] {
    const before = sent.get(`${index} ${field}`) ?? "";
    return say(
      index,
      field,
      whole.length > before.length && whole.startsWith(before) ? whole.slice(before.length) : "",
    );
  }

  /** What a finished item contains beyond its deltas. Answers that were not streamed have no deltas. */
  function finish(index: number, item: Item): readonly Frame[] {
    const call = writeCall(item);
    if (call !== undefined) return [...start(), ...callDeltas(call, calls++).map(chunk)];
    if (item.type === "message")
      return [...sayRest(index, "content", wordsOf(item)), ...sayRest(index, "refusal", item.refusal ?? "")];
    if (item.type !== "reasoning") return [];
    const details = echoed(item.extra, "chat");
    const rest = sayRest(index, "reasoning_content", thoughtsOf(item));
    return Object.keys(details).length === 0 ? rest : [...rest, ...start(), chunk(details)];
  }

  function write(event: ModelEvent): readonly Frame[] {
    switch (event.type) {
      case "answer.started":
        head = headOf(event, options);
        return start();
      case "item.delta":
        return event.field === "arguments" ? [] : say(event.index, wordFields[event.field], event.delta);
      case "item.done":
        return finish(event.index, event.item);
      case "answer.ended":
        return [...start(), ...endFrames(event.answer, head, calls)];
      case "item.started":
      case "note":
      case "other":
        return [];
    }
  }

  return {
    push(event: ModelEvent) {
      hold.push(event);
      return frames.drain();
    },
  };
}

type WordField = "content" | "refusal" | "reasoning_content";

const wordFields: Readonly<Record<Exclude<DeltaField, "arguments">, WordField>> = {
  text: "content",
  refusal: "refusal",
  reasoning: "reasoning_content",
  summary: "reasoning_content",
};

/** A function is announced by name before its arguments follow. A freeform call comes complete. */
function callDeltas(call: JsonObject, index: number): readonly JsonObject[] {
  if (call["type"] === "custom") return [{ tool_calls: [{ index, ...call }] }];
  const { name = "", arguments: args = "" } = object(call["function"]) as JsonObject; // written by the call writer
  return [
    { tool_calls: [{ index, ...call, function: { name, arguments: "" } }] },
    { tool_calls: [{ index, function: { arguments: args } }] },
  ];
}

function toFrame(value: JsonObject): Frame {
  return { data: JSON.stringify(value) };
}

/** A stream that broke ends with an error, without `finish_reason` and `[DONE]`, so that the client notices it too. */
function endFrames(end: AnswerEnd, head: JsonObject, calls: number): readonly Frame[] {
  if (end.outcome === "error" || end.outcome === "truncated") return [toFrame({ error: chatError(end.error) })];
  const finish = encodeFinish(end.finish, calls);
  const last = { ...head, choices: [{ index: 0, delta: {}, finish_reason: finish }] };
  const usage = end.usage === undefined ? [] : [{ ...head, choices: [], usage: encodeUsage(end.usage) }];
  return [...[last, ...usage].map(toFrame), { data: "[DONE]" }];
}

/** The sum of all chunks of the same answer. */
export function encodeAnswer(given: Answer, options: AnswerEncodeOptions = {}): JsonObject {
  const answer = handedOut(given);
  if (answer.outcome === "error" || answer.outcome === "truncated") return { error: chatError(answer.error) };
  const writeCall = createCallWriter(spellerOf(options.names), options.sign);
  const calls = answer.items.flatMap((item) => writeCall(item) ?? []);
  return defined({
    ...headOf(answer, options),
    object: "chat.completion",
    choices: [
      {
        index: 0,
        message: defined({ ...encodeWords(answer.items), tool_calls: calls.length === 0 ? undefined : calls }),
        finish_reason: encodeFinish(answer.finish, calls.length),
      },
    ],
    usage: answer.usage === undefined ? undefined : encodeUsage(answer.usage),
  });
}

function headOf(started: { readonly id?: string; readonly model?: string }, options: AnswerEncodeOptions): JsonObject {
  return {
    id: options.id ?? started.id ?? "chatcmpl-callgate",
    object: "chat.completion.chunk",
    created: options.createdAt ?? 0,
    model: options.model ?? started.model ?? "",
  };
}

function encodeFinish(finish: Finish | undefined, calls: number): string {
  if (finish === "length" || finish === "content_filter") return finish;
  if (finish === "refusal") return "content_filter";
  return calls > 0 ? "tool_calls" : "stop";
}

function encodeUsage(usage: Usage): JsonObject {
  return defined({
    prompt_tokens: usage.input,
    completion_tokens: usage.output,
    total_tokens: usage.input + usage.output,
    prompt_tokens_details: usage.cached === undefined ? undefined : { cached_tokens: usage.cached },
    completion_tokens_details: usage.reasoning === undefined ? undefined : { reasoning_tokens: usage.reasoning },
  });
}

/**
 * Writes the calls of an answer, given all of its items in order. State of other wires has one place
 * here that clients give back: the field in which Google's own Chat endpoint keeps the signature of a
 * call.
 */
function createCallWriter(spell: Spell, sign: Sign | undefined): (item: Item) => JsonObject | undefined {
  let before: Item[] = [];
  return (item) => {
    if ((item.type === "reasoning" && item.opaque !== undefined) || item.type === "message") before.push(item);
    if (item.type !== "call") return undefined;
    const extra = { ...stateOf(item, before, sign), ...echoed(item.extra, "chat") };
    before = [];
    const name = spell(item.name, item.namespace);
    if (item.kind === "custom")
      return { id: item.id, type: "custom", custom: { name, input: item.arguments }, ...extra };
    const args = item.complete && item.arguments !== "" ? item.arguments : argumentsText(item);
    return { id: item.id, type: "function", function: { name, arguments: args }, ...extra };
  };
}

function stateOf(call: CallItem, before: readonly Item[], sign: Sign | undefined): JsonObject {
  const isThought = before.some(({ type }) => type === "reasoning");
  const own = isThought ? undefined : echoed(call.extra, "gemini")["thoughtSignature"];
  const state = own ?? sealTurn(before, call, "chat", sign);
  return state === undefined ? {} : { extra_content: { google: { thought_signature: state } } };
}

function encodeWords(items: readonly Item[]): JsonObject {
  const messages = items.filter((item) => item.type === "message");
  const thoughts = items.filter((item) => item.type === "reasoning");
  const content = messages.map(wordsOf).join("");
  const refusal = messages.map((message) => message.refusal ?? "").join("");
  const reasoning = thoughts.map(thoughtsOf).join("");
  return {
    role: "assistant",
    content: content === "" ? null : content,
    refusal: refusal === "" ? null : refusal,
    ...(thoughts.length === 0 ? {} : { reasoning_content: reasoning }),
    ...Object.assign({}, ...thoughts.map((item) => echoed(item.extra, "chat"))),
  };
}
