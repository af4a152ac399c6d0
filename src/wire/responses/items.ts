/** The items of one streamed response: opened, grown and ended by whatever the server says of them. */
import type { DeltaField, Item, ModelEvent } from "../../spec/model.ts";
import { shellOf } from "../answer.ts";
import type { DecodeOptions } from "../codec.ts";
import { createIdMaker, inventId } from "../ids.ts";
import { count, object, objects, type Raw, word } from "../raw.ts";
import { decodeItem } from "./decode-item.ts";
import type { Step } from "./events.ts";
import { createGrowing, type Growing, settle, textsOf } from "./growing.ts";
import { createItemBook } from "./item-book.ts";
import { renamed } from "./names.ts";

export interface Items {
  added(event: Raw): void;
  done(event: Raw): void;
  step(event: Raw, step: Step): void;
  annotate(event: Raw): void;
  /** The final output, which repeats the items or is the first to tell of them. */
  output(list: unknown): void;
  /** Ends everything; only now is it known whether calls may run. Says whether there were any. */
  finish(mayRun: boolean): boolean;
}

export function createItems(options: DecodeOptions, emit: (event: ModelEvent) => void): Items {
  const ids = createIdMaker(options.idSeed);
  const book = createItemBook();

  function toItem(growing: Growing): Item {
    const item = renamed(decodeItem(settle(growing)), options.names);
    return item.type === "call" && item.id === ""
      ? { ...item, id: inventId(options.idSeed ?? "", growing.index) }
      : item;
  }

  function open(event: Raw, raw: Raw): Growing {
    const growing = createGrowing(book.claim(event["output_index"]), raw);
    book.add(growing, event);
    emit({ type: "item.started", index: growing.index, item: shellOf(toItem(growing)) });
    return growing;
  }

  function grow(growing: Growing, field: DeltaField, at: number, delta: string): void {
    const pieces = growing.pieces[field];
    pieces.set(at, (pieces.get(at) ?? "") + delta);
    if (delta !== "") emit({ type: "item.delta", index: growing.index, field, delta, part: at });
  }

  /** Says as a delta what a whole text holds beyond the deltas before it. */
  function catchUp(growing: Growing, field: DeltaField, at: number, text: string): void {
    const said = growing.pieces[field].get(at) ?? "";
    if (text.length > said.length && text.startsWith(said)) grow(growing, field, at, text.slice(said.length));
  }

  function end(growing: Growing, raw: Raw): void {
    if (growing.isDone) return;
    growing.raw = { ...growing.raw, ...raw };
    growing.isDone = true;
    for (const { field, at, text } of textsOf(settle(growing))) catchUp(growing, field, at, text);
    growing.item = toItem(growing);
    if (growing.item.type !== "call") emit({ type: "item.done", index: growing.index, item: growing.item });
  }

  return {
    added(event) {
      const raw = object(event["item"]);
      const known = book.findSame(event, raw);
      if (known === undefined) open(event, raw);
      else known.raw = { ...known.raw, ...raw };
    },
    done(event) {
      const raw = object(event["item"]);
      end(book.findSame(event, raw) ?? open(event, raw), raw);
    },
    step(event, { kind, field, item, at, text }) {
      const growing = book.find(event) ?? open(event, { type: item, id: event["item_id"] });
      if (growing.isDone) return;
      const name = word(event["name"]);
      if (name !== undefined && word(growing.raw["name"]) === undefined) growing.raw = { ...growing.raw, name };
      if (kind === "delta") grow(growing, field, at, text);
      else catchUp(growing, field, at, text);
    },
    annotate(event) {
      const growing = book.find(event);
      if (growing === undefined || growing.isDone) return;
      const at = count(event["content_index"]) ?? 0;
      growing.annotations.set(at, [...(growing.annotations.get(at) ?? []), event["annotation"]]);
    },
    output(list) {
      const told = new Set<Growing>();
      for (const [place, raw] of objects(list).entries()) {
        const known = book.match(raw, place);
        // One line of the output, one item: ids that repeat are a server's mistake and lose nothing.
        const growing = known === undefined || told.has(known) ? open({ output_index: place }, raw) : known;
        told.add(growing);
        end(growing, raw);
      }
    },
    finish(mayRun) {
      let hasCalls = false;
      for (const growing of book.all()) {
        const { index, isDone } = growing;
        const item = growing.item ?? toItem(growing);
        if (item.type === "call") {
          hasCalls = true;
          const id = ids.claim(item.id, index);
          emit({ type: "item.done", index, item: { ...item, id, complete: item.complete && mayRun } });
        } else if (!isDone) {
          emit({ type: "item.done", index, item });
        }
      }
      return hasCalls;
    },
  };
}
