/** The output of one response on its way out: every item announced, numbered without gaps, and kept for the last event. */
import type { JsonObject } from "../../base/json.ts";
import type { DeltaField, Item } from "../../spec/model.ts";
import { type Sign, withCarrier } from "../envelope.ts";
import { wire } from "./decode-item.ts";
import { encodeOutputItem } from "./encode-item.ts";
import { createWriter, type Emit, type Writer } from "./writer.ts";

export interface Output {
  announce(index: number, item: Item): void;
  grow(index: number, field: DeltaField, part: number, delta: string): void;
  finish(index: number, item: Item): void;
  /** In their final form, as far as they have one. */
  items(): readonly JsonObject[];
}

/** `responseId` seeds the ids of items that have none; asking for it starts the response. */
export function createOutput(emit: Emit, responseId: () => string, sign: Sign | undefined): Output {
  const writers = new Map<number, Writer>();
  const items: JsonObject[] = [];

  /** Places are given in the order of announcing, so that readers who count see no gap. */
  function open(item: Item): Writer | undefined {
    const raw = encodeOutputItem(item, responseId(), items.length, sign);
    if (raw === undefined) return undefined;
    const writer = createWriter(item.type, raw, items.length, emit);
    items.push(raw);
    return writer;
  }

  function announce(index: number, item: Item): Writer | undefined {
    const writer = writers.get(index) ?? open(item);
    if (writer !== undefined) writers.set(index, writer);
    return writer;
  }

  function finish(index: number, item: Item): void {
    for (const carrier of withCarrier(item, wire).slice(0, -1)) close(open(carrier), carrier);
    close(announce(index, item), item);
  }

  function close(writer: Writer | undefined, item: Item): void {
    if (writer === undefined) return;
    const { place } = writer;
    // Whatever id it ends with, it keeps the one it was announced under.
    const raw = { ...encodeOutputItem(item, responseId(), place, sign), id: items[place]!["id"] ?? "" };
    items[place] = writer.finish(raw);
  }

  return {
    announce: (index, item) => void announce(index, item),
    grow: (index, field, part, delta) => writers.get(index)?.grow(field, part, delta),
    finish,
    items: () => items,
  };
}
