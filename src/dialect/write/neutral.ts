/** Text from outside must not be able to speak the dialect: its markers are broken up before a model sees them. */
import type { Body, Dialect, TagPair } from "../dialect.ts";
import { toDialect } from "../dialects.ts";
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
  "<|ipython|>",
  "<|python_tag|>",
  "<|start_of_role|>",
  "<|end_of_role|>",
  "<|end_of_text|>",
  "<|START_OF_TURN_TOKEN|>",
  "<|END_OF_TURN_TOKEN|>",
  "<|USER_TOKEN|>",
  "<|CHATBOT_TOKEN|>",
  "<|SYSTEM_TOKEN|>",
  "<|im_user|>",
  "<|im_assistant|>",
  "<|im_system|>",
  "<|im_middle|>",
  "<|im_tool|>",
  "<|im_sep|>",
  "<seed:bos>",
  "<seed:eos>",
  "]~b]",
  "]~!b[",
  "[e~[",
  "<|message_sep|>",
  "<|role_sep|>",
  "<|user_start|>",
  "<|user_end|>",
  "<|assistant_start|>",
  "<|assistant_end|>",
  "<|system_start|>",
  "<|system_end|>",
  "<|developer_start|>",
  "<|developer_end|>",
  "<turn|>",
  "<|turn>",
  "<user>",
  "</user>",
  "<assistant>",
  "</assistant>",
  "<system>",
  "</system>",
  "<|end_of_msg|>",
  "<|begin|>",
  "<|content|>",
  "<|begin_user|>",
  "<|begin_assistant|>",
  "<|begin_system|>",
  "<|begin_tool_result|>",
  "<|begin_content|>",
  "<|function_output|>",
  "<|tool_response:begin|>",
  "<|tool_response:name|>",
  "<|tool_response:result|>",
  "<|tool_response:end|>",
  "<|tool_calls|>",
  "<|calls|>",
  "<beginning_of_sentence>",
  "<begin_of_sentence>",
  "<end_of_sentence>",
  "<sep>",
  "<s>",
  "<eos>",
  "<bos>",
  "[SYSTEM_PROMPT]",
  "[/SYSTEM_PROMPT]",
  "[AVAILABLE_TOOLS]",
  "[/AVAILABLE_TOOLS]",
  "[TOOL_RESULTS]",
  "[/TOOL_RESULTS]",
  "[TOOL_CONTENT]",
  "[gMASK]",
  "<sop>",
  "<role>",
  "</role>",
  "<begin_of_document>",
  "<｜begin▁of▁sentence｜>",
];

/** Shapes of control tokens that count up or carry a word of their own, such as Hunyuan's `<tool_call:suffix>`. */
const tokenShapes =
  /<\/?(?:tool_calls?|tool_sep|tool_responses?|arg_key|arg_value|think):\w{1,32}>|<\|[A-Za-z][\w:▁-]{0,62}\|>|<｜[^<>｜\s]{1,62}｜>|<\/?SPECIAL_\d{1,4}>|<\|(?=[a-z_]{2,32}>)|<(?=[a-z_]{2,32}\|>)/g;

/** `markers`: those of the model's own turns, as its chat template shows them. */
export function neutralize(
  text: string,
  dialect: string | Dialect,
  tools: readonly ToolLike[] = [],
  markers: readonly string[] = [],
): string {
  const spoken = toDialect(dialect);
  const tags =
    spoken.tags === undefined ? [] : createToolTable(tools).list.flatMap(({ name, xml }) => [xml?.tag ?? name, name]);
  const scanner = createScanner(
    markersOf(spoken),
    tags.flatMap((tag) => [`<${tag}`, `</${tag}`]),
    markers.filter((marker) => marker.length > 1),
  );
  let safe = "";
  readAll(text, function* (input) {
    for (;;) {
      const marker = yield* textUntil(input, scanner, (piece) => (safe += piece));
      if (marker === undefined) return;
      safe += broken(take(input, marker.length));
    }
  });
  return safe.replace(tokenShapes, broken);
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
  const { each, open = "", between = "", close = "" } = dialect.result;
  const wrapper = `${open}${each}${between}${close}`.match(/<[^\s<>{}"]+/g) ?? [];
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
