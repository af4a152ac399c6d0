/** Hunyuan's tags may all carry one suffix, `<tool_call:k7>`: the same block, written with it. */
import type { Block, Body, TagPair } from "../dialect.ts";

export function withSuffix(block: Block, suffix: string): Block {
  const mark = (tag: string) => (tag.endsWith(">") ? `${tag.slice(0, -1)}:${suffix}>` : tag);
  const pair = (one: TagPair): TagPair => ({ open: mark(one.open), close: mark(one.close) });
  const body = (one: Body): Body =>
    one.kind === "pairs"
      ? {
          ...one,
          key: pair(one.key),
          value: pair(one.value),
          ...(one.call === undefined ? {} : { call: pair(one.call) }),
          ...(one.separator === undefined ? {} : { separator: mark(one.separator) }),
        }
      : one;
  return { ...block, open: block.open.map(mark), close: block.close.map(mark), bodies: block.bodies.map(body) };
}
