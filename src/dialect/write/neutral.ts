/** Text from outside must not be able to speak the dialect: its markers are broken up before a model sees them. */
import type { Body, Dialect, TagPair } from "../dialect.ts";
import { findDialect } from "../dialects.ts";
import { createScanner, readAll, take, textUntil } from "../input.ts";
import { createToolTable, type ToolLike } from "../tools.ts";

/** Control tokens of chat templates, whatever the dialect. */
const chatTokens = [
  "<|im_start|>",
  "<|im_end|>",
  "<|eot_id|>",
  "<|eom_id|>",
  "<|start_header_id|>",
  "<|end_header_id|>",
  "<|begin_of_text|>",
  "<|endoftext|>",
  "<|channel|>",
  "<|message|>",
  "<|start|>",
  "<|end|>",
  "<|call|>",
  "<|return|>",
  "<start_of_turn>",
  "<end_of_turn>",
  "[INST]",
  "[/INST]",
  "</s>",
  "<｜end▁of▁sentence｜>",
  "<｜User｜>",
  "<｜Assistant｜>",
  "<|user|>",
  "<|assistant|>",
  "<|system|>",
  "<|observation|>",
];

export function neutralize(text: string, dialect: string | Dialect, tools: readonly ToolLike[] = []): string {
  const spoken = typeof dialect === "string" ? findDialect(dialect) : dialect;
  const tags =
    spoken.tags === undefined ? [] : createToolTable(tools).list.flatMap(({ name, xml }) => [xml?.tag ?? name, name]);
  const scanner = createScanner(
    markersOf(spoken),
    tags.flatMap((tag) => [`<${tag}`, `</${tag}`]),
  );
  let safe = "";
  readAll(text, function* (input) {
    for (;;) {
      const marker = yield* textUntil(input, scanner, (piece) => (safe += piece));
      if (marker === undefined) return;
      safe += broken(take(input, marker.length));
    }
  });
  return safe;
}

/** Visibly other: `&lt;` for `<`, a space inside anything else. */
function broken(marker: string): string {
  if (marker.includes("<")) return marker.replaceAll("<", "&lt;");
  return marker.endsWith(":") ? `${marker.slice(0, -1)} :` : `${marker.charAt(0)} ${marker.slice(1)}`;
}

export function markersOf(dialect: Dialect): readonly string[] {
  const blocks = dialect.blocks.flatMap((block) => [
    ...block.open,
    ...block.close.filter((close) => close !== "```"),
    ...(block.between ?? []).filter((mark) => mark.length > 2),
    ...block.bodies.flatMap(bodyMarkers),
  ]);
  const reasoning = (dialect.reasoning ?? []).flatMap(({ open, close }) => [...open, ...close]);
  const { each, open = "", close = "" } = dialect.result;
  const wrapper = `${open}${each}${close}`.match(/<[^\s<>{}"]+/g) ?? [];
  const channel =
    dialect.channels === "functionary"
      ? [">>>"]
      : dialect.channels === "inkling"
        ? ["<|message_", "<|content_", "<|end_message|>"]
        : [];
  return [
    ...new Set([
      ...blocks,
      ...reasoning,
      ...wrapper,
      ...channel,
      ...(dialect.results ?? []),
      ...(dialect.drop ?? []),
      ...chatTokens,
    ]),
  ].filter((marker) => marker.length > 1);
}

function bodyMarkers(body: Body): readonly string[] {
  switch (body.kind) {
    case "tagged":
      return [...body.call, ...body.parameter].flatMap(edges);
    case "pairs":
      return [body.key, body.value, ...(body.call === undefined ? [] : [body.call])].flatMap(edges);
    case "named":
      return [...(body.before ?? []), ...body.separator, ...(body.close ?? []), ...(body.id ?? [])].filter(
        (marker) => marker.trim() !== "",
      );
    case "quoted":
      return [body.quote];
    default:
      return [];
  }
}

function edges(pair: TagPair): readonly string[] {
  return [pair.open, pair.close];
}
