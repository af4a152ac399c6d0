/** The content blocks of one streamed message: found by the server's index, whatever gaps or repeats it has. */
import type { DeltaField, Item, ModelEvent } from "../../spec/model.ts";
import { isObject } from "../../base/json.ts";
import type { DecodeOptions } from "../codec.ts";
import { createPlaces } from "../places.ts";
import { count, type Raw } from "../raw.ts";
import { blockTypeOf, createGrowing, extend, extendText, type Growing, isCall } from "./growing.ts";
import { createTeller } from "./teller.ts";

export interface Blocks {
  open(wanted: unknown, raw: Raw): void;
  /** False for a kind of delta that nobody knows. */
  grow(wanted: unknown, delta: Raw): boolean;
  close(wanted: unknown): void;
  /** A block that came in one piece. */
  whole(index: number, raw: Raw): void;
  hasCalls(): boolean;
  /** Ends everything; only now is it known whether calls may run. */
  finish(mayRun: boolean): void;
  /** An item of our own after all blocks. */
  append(item: Item, field: DeltaField, text: string): void;
}

export function createBlocks(options: DecodeOptions, emit: (event: ModelEvent) => void): Blocks {
  const teller = createTeller(options, emit);
  const places = createPlaces();
  const blocks: Growing[] = [];
  /** The latest block under each index of the server's. */
  const named = new Map<number, Growing>();

  function find(wanted: unknown): Growing | undefined {
    const index = count(wanted);
    return index === undefined ? blocks.at(-1) : named.get(index);
  }

  /** A second block under an index already used is another block, not the same again. */
  function open(wanted: unknown, raw: Raw): Growing {
    const { text, thinking, ...shell } = raw;
    const block = createGrowing(places.claim(count(wanted)), shell);
    blocks.push(block);
    named.set(count(wanted) ?? block.index, block);
    // Empty text is no content (the API itself refuses it in a request), so it starts with its first word.
    if (raw["type"] !== "text") teller.start(block);
    extendText(block, "text", text, teller.grow);
    extendText(block, "thinking", thinking, teller.grow);
    return block;
  }

  return {
    open,
    grow(wanted, delta) {
      const block = find(wanted) ?? open(wanted, { type: blockTypeOf(delta) });
      // Input that comes after its block was stopped still belongs to the call: without it the call would be another.
      return (block.isDone && !isCall(block)) || extend(block, delta, teller.grow);
    },
    close(wanted) {
      const block = find(wanted);
      if (block !== undefined) teller.end(block);
    },
    whole(index, raw) {
      const block = open(index, raw);
      // Here an empty input is an empty input, not one that is still to come.
      if (isCall(block) && isObject(raw["input"]) && Object.keys(raw["input"]).length === 0) block.input.add("{}");
      teller.end(block);
    },
    hasCalls: () => blocks.some(isCall),
    finish: (mayRun) =>
      teller.finish(
        blocks.toSorted((a, b) => a.index - b.index),
        mayRun,
      ),
    append: (item, field, text) => teller.whole(places.claim(), item, field, text),
  };
}
