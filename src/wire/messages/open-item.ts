/** The item whose block is being written: blocks cannot interleave, so the words of others wait for it. */
import type { JsonObject } from "../../base/json.ts";
import type { DeltaField, Item, ModelEvent } from "../../spec/model.ts";
import type { BlockWriter } from "./block-writer.ts";

export interface OpenItem {
  readonly index: () => number | undefined;
  /** Words of an item while another's block is open. */
  isBarredTo(event: ModelEvent): boolean;
  grow(index: number, field: DeltaField, part: number, words: string): void;
  /** Ends an item with what its deltas did not say; `written` are its blocks as a whole. */
  finish(index: number, item: Item, written: readonly JsonObject[]): void;
}

interface Open {
  readonly index: number;
  readonly part: number;
  /** What its deltas said so far. */
  readonly said: string;
}

export function createOpenItem(blocks: BlockWriter): OpenItem {
  let open: Open | undefined;

  function grow(index: number, field: DeltaField, part: number, words: string): void {
    if (words === "" || field === "refusal" || field === "arguments") return;
    const kind = field === "text" ? "text" : "thinking";
    const isNext = open !== undefined && open.part !== part;
    // Each text part is a block of its own; thoughts stay one block, whose signature comes last.
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
      if (whole.startsWith(open.said))
        grow(index, item.type === "message" ? "text" : "reasoning", open.part, whole.slice(open.said.length));
      blocks.end(written.at(-1));
      open = undefined;
    },
  };
}
