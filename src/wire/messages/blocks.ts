/** The content blocks of one streamed message: found by the server's index, whatever gaps or repeats it has. */
import type { DeltaField, Item, ModelEvent } from "../../spec/model.ts";
import { shellOf } from "../answer.ts";
import { writeArguments } from "../arguments.ts";
import type { DecodeOptions } from "../codec.ts";
import { createIdMaker, inventId } from "../ids.ts";
import { count, type Raw, string } from "../raw.ts";
import { decodeBlock } from "./decode-block.ts";

interface Block {
  readonly index: number;
  readonly raw: Raw;
  /** The pieces of a call's input. */
  input: string;
  isStarted: boolean;
  isDone: boolean;
}

export interface Blocks {
  open(wanted: unknown, raw: Raw): void;
  /** False for a kind of delta that nobody knows. */
  grow(wanted: unknown, delta: Raw): boolean;
  close(wanted: unknown): void;
  hasCalls(): boolean;
  /** Ends everything; only now is it known whether calls may run. */
  finish(mayRun: boolean): void;
  /** An item of our own after all blocks. */
  append(item: Item, field: DeltaField, text: string): void;
}

/** Indexes beyond this are a server's mistake. */
const highestIndex = 100_000;

/** The block a delta belongs to, for streams that never started it. */
const blockTypes: ReadonlyMap<string, string> = new Map([
  ["thinking_delta", "thinking"],
  ["signature_delta", "thinking"],
  ["input_json_delta", "tool_use"],
  ["compaction_delta", "compaction"],
]);

export function createBlocks(options: DecodeOptions, emit: (event: ModelEvent) => void): Blocks {
  const ids = createIdMaker(options.idSeed);
  const blocks = new Map<number, Block>();
  /** The latest block under each index of the server's. */
  const named = new Map<number, Block>();
  let latest: Block | undefined;
  let next = 0;

  function find(wanted: unknown): Block | undefined {
    const index = count(wanted);
    return index === undefined ? latest : named.get(index);
  }

  function toItem(block: Block): Item {
    const item = decodeBlock(block.raw, options.names, block.input);
    return item.type === "call" && item.id === "" ? { ...item, id: inventId(options.idSeed ?? "", block.index) } : item;
  }

  function open(wanted: unknown, raw: Raw): Block {
    const index = freeIndex(count(wanted));
    const { text, thinking, ...shell } = raw;
    const block: Block = { index, raw: shell, input: "", isStarted: false, isDone: false };
    blocks.set(index, block);
    named.set(count(wanted) ?? index, block);
    latest = block;
    next = Math.max(next, index + 1);
    // Empty text is no content (the API itself refuses it in a request), so it starts with its first word.
    if (raw["type"] !== "text") announce(block);
    extend(block, "text", "text", text);
    extend(block, "thinking", "reasoning", thinking);
    return block;
  }

  /** A second block under an index already used is another block, not the same again. */
  function freeIndex(wanted: number | undefined): number {
    return wanted !== undefined && wanted < highestIndex && !blocks.has(wanted) ? wanted : next;
  }

  function announce(block: Block): void {
    if (block.isStarted) return;
    block.isStarted = true;
    emit({ type: "item.started", index: block.index, item: shellOf(toItem(block)) });
  }

  function extend(block: Block, key: string, field: DeltaField, delta: unknown): void {
    if (typeof delta !== "string" || delta === "") return;
    announce(block);
    block.raw[key] = (string(block.raw[key]) ?? "") + delta;
    emit({ type: "item.delta", index: block.index, field, delta });
  }

  function extendInput(block: Block, piece: string): void {
    block.input += piece;
    if (piece === "" || block.raw["type"] !== "tool_use") return;
    emit({ type: "item.delta", index: block.index, field: "arguments", delta: piece });
  }

  function grow(wanted: unknown, delta: Raw): boolean {
    const type = string(delta["type"]) ?? "";
    const block = find(wanted) ?? open(wanted, { type: blockTypes.get(type) ?? "text" });
    // Input that comes after its block was stopped still belongs to the call: without it the call would be another.
    if (block.isDone && block.raw["type"] !== "tool_use") return true;
    switch (type) {
      case "text_delta":
        extend(block, "text", "text", delta["text"]);
        return true;
      case "thinking_delta":
        extend(block, "thinking", "reasoning", delta["thinking"]);
        return true;
      case "signature_delta":
        block.raw["signature"] = (string(block.raw["signature"]) ?? "") + (string(delta["signature"]) ?? "");
        return true;
      case "input_json_delta":
        extendInput(block, writeArguments(delta["partial_json"]));
        return true;
      case "citations_delta":
        if (Array.isArray(block.raw["citations"])) block.raw["citations"].push(delta["citation"]);
        else block.raw["citations"] = [delta["citation"]];
        return true;
      case "compaction_delta":
        Object.assign(block.raw, delta, { type: block.raw["type"] });
        return true;
      default:
        return false;
    }
  }

  function close(block: Block): void {
    if (block.isDone) return;
    block.isDone = true;
    if (!block.isStarted || block.raw["type"] === "tool_use") return;
    emit({ type: "item.done", index: block.index, item: toItem(block) });
  }

  return {
    open,
    grow,
    close(wanted) {
      const block = find(wanted);
      if (block !== undefined) close(block);
    },
    hasCalls: () => [...blocks.values()].some((block) => block.raw["type"] === "tool_use"),
    finish(mayRun) {
      for (const block of [...blocks.values()].sort((a, b) => a.index - b.index)) {
        close(block);
        const item = block.raw["type"] === "tool_use" ? toItem(block) : undefined;
        if (item?.type !== "call") continue;
        const id = ids.claim(item.id, block.index);
        emit({ type: "item.done", index: block.index, item: { ...item, id, complete: item.complete && mayRun } });
      }
    },
    append(item, field, delta) {
      const index = next++;
      emit({ type: "item.started", index, item: shellOf(item) });
      emit({ type: "item.delta", index, field, delta });
      emit({ type: "item.done", index, item });
    },
  };
}
