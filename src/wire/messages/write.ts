/**
 * Writes an answer for a client of the Messages wire: one block open at a time, numbered from 0, and
 * each input as JSON deltas. Text and thoughts are written as they come. From the first call on
 * everything waits for the end of the answer, because a client treats a stopped block as a call to
 * run.
 */
import type { Json, JsonObject } from "../../base/json.ts";
import type { Answer, AnswerEnd, CallItem, DeltaField, Item, ModelEvent } from "../../spec/model.ts";
import { argumentsText } from "../arguments.ts";
import type { AnswerEncodeOptions, AnswerEncoder, Frame } from "../codec.ts";
import { withCarrier } from "../envelope.ts";
import { messagesError } from "../failure.ts";
import { createHold, handedOut } from "../hold.ts";
import { inventId } from "../ids.ts";
import { spellerOf } from "../names.ts";
import { createOutbox } from "../outbox.ts";
import { array, json } from "../raw.ts";
import { answerBlocks, callBlock } from "./blocks.ts";
import { encodeStop, encodeUsage, wire } from "./stop.ts";

interface Started {
  readonly id?: string;
  readonly model?: string;
}

function headOf(started: Started, options: AnswerEncodeOptions): JsonObject {
  return {
    id: options.id ?? started.id ?? inventId("message", 0, "msg_"),
    type: "message",
    role: "assistant",
    model: options.model ?? started.model ?? "",
    content: [],
  };
}

export function encodeAnswer(given: Answer, options: AnswerEncodeOptions = {}): JsonObject {
  const answer = handedOut(given);
  if (answer.outcome === "error" || answer.outcome === "truncated") return messagesError(answer.error);
  const spell = spellerOf(options.names);
  const content = answer.items
    .flatMap((item) => withCarrier(item, wire))
    .flatMap((item) => answerBlocks(item, spell, options.sign));
  return {
    ...headOf(answer, options),
    content,
    ...encodeStop(answer, refusalOf(answer.items)),
    usage: encodeUsage(answer.usage),
  };
}

function refusalOf(items: readonly Item[]): string | undefined {
  const refusals = items.flatMap((item) =>
    item.type === "message" && item.refusal !== undefined ? [item.refusal] : [],
  );
  return refusals.length === 0 ? undefined : refusals.join("\n");
}

export function createEncoder(options: AnswerEncodeOptions = {}): AnswerEncoder {
  const spell = spellerOf(options.names);
  const frames = createOutbox<Frame>();
  const blocks = createBlockWriter(emit);
  const open = createOpenItem(blocks);
  const hold = createHold({
    inOrder: true,
    mustWait: open.isBarredTo,
    openItem: open.index,
    write,
  });
  const done: Item[] = [];
  let isStarted = false;

  function emit(type: string, fields: JsonObject): void {
    frames.push({ event: type, data: JSON.stringify({ type, ...fields }) });
  }

  function begin(started: Started): void {
    if (isStarted) return;
    isStarted = true;
    const stop = { stop_reason: null, stop_sequence: null };
    emit("message_start", { message: { ...headOf(started, options), ...stop, usage: encodeUsage(undefined) } });
  }

  function finishCall(item: CallItem): void {
    for (const carrier of withCarrier(item, wire).slice(0, -1))
      answerBlocks(carrier, spell, options.sign).forEach(blocks.whole);
    blocks.call(callBlock(item, spell), argumentsText(item));
  }

  function write(event: ModelEvent): void {
    begin(event.type === "answer.started" ? event : {});
    switch (event.type) {
      case "item.delta":
        return open.grow(event.index, event.field, event.part ?? 0, event.delta);
      case "item.done":
        done.push(event.item);
        if (event.item.type === "call") return finishCall(event.item);
        return open.finish(event.index, event.item, answerBlocks(event.item, spell, options.sign));
      case "answer.ended":
        return conclude(event.answer, done, emit);
      case "answer.started":
      case "item.started":
      case "note":
      case "other":
        return;
    }
  }

  return {
    push(event) {
      hold.push(event);
      return frames.drain();
    },
  };
}

function conclude(end: AnswerEnd, said: readonly Item[], emit: (type: string, fields: JsonObject) => void): void {
  if (end.outcome === "error" || end.outcome === "truncated") {
    const { type: _type, ...error } = messagesError(end.error);
    return emit("error", error);
  }
  emit("message_delta", { delta: encodeStop(end, refusalOf(said)), usage: encodeUsage(end.usage) });
  emit("message_stop", {});
}

interface OpenItem {
  readonly index: () => number | undefined;
  /** True for text of an item while another item's block is open. */
  isBarredTo(event: ModelEvent): boolean;
  grow(index: number, field: DeltaField, part: number, words: string): void;
  /** Ends an item with what its deltas did not say. `written` are its complete blocks. */
  finish(index: number, item: Item, written: readonly JsonObject[]): void;
}

interface Open {
  readonly index: number;
  readonly part: number;
  /** What its deltas said so far. */
  readonly said: string;
}

function createOpenItem(blocks: BlockWriter): OpenItem {
  let open: Open | undefined;

  function grow(index: number, field: DeltaField, part: number, words: string): void {
    if (words === "" || field === "refusal" || field === "arguments") return;
    const kind = field === "text" ? "text" : "thinking";
    const isNext = open !== undefined && open.part !== part;
    // Each text part is its own block. Thoughts stay one block, with the signature at its end.
    if (isNext && kind === "text") blocks.end();
    const gap = isNext && field === "summary" ? "\n\n" : "";
    open = { index, part, said: (open?.said ?? "") + gap + words };
    blocks.say(kind, gap + words);
  }

  return {
    index: () => open?.index,
    isBarredTo(event) {
      const hasWords = event.type === "item.delta" || event.type === "item.done";
      return hasWords && open !== undefined && event.index !== open.index;
    },
    grow,
    finish(index, item, written) {
      if (open?.index !== index) return written.forEach(blocks.whole);
      const whole = written.map((block) => String(block["text"] ?? block["thinking"] ?? "")).join("");
      // Text that is not longer than what was written adds nothing, so a long text need not be compared.
      if (whole.length > open.said.length && whole.startsWith(open.said))
        grow(index, item.type === "message" ? "text" : "reasoning", open.part, whole.slice(open.said.length));
      blocks.end(written.at(-1));
      open = undefined;
    },
  };
}

interface BlockWriter {
  /** Adds text to the open block, or opens one. */
  say(kind: "text" | "thinking", words: string): void;
  /** Ends the open block with its last part: a thought's signature, or a text's citations. */
  end(last?: JsonObject): void;
  /** A complete block, written as the deltas that would have brought it. */
  whole(block: JsonObject): void;
  /** A call. A client runs it when its block is stopped. */
  call(block: JsonObject, input: string): void;
}

function createBlockWriter(emit: (type: string, fields: JsonObject) => void): BlockWriter {
  let index = 0;
  let isOpen = false;

  function start(block: JsonObject): void {
    emit("content_block_start", { index, content_block: block });
    isOpen = true;
  }

  function delta(type: string, field: string, value: Json): void {
    emit("content_block_delta", { index, delta: { type, [field]: value } });
  }

  function stop(): void {
    emit("content_block_stop", { index });
    index++;
    isOpen = false;
  }

  function say(kind: "text" | "thinking", words: string): void {
    if (!isOpen)
      start(kind === "text" ? { type: "text", text: "" } : { type: "thinking", thinking: "", signature: "" });
    if (words !== "") delta(`${kind}_delta`, kind, words);
  }

  function end(last: JsonObject = {}): void {
    const signature = last["signature"];
    if (typeof signature === "string" && signature !== "") delta("signature_delta", "signature", signature);
    for (const citation of array(last["citations"])) delta("citations_delta", "citation", json(citation));
    stop();
  }

  return {
    say,
    end,
    whole(block) {
      switch (block["type"]) {
        case "text":
        case "thinking":
          say(block["type"], String(block[block["type"]] ?? ""));
          return end(block);
        case "server_tool_use":
        case "mcp_tool_use":
          start({ ...block, input: {} });
          delta("input_json_delta", "partial_json", JSON.stringify(block["input"] ?? {}));
          return stop();
        default:
          start(block);
          return stop();
      }
    },
    call(block, input) {
      start(block);
      delta("input_json_delta", "partial_json", input);
      stop();
    },
  };
}
