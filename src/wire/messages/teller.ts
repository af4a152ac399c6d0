/** Tells of one message's blocks as neutral events: each is started, grows, and is done once. */
import type { DeltaField, Item, ModelEvent } from "../../spec/model.ts";
import { shellOf } from "../answer.ts";
import type { DecodeOptions } from "../codec.ts";
import { createIdMaker, withId } from "../ids.ts";
import { decodeBlock } from "./decode-block.ts";
import { type Growing, isCall, type Tell, wholeBlock } from "./growing.ts";

export interface Teller {
  start(block: Growing): void;
  readonly grow: Tell;
  /** The server stopped the block. A call is done only with the whole answer. */
  end(block: Growing): void;
  /** Ends every block. */
  finish(blocks: readonly Growing[], mayRun: boolean): void;
  /** An item that is no block. */
  whole(index: number, item: Item, field: DeltaField, delta: string): void;
}

export function createTeller(options: DecodeOptions, emit: (event: ModelEvent) => void): Teller {
  const ids = createIdMaker(options.idSeed);

  function toItem(block: Growing): Item {
    const item = decodeBlock(wholeBlock(block), options.names, block.input.toString());
    return withId(item, options.idSeed, block.index);
  }

  function start(block: Growing): void {
    if (block.isStarted) return;
    block.isStarted = true;
    emit({ type: "item.started", index: block.index, item: shellOf(toItem(block)) });
  }

  function end(block: Growing): void {
    if (block.isDone) return;
    block.isDone = true;
    if (block.isStarted && !isCall(block)) emit({ type: "item.done", index: block.index, item: toItem(block) });
  }

  return {
    start,
    grow(block, field, delta) {
      start(block);
      emit({ type: "item.delta", index: block.index, field, delta });
    },
    end,
    finish(blocks, mayRun) {
      for (const block of blocks) {
        end(block);
        const item = isCall(block) ? toItem(block) : undefined;
        if (item?.type !== "call") continue;
        const id = ids.claim(item.id, block.index);
        emit({ type: "item.done", index: block.index, item: { ...item, id, complete: item.complete && mayRun } });
      }
    },
    whole(index, item, field, delta) {
      emit({ type: "item.started", index, item: shellOf(item) });
      emit({ type: "item.delta", index, field, delta });
      emit({ type: "item.done", index, item });
    },
  };
}
