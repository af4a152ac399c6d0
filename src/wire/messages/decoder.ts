/**
 * A Messages stream as neutral events. Blocks are found by their index, whatever gaps it has; a call's
 * input is the concatenation of its pieces and nothing else, because a piece may be cut or not be JSON.
 */
import { isObject } from "../../base/json.ts";
import type { Answer, DeltaField, Item, ModelEvent } from "../../spec/model.ts";
import { collect, shellOf } from "../answer.ts";
import type { AnswerDecoder, DecodeOptions } from "../codec.ts";
import { createIdMaker, inventId } from "../ids.ts";
import { array, count, json, object, parseObject, type Raw, string, word } from "../raw.ts";
import { decodeBlock } from "./decode-block.ts";
import { decodeError, decodeUsage, endOf, mergeUsage, wire } from "./ending.ts";

export function createDecoder(options: DecodeOptions = {}): AnswerDecoder {
  const reader = createReader(options);
  return {
    push(frame) {
      const event = parseObject(frame.data);
      return event === undefined ? [] : reader.read(string(event["type"]) ?? frame.event ?? "", event);
    },
    end: () => reader.end(),
  };
}

/** A body that came as a whole is read as the events that would have carried it. */
export function decodeAnswer(body: unknown, options: DecodeOptions = {}): Answer {
  const message = object(body);
  const reader = createReader(options);
  if (message["type"] === "error" || (message["content"] === undefined && message["error"] !== undefined)) {
    return collect([...reader.read("error", message), ...reader.end()]);
  }
  const { content, stop_reason, stop_sequence, stop_details, usage, ...head } = message;
  return collect([
    ...reader.read("message_start", { message: head }),
    ...array(content).flatMap((block, index) => [
      ...reader.read("content_block_start", { index, content_block: block }),
      ...(isEmptyCall(block)
        ? reader.read("content_block_delta", { index, delta: { type: "input_json_delta", partial_json: "{}" } })
        : []),
      ...reader.read("content_block_stop", { index }),
    ]),
    ...reader.read("message_delta", {
      delta: { stop_reason: stop_reason ?? "end_turn", stop_sequence, stop_details },
      usage,
    }),
    ...reader.read("message_stop", {}),
  ]);
}

/** In a whole body an empty input is an empty input, not one that is still to come. */
function isEmptyCall(block: unknown): boolean {
  const { type, input } = object(block);
  return type === "tool_use" && isObject(input) && Object.keys(input).length === 0;
}

interface Block {
  readonly index: number;
  raw: Raw;
  /** The pieces of a call's input. */
  input: string;
  isStarted: boolean;
  isDone: boolean;
}

interface Reader {
  read(type: string, event: Raw): readonly ModelEvent[];
  end(): readonly ModelEvent[];
}

function createReader(options: DecodeOptions): Reader {
  const ids = createIdMaker(options.idSeed);
  const blocks = new Map<number, Block>();
  /** The latest block under each index of the server's. */
  const named = new Map<number, Block>();
  let latest: Block | undefined;
  let next = 0;
  let isStarted = false;
  let isEnded = false;
  let usage: Raw = {};
  let isCounted = false;
  let stop: Raw | undefined;
  let out: ModelEvent[] = [];

  function start(message: Raw): void {
    if (isStarted) return;
    isStarted = true;
    usage = mergeUsage({}, message["usage"]);
    const id = word(message["id"]);
    const model = word(message["model"]);
    out.push({
      type: "answer.started",
      ...(id === undefined ? {} : { id }),
      ...(model === undefined ? {} : { model }),
    });
  }

  function toItem(block: Block): Item {
    const item = decodeBlock(block.raw, options.names, block.input);
    return item.type === "call" && item.id === "" ? { ...item, id: inventId(options.idSeed ?? "", block.index) } : item;
  }

  function open(wanted: unknown, raw: Raw): Block {
    start({});
    const index = freeIndex(wanted);
    const block: Block = { index, raw, input: "", isStarted: false, isDone: false };
    blocks.set(index, block);
    named.set(count(wanted) ?? index, block);
    latest = block;
    next = Math.max(next, index + 1);
    const first = string(raw["text"]) ?? string(raw["thinking"]) ?? "";
    // Empty text is no content (the API itself refuses it in a request), so it starts with its first word.
    if (raw["type"] !== "text" || first !== "") announce(block);
    if (first !== "")
      out.push({ type: "item.delta", index, field: raw["type"] === "text" ? "text" : "reasoning", delta: first });
    return block;
  }

  function announce(block: Block): void {
    if (block.isStarted) return;
    block.isStarted = true;
    out.push({ type: "item.started", index: block.index, item: shellOf(toItem(block)) });
  }

  function close(block: Block): void {
    if (block.isDone) return;
    block.isDone = true;
    // Whether a call may run is known only at the end of the whole answer.
    if (!block.isStarted || block.raw["type"] === "tool_use") return;
    out.push({ type: "item.done", index: block.index, item: toItem(block) });
  }

  function grow(event: Raw): void {
    const delta = object(event["delta"]);
    const type = blockTypes.get(string(delta["type"]) ?? "") ?? "text";
    const block = find(event["index"]) ?? open(event["index"], { type });
    // Input that comes after its block was stopped still belongs to the call: without it the call would be another.
    if (block.isDone && block.raw["type"] !== "tool_use") return;
    switch (delta["type"]) {
      case "text_delta":
        return extend(block, "text", "text", string(delta["text"]) ?? "");
      case "thinking_delta":
        return extend(block, "thinking", "reasoning", string(delta["thinking"]) ?? "");
      case "signature_delta":
        block.raw["signature"] = (string(block.raw["signature"]) ?? "") + (string(delta["signature"]) ?? "");
        return;
      case "input_json_delta": {
        const piece = string(delta["partial_json"]) ?? "";
        block.input += piece;
        if (piece !== "" && block.raw["type"] === "tool_use")
          out.push({ type: "item.delta", index: block.index, field: "arguments", delta: piece });
        return;
      }
      case "citations_delta":
        if (Array.isArray(block.raw["citations"])) block.raw["citations"].push(delta["citation"]);
        else block.raw["citations"] = [delta["citation"]];
        return;
      case "compaction_delta": {
        const { type: _type, ...fields } = delta;
        Object.assign(block.raw, fields);
        return;
      }
      default:
        out.push({ type: "other", wire, raw: json(event) });
    }
  }

  function extend(block: Block, key: string, field: DeltaField, delta: string): void {
    if (delta === "") return;
    announce(block);
    block.raw[key] = (string(block.raw[key]) ?? "") + delta;
    out.push({ type: "item.delta", index: block.index, field, delta });
  }

  /** The stream is over: `said` tells how, `isProper` whether the server itself ended it. */
  function finish(isProper: boolean, error?: unknown): void {
    start({});
    const ordered = [...blocks.values()].filter((block) => block.isStarted).sort((a, b) => a.index - b.index);
    const hasCalls = ordered.some((block) => block.raw["type"] === "tool_use");
    const details = object(stop?.["stop_details"]);
    const said = {
      stopReason: word(stop?.["stop_reason"]),
      stopSequence: word(stop?.["stop_sequence"]),
      stopDetails: Object.keys(details).length > 0 ? details : undefined,
      usage: isProper || isCounted ? decodeUsage(usage) : undefined,
    };
    const end = isProper ? endOf(said, hasCalls) : undefined;
    for (const block of ordered) {
      const item = toItem(block);
      if (item.type === "call") {
        const complete = item.complete && end?.outcome === "ok" && end.finish !== "refusal";
        out.push({
          type: "item.done",
          index: block.index,
          item: { ...item, id: ids.claim(item.id, block.index), complete },
        });
      } else if (!block.isDone) {
        out.push({ type: "item.done", index: block.index, item });
      }
    }
    refuse(string(details["explanation"]), next);
    const broken =
      error === undefined
        ? { outcome: "truncated" as const }
        : { outcome: "error" as const, error: decodeError(error) };
    out.push({
      type: "answer.ended",
      answer: end ?? { ...broken, ...(said.usage === undefined ? {} : { usage: said.usage }) },
    });
    isEnded = true;
  }

  /** The reason of a refusal stands beside the content; it is the last thing the model says. */
  function refuse(refusal: string | undefined, index: number): void {
    if (refusal === undefined || refusal === "") return;
    const item: Item = { type: "message", role: "assistant", content: [], refusal };
    out.push({ type: "item.started", index, item: shellOf(item) });
    out.push({ type: "item.delta", index, field: "refusal", delta: refusal });
    out.push({ type: "item.done", index, item });
  }

  function dispatch(type: string, event: Raw): void {
    switch (type) {
      case "message_start":
        return start(object(event["message"]));
      case "content_block_start":
        open(event["index"], { ...object(event["content_block"]) });
        return;
      case "content_block_delta":
        return grow(event);
      case "content_block_stop": {
        const block = find(event["index"]);
        if (block !== undefined) close(block);
        return;
      }
      case "message_delta":
        stop = { ...stop, ...spoken(object(event["delta"])) };
        if (event["usage"] !== undefined && event["usage"] !== null) isCounted = true;
        usage = mergeUsage(usage, event["usage"]);
        return;
      case "message_stop":
        return finish(true);
      case "error":
        return finish(false, event);
      case "ping":
        return;
      default:
        if (type === "" && event["error"] !== undefined) return finish(false, event);
        out.push({ type: "other", wire, raw: json(event) });
    }
  }

  function find(wanted: unknown): Block | undefined {
    const index = count(wanted);
    return index === undefined ? latest : named.get(index);
  }

  /** A second block under an index already used is another block, not the same again. */
  function freeIndex(wanted: unknown): number {
    const index = count(wanted);
    if (index !== undefined && index < highestIndex && !blocks.has(index)) return index;
    return next;
  }

  return {
    read(type, event) {
      if (isEnded) return [];
      dispatch(type, event);
      const events = out;
      out = [];
      return events;
    },
    end() {
      if (isEnded) return [];
      finish(word(stop?.["stop_reason"]) !== undefined);
      return out;
    },
  };
}

/** Indexes beyond this are a server's mistake. */
const highestIndex = 100_000;

const blockTypes: ReadonlyMap<string, string> = new Map([
  ["thinking_delta", "thinking"],
  ["signature_delta", "thinking"],
  ["input_json_delta", "tool_use"],
  ["compaction_delta", "compaction"],
]);

function spoken(fields: Raw): Raw {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null && value !== undefined));
}
