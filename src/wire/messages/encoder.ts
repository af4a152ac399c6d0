/**
 * Neutral events as a Messages stream: one block open at a time, numbered from 0, each input as JSON
 * deltas. Text and thoughts flow as they come; from the first call on everything waits for the end of
 * the answer, because a client takes a stopped block for a call to run.
 */
import type { JsonObject } from "../../base/json.ts";
import type { Answer, AnswerEnd, DeltaField, Item, ModelEvent } from "../../spec/model.ts";
import { argumentsText } from "../arguments.ts";
import type { AnswerEncodeOptions, AnswerEncoder, Frame } from "../codec.ts";
import { withCarrier } from "../envelope.ts";
import { inventId } from "../ids.ts";
import { spellerOf } from "../names.ts";
import { array, object } from "../raw.ts";
import { answerBlocks, callBlock } from "./encode-block.ts";
import { encodeError, encodeStop, encodeUsage, wire } from "./ending.ts";

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

export function encodeAnswer(answer: Answer, options: AnswerEncodeOptions = {}): JsonObject {
  if (answer.outcome === "error" || answer.outcome === "truncated") return encodeError(answer);
  const spell = spellerOf(options.names);
  const content = answer.items.flatMap((item) => withCarrier(item, wire)).flatMap((item) => answerBlocks(item, spell));
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

/** The block that is being written, and of which item and part. */
interface Open {
  readonly index: number;
  readonly field: DeltaField;
  readonly part: number;
}

export function createEncoder(options: AnswerEncodeOptions = {}): AnswerEncoder {
  const spell = spellerOf(options.names);
  const frames: Frame[] = [];
  const done: Item[] = [];
  /** What deltas said of each open item, by item. */
  const said = new Map<number, string>();
  let isStarted = false;
  let count = 0;
  let open: Open | undefined;
  let held: ModelEvent[] | undefined;

  function emit(type: string, fields: JsonObject): void {
    frames.push({ event: type, data: JSON.stringify({ type, ...fields }) });
  }

  function begin(started: Started): void {
    if (isStarted) return;
    isStarted = true;
    emit("message_start", {
      message: { ...headOf(started, options), stop_reason: null, stop_sequence: null, usage: encodeUsage(undefined) },
    });
  }

  function start(block: JsonObject): void {
    begin({});
    emit("content_block_start", { index: count, content_block: block });
  }

  function delta(fields: JsonObject): void {
    emit("content_block_delta", { index: count, delta: fields });
  }

  function stop(): void {
    emit("content_block_stop", { index: count });
    count++;
  }

  function grow(index: number, field: DeltaField, part: number, text: string): void {
    if (text === "" || field === "refusal" || field === "arguments") return;
    const isThought = field !== "text";
    // Thoughts stay one block, whose signature comes last; each text part is a block of its own.
    if (open?.index === index && open.field === "text" && open.part !== part) {
      stop();
      open = undefined;
    }
    if (open === undefined) {
      start(isThought ? { type: "thinking", thinking: "", signature: "" } : { type: "text", text: "" });
      open = { index, field, part };
    } else if (isThought && open.part !== part && field === "summary") {
      write("\n\n");
      open = { index, field, part };
    }
    write(text);

    function write(words: string): void {
      said.set(index, (said.get(index) ?? "") + words);
      delta(isThought ? { type: "thinking_delta", thinking: words } : { type: "text_delta", text: words });
    }
  }

  function finish(index: number, item: Item, end: AnswerEnd | undefined): void {
    done.push(item);
    const told = said.get(index) ?? "";
    const isOpen = open?.index === index;
    const blocks = answerBlocks(item, spell);
    if (item.type === "call") return writeCall();
    if (!isOpen) return blocks.forEach(writeWhole);
    const last = object(blocks.at(-1));
    const whole = blocks.map((block) => block["text"] ?? block["thinking"] ?? "").join("");
    if (whole.startsWith(told)) grow(index, open!.field, open!.part, whole.slice(told.length));
    endBlock(last);
    open = undefined;

    function writeCall(): void {
      if (item.type !== "call") return;
      for (const carrier of withCarrier(item, wire).slice(0, -1)) answerBlocks(carrier, spell).forEach(writeWhole);
      const isCut = !item.complete && end?.outcome !== "ok";
      start(callBlock(item, spell));
      delta({ type: "input_json_delta", partial_json: isCut ? item.arguments : argumentsText(item) });
      // A stopped block is a call to run: one of a turn that failed is never stopped.
      if (isCut) count++;
      else stop();
    }
  }

  /** What stands at the end of a block: a thought's signature, a text's citations. */
  function endBlock(block: Record<string, unknown>): void {
    if (typeof block["signature"] === "string" && block["signature"] !== "")
      delta({ type: "signature_delta", signature: block["signature"] });
    for (const citation of array(block["citations"]))
      delta({ type: "citations_delta", citation: citation as JsonObject }); // from JSON
    stop();
  }

  /** A block that comes in one piece, as the deltas that would have brought it. */
  function writeWhole(block: JsonObject): void {
    switch (block["type"]) {
      case "text":
        start({ type: "text", text: "" });
        delta({ type: "text_delta", text: block["text"] ?? "" });
        return endBlock(block);
      case "thinking":
        start({ type: "thinking", thinking: "", signature: "" });
        if (block["thinking"] !== "") delta({ type: "thinking_delta", thinking: block["thinking"] ?? "" });
        return endBlock(block);
      case "server_tool_use":
      case "mcp_tool_use":
        start({ ...block, input: {} });
        delta({ type: "input_json_delta", partial_json: JSON.stringify(block["input"] ?? {}) });
        return stop();
      default:
        start(block);
        return stop();
    }
  }

  function write(event: ModelEvent, end?: AnswerEnd): void {
    switch (event.type) {
      case "answer.started":
        return begin(event);
      case "item.delta":
        return grow(event.index, event.field, event.part ?? 0, event.delta);
      case "item.done":
        return finish(event.index, event.item, end);
      case "answer.ended":
        return conclude(event.answer);
      case "item.started":
      case "other":
        return;
    }
  }

  function conclude(end: AnswerEnd): void {
    begin({});
    if (end.outcome === "error" || end.outcome === "truncated") {
      const { type: _type, ...error } = encodeError(end);
      return emit("error", error);
    }
    emit("message_delta", { delta: encodeStop(end, refusalOf(done)), usage: encodeUsage(end.usage) });
    emit("message_stop", {});
  }

  return {
    push(event) {
      if (held === undefined && mustWait(event, open?.index)) held = [];
      if (held === undefined) write(event);
      else if (event.type === "answer.ended") {
        for (const earlier of byItem(held, open?.index)) write(earlier, event.answer);
        write(event, event.answer);
      } else held.push(event);
      return frames.splice(0);
    },
  };
}

/** A call, or words of another item while a block is still open. */
function mustWait(event: ModelEvent, open: number | undefined): boolean {
  if (event.type === "item.started" || event.type === "item.done")
    return event.item.type === "call" || (event.type === "item.done" && open !== undefined && event.index !== open);
  return event.type === "item.delta" && open !== undefined && event.index !== open;
}

/** Held events item after item, in the order of their index, the open one first: blocks cannot interleave. */
function byItem(events: readonly ModelEvent[], open: number | undefined): readonly ModelEvent[] {
  const place = (event: ModelEvent) => ("index" in event && event.index !== open ? event.index : -1);
  return events.toSorted((a, b) => place(a) - place(b));
}
