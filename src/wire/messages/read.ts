/**
 * Reads a Messages answer. Every event of the stream is one step of `read`, which returns neutral
 * events. A call's input is the concatenation of its pieces and nothing else, because a piece may be
 * cut or may not be JSON. A call is done only with the whole answer, because only then is it known
 * whether it may run.
 */
import { createGrowingText, type GrowingText } from "../../base/growing-text.ts";
import { defined, isObject, type JsonObject } from "../../base/json.ts";
import type { Answer, AnswerEnd, DeltaField, Item, ModelError, ModelEvent, Usage } from "../../spec/model.ts";
import { collect, shellOf } from "../answer.ts";
import { writeArguments } from "../arguments.ts";
import type { AnswerDecoder, DecodeOptions, Frame, RepeatedFrame } from "../codec.ts";
import { createIdMaker, createPlaces, withId } from "../ids.ts";
import { count, json, object, objects, parseObject, type Raw, string, word } from "../raw.ts";
import { cutFrame } from "../runs.ts";
import { decodeBlock } from "./blocks.ts";
import { stopReasonOf, stopRows, wire } from "./stop.ts";

export function createDecoder(options: DecodeOptions = {}): AnswerDecoder {
  const reader = createReader(options);
  let last: { readonly frame: Frame; readonly event: Raw } | undefined;
  let cut: { readonly of: Frame; readonly frame: RepeatedFrame | undefined } | undefined;
  return {
    push(frame) {
      const event = parseObject(frame.data);
      last = event?.["type"] === "content_block_delta" ? { frame, event } : undefined;
      if (event !== undefined) return reader.read(string(event["type"]) ?? frame.event ?? "", event);
      // Proxies put their own text into an error event.
      return frame.event === "error" ? reader.read("error", { message: frame.data }) : [];
    },
    repeated() {
      if (last === undefined) return undefined;
      if (cut?.of !== last.frame) {
        const { frame, event } = last;
        const delta = object(event["delta"]);
        const field = delta["type"] === "text_delta" ? "text" : "thinking";
        const isWords = delta["type"] === `${field}_delta`;
        const halves = isWords ? cutFrame(frame, field, string(delta[field]) ?? "") : undefined;
        const hear = (words: string) =>
          reader.read("content_block_delta", { ...event, delta: { ...delta, [field]: words } });
        cut = { of: frame, frame: halves && { ...halves, hear } };
      }
      return cut.frame;
    },
    end: reader.end,
  };
}

/** A body that came as a whole is read as one event that contains everything. */
export function decodeAnswer(body: unknown, options: DecodeOptions = {}): Answer {
  const message = object(body);
  const reader = createReader(options);
  const isError = message["type"] === "error" || (message["content"] === undefined && message["error"] !== undefined);
  // A body that is JSON but not an answer is not read as an empty answer.
  if (!isError && (message["content"] ?? message["stop_reason"]) === undefined) return collect(reader.end());
  return collect([...reader.read(isError ? "error" : "message", message), ...reader.end()]);
}

/** One content block while its stream runs. */
interface OpenBlock {
  readonly index: number;
  /** As it was announced, without its texts. */
  readonly raw: Raw;
  readonly text: GrowingText;
  readonly thinking: GrowingText;
  /** The pieces of a call's input. */
  readonly input: GrowingText;
  isStarted: boolean;
  isDone: boolean;
}

const nothing: readonly ModelEvent[] = [];

function createReader(options: DecodeOptions) {
  const ids = createIdMaker(options.idSeed);
  const places = createPlaces();
  const blocks: OpenBlock[] = [];
  /** The latest block for each index of the server. */
  const byIndex = new Map<number, OpenBlock>();
  let usage: Raw = {};
  /** The counts in `message_start` are not the cost of an answer that broke off. */
  let isCounted = false;
  let stop: Raw = {};
  let isStarted = false;
  let isEnded = false;
  let out: ModelEvent[] = [];

  function start(message: Raw = {}): void {
    if (isStarted) return;
    isStarted = true;
    out.push(defined({ type: "answer.started" as const, id: word(message["id"]), model: word(message["model"]) }));
    usage = overlay({}, message["usage"]);
    const { stop_reason, stop_sequence, stop_details } = message;
    stop = overlay({}, { stop_reason, stop_sequence, stop_details });
    // A server that continues a turn begins with the content it already has.
    for (const [index, block] of objects(message["content"]).entries()) readWholeBlock(index, block);
  }

  function toItem(block: OpenBlock): Item {
    const { raw, text, thinking, input } = block;
    const whole = {
      ...raw,
      ...(text.length === 0 ? {} : { text: text.toString() }),
      ...(thinking.length === 0 ? {} : { thinking: thinking.toString() }),
    };
    return withId(decodeBlock(whole, options.names, input.toString()), options.idSeed, block.index);
  }

  function startItem(block: OpenBlock): void {
    if (block.isStarted) return;
    block.isStarted = true;
    out.push({ type: "item.started", index: block.index, item: shellOf(toItem(block)) });
  }

  function grow(block: OpenBlock, to: GrowingText, field: DeltaField, added: unknown): void {
    if (typeof added !== "string" || added === "") return;
    to.add(added);
    // Tools of the server itself come complete, so the growth of their input is not shown.
    if (field === "arguments" && !isCall(block)) return;
    startItem(block);
    out.push({ type: "item.delta", index: block.index, field, delta: added });
  }

  /** A second block with an index that was already used is another block. */
  function openBlock(wanted: unknown, { text, thinking, ...raw }: Raw): OpenBlock {
    const at = count(wanted);
    const block: OpenBlock = {
      index: places.claim(at),
      raw,
      text: createGrowingText(),
      thinking: createGrowingText(),
      input: createGrowingText(),
      isStarted: false,
      isDone: false,
    };
    blocks.push(block);
    byIndex.set(at ?? block.index, block);
    // Empty text is not content (the API itself refuses it in a request), so the item starts with its first text.
    if (raw["type"] !== "text") startItem(block);
    grow(block, block.text, "text", text);
    grow(block, block.thinking, "reasoning", thinking);
    return block;
  }

  function find(wanted: unknown): OpenBlock | undefined {
    const at = count(wanted);
    return at === undefined ? blocks.at(-1) : byIndex.get(at);
  }

  function closeBlock(block: OpenBlock): void {
    if (block.isDone) return;
    block.isDone = true;
    if (block.isStarted && !isCall(block)) out.push({ type: "item.done", index: block.index, item: toItem(block) });
  }

  function readWholeBlock(index: number, raw: Raw): void {
    const block = openBlock(index, raw);
    // Here an empty input really is empty, and not one that is still to come.
    if (isCall(block) && isObject(raw["input"]) && Object.keys(raw["input"]).length === 0) block.input.add("{}");
    closeBlock(block);
  }

  function readDelta(event: Raw): void {
    const delta = object(event["delta"]);
    const block = find(event["index"]) ?? openBlock(event["index"], { type: blockTypeOf(delta) });
    // Input that comes after its block was stopped still belongs to the call. Without it, the call would be a
    // different one.
    if (block.isDone && !isCall(block)) return;
    const { raw } = block;
    switch (delta["type"]) {
      case "text_delta":
        return grow(block, block.text, "text", delta["text"]);
      case "thinking_delta":
        return grow(block, block.thinking, "reasoning", delta["thinking"]);
      case "input_json_delta":
        return grow(block, block.input, "arguments", writeArguments(delta["partial_json"]));
      case "signature_delta":
        raw["signature"] = (string(raw["signature"]) ?? "") + (string(delta["signature"]) ?? "");
        return;
      case "citations_delta":
        if (Array.isArray(raw["citations"])) raw["citations"].push(delta["citation"]);
        else raw["citations"] = [delta["citation"]];
        return;
      case "compaction_delta":
        Object.assign(raw, delta, { type: raw["type"] });
        return;
      default:
        out.push({ type: "other", wire, raw: json(event) });
    }
  }

  /** Ends every block. Only now is it known whether calls may run. */
  function closeAll(mayRun: boolean): void {
    for (const block of blocks.toSorted((a, b) => a.index - b.index)) {
      closeBlock(block);
      const item = isCall(block) ? toItem(block) : undefined;
      if (item?.type !== "call") continue;
      const id = ids.claim(item.id, block.index);
      out.push({ type: "item.done", index: block.index, item: { ...item, id, complete: item.complete && mayRun } });
    }
  }

  /** The server itself ended the message. */
  function conclude(): void {
    start();
    const end = endOf(stop, usage, blocks.some(isCall));
    closeAll(end.outcome === "ok" && end.finish !== "refusal");
    // The explanation of a refusal is outside the content. It is the last thing the model says.
    const refusal = word(object(stop["stop_details"])["explanation"]);
    if (refusal !== undefined) {
      const index = places.claim();
      const item: Item = { type: "message", role: "assistant", content: [], refusal };
      out.push({ type: "item.started", index, item: shellOf(item) });
      out.push({ type: "item.delta", index, field: "refusal", delta: refusal });
      out.push({ type: "item.done", index, item });
    }
    out.push({ type: "answer.ended", answer: end });
    isEnded = true;
  }

  function breakOff(broken: Pick<AnswerEnd, "outcome" | "error">): void {
    start();
    closeAll(false);
    const cost = isCounted ? decodeUsage(usage) : undefined;
    out.push({ type: "answer.ended", answer: defined({ ...broken, usage: cost }) });
    isEnded = true;
  }

  function readEnd(event: Raw): void {
    stop = overlay(stop, event["delta"]);
    isCounted ||= event["usage"] !== undefined && event["usage"] !== null;
    usage = overlay(usage, event["usage"]);
  }

  function step(type: string, event: Raw): void {
    switch (type) {
      case "content_block_delta":
        start();
        return readDelta(event);
      case "content_block_start":
        start();
        openBlock(event["index"], object(event["content_block"]));
        return;
      case "content_block_stop": {
        const block = find(event["index"]);
        if (block !== undefined) closeBlock(block);
        return;
      }
      case "message_start":
        return start(object(event["message"]));
      case "message_delta":
        return readEnd(event);
      case "message_stop":
        return conclude();
      case "message":
        start(event);
        readEnd({ delta: { stop_reason: event["stop_reason"] ?? "end_turn" }, usage: event["usage"] });
        return conclude();
      case "error":
        return breakOff({ outcome: "error", error: decodeError(event) });
      case "ping":
        return;
      default:
        // An error body instead of an event: some servers put it into the stream as it is.
        if (type === "" && event["error"] !== undefined) return step("error", event);
        out.push({ type: "other", wire, raw: json(event) });
    }
  }

  function drain(): readonly ModelEvent[] {
    if (out.length === 0) return nothing;
    const ready = out;
    out = [];
    return ready;
  }

  return {
    read(type: string, event: Raw): readonly ModelEvent[] {
      if (!isEnded) step(type, event);
      return drain();
    },
    end(): readonly ModelEvent[] {
      if (isEnded) return nothing;
      // A stop reason says the same as `message_stop`, which some servers omit.
      if (word(stop["stop_reason"]) !== undefined) conclude();
      else breakOff({ outcome: "truncated" });
      return drain();
    },
  };
}

function isCall(block: OpenBlock): boolean {
  return block.raw["type"] === "tool_use";
}

/** The type of block for a delta whose block was never started. */
const blockTypes: ReadonlyMap<string, string> = new Map([
  ["thinking_delta", "thinking"],
  ["signature_delta", "thinking"],
  ["input_json_delta", "tool_use"],
  ["compaction_delta", "compaction"],
]);

function blockTypeOf(delta: Raw): string {
  return blockTypes.get(string(delta["type"]) ?? "") ?? "text";
}

function endOf(stop: Raw, usage: Raw, hasCalls: boolean): AnswerEnd {
  const reason = word(stop["stop_reason"]);
  const details = object(stop["stop_details"]);
  const row = stopRows.get(reason ?? "end_turn") ?? { outcome: "ok" };
  const end = defined({
    outcome: row.outcome,
    finish: row.finish ?? (hasCalls ? "tool_calls" : "stop"),
    usage: decodeUsage(usage),
  });
  const fields = defined({
    stop_reason: reason === undefined || reason === stopReasonOf(end) ? undefined : reason,
    stop_sequence: word(stop["stop_sequence"]),
    stop_details: Object.keys(details).length > 0 ? details : undefined,
  });
  return Object.keys(fields).length > 0 ? { ...end, extra: { wire, fields: fields as JsonObject } } : end; // parsed from JSON
}

/** Later fields replace earlier ones. Null and missing fields change nothing. */
function overlay(before: Raw, after: unknown): Raw {
  const merged = { ...before };
  for (const [key, value] of Object.entries(object(after))) {
    if (value !== null && value !== undefined) merged[key] = value;
  }
  return merged;
}

/** This API counts cached input separately; the neutral count includes it. */
function decodeUsage(usage: Raw): Usage | undefined {
  const fresh = count(usage["input_tokens"]);
  const output = count(usage["output_tokens"]);
  if (fresh === undefined && output === undefined) return undefined;
  const cached = count(usage["cache_read_input_tokens"]) ?? 0;
  const written = count(usage["cache_creation_input_tokens"]) ?? 0;
  // A server that does not count fills the field with zeros.
  if (((fresh ?? 0) + cached + written || (output ?? 0)) === 0) return undefined;
  return defined({
    input: (fresh ?? 0) + cached + written,
    cached: cached || undefined,
    cacheWritten: written || undefined,
    output: output ?? 0,
    reasoning: count(object(usage["output_tokens_details"])["thinking_tokens"]) || undefined,
  });
}

/** `{type:"error", error:{type, message}}`; the type is this API's code. */
function decodeError(raw: unknown): ModelError {
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
