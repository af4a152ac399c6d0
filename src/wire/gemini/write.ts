/** Neutral events as Gemini chunks. Text and thoughts are written as they come, and calls when they are done. */
import { defined, type JsonObject } from "../../base/json.ts";
import type { Answer, AnswerEnd, CallItem, Item, ModelEvent, Usage } from "../../spec/model.ts";
import { answerToEvents, thoughtsOf, wordsOf } from "../answer.ts";
import type { AnswerEncodeOptions, AnswerEncoder } from "../codec.ts";
import { sealTurn } from "../envelope.ts";
import { geminiError } from "../failure.ts";
import { createHold } from "../hold.ts";
import { spellerOf } from "../names.ts";
import { createOutbox } from "../outbox.ts";
import { echoed } from "../raw.ts";
import { encodeCall } from "./encode-request.ts";
import { encodePart, wire } from "./parts.ts";

interface ChunkEncoder {
  push(event: ModelEvent): readonly JsonObject[];
}

function createChunkEncoder(options: AnswerEncodeOptions): ChunkEncoder {
  const book = { spell: spellerOf(options.names) };
  const chunks = createOutbox<JsonObject>();
  const hold = createHold({ inOrder: true, write: (event) => write(event).forEach(chunks.push) });
  const sent = new Map<number, string>();
  let head: JsonObject = {};
  let before: Item[] = [];
  const chunk = (parts: readonly JsonObject[]): JsonObject => ({
    candidates: [{ content: { role: "model", parts }, index: 0 }],
    ...head,
  });

  function say(index: number, delta: string, isThought: boolean): readonly JsonObject[] {
    if (delta === "") return [];
    sent.set(index, (sent.get(index) ?? "") + delta);
    return [chunk([isThought ? { text: delta, thought: true } : { text: delta }])];
  }

  /**
   * Clients of this wire drop thoughts but give back the signature of a call, so state of other wires
   * travels in it.
   */
  function call(item: CallItem): JsonObject {
    const own = echoed(item.extra, wire);
    const state = Object.keys(own).length > 0 ? undefined : sealTurn(before, item, wire, options.sign);
    before = [];
    return { functionCall: encodeCall(item, book), ...(state === undefined ? own : { thoughtSignature: state }) };
  }

  /** The chunks for what the deltas of an item left out: other content, the signature, or all of it. */
  function finish(index: number, item: Item): readonly JsonObject[] {
    if (item.type === "call") return [chunk([call(item)])];
    if ((item.type === "reasoning" && item.opaque?.wire !== wire) || item.type === "message") before.push(item);
    if (item.type === "server_call") return item.wire === wire ? [chunk([item.raw])] : [];
    if (item.type !== "message" && item.type !== "reasoning") return [];
    const whole = item.type === "message" ? wordsOf(item) + (item.refusal ?? "") : thoughtsOf(item);
    const told = sent.get(index) ?? "";
    const isMore = whole.length > told.length && whole.startsWith(told);
    const words = say(index, isMore ? whole.slice(told.length) : "", item.type === "reasoning");
    const media = item.type === "message" ? item.content.filter((part) => part.type !== "text").map(encodePart) : [];
    const signature = signatureOf(item);
    return [
      ...words,
      ...(media.length === 0 ? [] : [chunk(media)]),
      ...(signature === undefined ? [] : [chunk([signature])]),
    ];
  }

  function write(event: ModelEvent): readonly JsonObject[] {
    switch (event.type) {
      case "answer.started":
        head = defined({ modelVersion: options.model ?? event.model, responseId: options.id ?? event.id });
        return [];
      case "item.delta":
        if (event.field === "arguments") return [];
        return say(event.index, event.delta, event.field === "reasoning" || event.field === "summary");
      case "item.done":
        return finish(event.index, event.item);
      case "answer.ended":
        return [encodeEnd(event.answer, head)];
      case "item.started":
      case "note":
      case "other":
        return [];
    }
  }

  return {
    push(event) {
      hold.push(event);
      return chunks.drain();
    },
  };
}

function signatureOf(item: Item): JsonObject | undefined {
  if (item.type === "reasoning" && item.opaque?.wire === wire)
    return { text: "", thought: true, thoughtSignature: item.opaque.value };
  const fields = item.type === "message" ? echoed(item.extra, wire) : {};
  return Object.keys(fields).length === 0 ? undefined : { text: "", ...fields };
}

function encodeEnd(end: AnswerEnd, head: JsonObject): JsonObject {
  const usage = end.usage === undefined ? {} : { usageMetadata: encodeUsage(end.usage) };
  if (end.outcome === "error" && end.finish === "content_filter")
    return { promptFeedback: { blockReason: end.error?.code ?? "OTHER" }, ...usage, ...head };
  if (end.outcome === "truncated" || end.outcome === "error") return { error: geminiError(end.error) };
  const candidate = defined({
    index: 0,
    finishReason: finishReason(end),
    ...echoed(end.extra, wire),
  });
  return { candidates: [candidate], ...usage, ...head };
}

function finishReason(end: AnswerEnd): string {
  if (end.finish === "length" || (end.outcome === "incomplete" && end.finish === undefined)) return "MAX_TOKENS";
  return end.finish === "content_filter" || end.finish === "refusal" ? "SAFETY" : "STOP";
}

function encodeUsage(usage: Usage): JsonObject {
  return defined({
    promptTokenCount: usage.input,
    candidatesTokenCount: usage.output - (usage.reasoning ?? 0),
    thoughtsTokenCount: usage.reasoning,
    cachedContentTokenCount: usage.cached,
    totalTokenCount: usage.input + usage.output,
  });
}

export function createEncoder(options: AnswerEncodeOptions = {}): AnswerEncoder {
  const encoder = createChunkEncoder(options);
  return { push: (event) => encoder.push(event).map((chunk) => ({ data: JSON.stringify(chunk) })) };
}

/** The whole body: all parts of all chunks in one candidate. */
export function encodeAnswer(answer: Answer, options: AnswerEncodeOptions = {}): JsonObject {
  const encoder = createChunkEncoder(options);
  const chunks = answerToEvents(answer).flatMap((event) => encoder.push(event));
  const last = chunks.at(-1) ?? {};
  const parts = chunks.slice(0, -1).flatMap(partsOf);
  const [candidate] = (last["candidates"] ?? []) as readonly JsonObject[]; // written by encodeEnd
  if (candidate === undefined) return last;
  return { ...last, candidates: [{ content: { role: "model", parts }, ...candidate }] };
}

function partsOf(chunk: JsonObject): readonly JsonObject[] {
  const candidates = chunk["candidates"] as readonly { readonly content: { readonly parts: readonly JsonObject[] } }[]; // written by `chunk`
  return candidates.flatMap((candidate) => candidate.content.parts);
}
