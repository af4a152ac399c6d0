/** Tells of one response's items as neutral events: each is started, grows, and is done once. */
import type { CallItem, Item, ModelEvent } from "../../spec/model.ts";
import { shellOf } from "../answer.ts";
import type { DecodeOptions } from "../codec.ts";
import { createIdMaker, withId } from "../ids.ts";
import { declaredNames, expandParallel } from "../parallel.ts";
import type { Raw } from "../raw.ts";
import { decodeItem } from "./decode-item.ts";
import { extend, type Growing, settle, unsaid } from "./growing.ts";
import { renamed } from "./names.ts";
import { type Text, textsOf } from "./texts.ts";

export interface Teller {
  start(growing: Growing): void;
  grow(growing: Growing, text: Text): void;
  /** Says as a delta what a whole text holds beyond the deltas before it. */
  catchUp(growing: Growing, text: Text): void;
  /** The server's last word on an item. A call is done only with the whole answer. */
  end(growing: Growing, raw: Raw): void;
  /** Ends every item; says whether there were calls. */
  finish(items: readonly Growing[], mayRun: boolean): boolean;
}

export function createTeller(options: DecodeOptions, emit: (event: ModelEvent) => void): Teller {
  const ids = createIdMaker(options.idSeed);
  const declared = declaredNames(options);

  function toItem(growing: Growing): Item {
    const item = decodeItem(settle(growing));
    return item.type === "call" ? withId(renamed(item, options.names), options.idSeed, growing.index) : item;
  }

  /** The call, or those that it holds. Only one item can keep the id of the item they came in. */
  function unwrapped(item: CallItem): readonly CallItem[] {
    const inner = expandParallel({ id: item.id, name: item.name, args: item.arguments }, declared);
    if (inner === undefined) return [item];
    const { itemId: _itemId, ...rest } = item;
    return inner.map(({ id, name, args }) => renamed({ ...rest, id: id ?? "", name, arguments: args }, options.names));
  }

  function grow(growing: Growing, text: Text): void {
    extend(growing, text);
    if (text.text !== "")
      emit({ type: "item.delta", index: growing.index, field: text.field, delta: text.text, part: text.at });
  }

  function catchUp(growing: Growing, whole: Text): void {
    const text = unsaid(growing, whole);
    if (text !== "") grow(growing, { ...whole, text });
  }

  return {
    start: (growing) => emit({ type: "item.started", index: growing.index, item: shellOf(toItem(growing)) }),
    grow,
    catchUp,
    end(growing, raw) {
      if (growing.isDone) return;
      growing.raw = { ...growing.raw, ...raw };
      growing.isDone = true;
      for (const text of textsOf(settle(growing))) catchUp(growing, text);
      growing.item = toItem(growing);
      if (growing.item.type !== "call") emit({ type: "item.done", index: growing.index, item: growing.item });
    },
    finish(items, mayRun) {
      let hasCalls = false;
      let next = (items.at(-1)?.index ?? 0) + 1;
      for (const growing of items) {
        const item = growing.item ?? toItem(growing);
        if (item.type === "call") {
          hasCalls = true;
          for (const [at, call] of unwrapped(item).entries()) {
            const index = at === 0 ? growing.index : next++;
            const id = ids.claim(call.id, index);
            emit({ type: "item.done", index, item: { ...call, id, complete: call.complete && mayRun } });
          }
        } else if (!growing.isDone) {
          emit({ type: "item.done", index: growing.index, item });
        }
      }
      return hasCalls;
    },
  };
}
