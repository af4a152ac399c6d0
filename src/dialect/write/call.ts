/** A call as text in a dialect. What is written is read back at once; a value the natural form cannot hold goes as JSON. */
import { stableStringify } from "../../base/json.ts";
import type { CallKind } from "../../spec/model.ts";
import { decodeText } from "../decode.ts";
import type { Dialect } from "../dialect.ts";
import { findDialect } from "../dialects.ts";
import { createToolTable, type TextTool, type ToolLike } from "../tools.ts";
import { argumentsOf, writeBody, writeJson, writeTag, type Written } from "./body.ts";

/** A call that is to be written in a dialect. */
export interface CallText {
  readonly name: string;
  readonly namespace?: string;
  readonly id?: string;
  readonly kind?: CallKind;
  /** JSON text, or the text itself for plain-text tools. */
  readonly arguments: string;
}

/** One call, as a model that speaks the dialect would write it. */
export function encodeCall(dialect: string | Dialect, call: CallText, tool?: ToolLike): string {
  return encodeCalls(dialect, [call], tool === undefined ? [] : [tool]);
}

/** Calls made in one answer. `position`: how many calls the conversation held before. */
export function encodeCalls(
  dialect: string | Dialect,
  calls: readonly CallText[],
  tools: readonly ToolLike[],
  position = 0,
): string {
  const spoken = typeof dialect === "string" ? findDialect(dialect) : dialect;
  const table = createToolTable(tools);
  const written = calls.map((call, index) => toWritten(call, table.list, position + index));
  const only = spoken.blocks.length === 1 ? spoken.blocks[0]! : undefined;
  const [body] = only?.bodies ?? [];
  // Nothing opens such a message, so all its calls must be one list.
  if (only?.whole === true && body?.kind === "json")
    return `[${written.map((call) => writeJson({ ...body, list: false }, call)).join(", ")}]`;
  return written.map((call) => faithful(spoken, call)).join(spoken.channels === undefined ? "\n" : "");
}

function toWritten(call: CallText, tools: readonly TextTool[], position: number): Written {
  const name = call.namespace === undefined ? call.name : `${call.namespace}.${call.name}`;
  const tool = tools.find(
    (one) => one.name === name || (one.plainName === call.name && one.namespace === call.namespace),
  );
  const { json, args } = argumentsOf(call.arguments, call.kind === "custom" || tool?.custom === true);
  return { name, id: call.id, json, args, tool, position };
}

function faithful(dialect: Dialect, call: Written): string {
  const natural = write(dialect, call, false);
  return readsBack(dialect, call, natural) ? natural : write(dialect, call, true);
}

function readsBack(dialect: Dialect, call: Written, text: string): boolean {
  const tool =
    call.tool === undefined
      ? []
      : [call.tool.custom ? { ...call.tool, parameters: call.tool.parameters ?? {} } : call.tool];
  const items = decodeText(text, {
    dialect,
    tools: tool.map(({ name, parameters, xml }) => ({ name, parameters, xml })),
  }).items;
  const [item] = items;
  if (items.length !== 1 || item?.type !== "call" || !item.complete || item.name !== call.name) return false;
  return stableStringify(JSON.parse(item.arguments)) === stableStringify(call.args);
}

function write(dialect: Dialect, call: Written, safe: boolean): string {
  switch (dialect.channels) {
    case "harmony":
      return `<|start|>assistant<|channel|>commentary to=functions.${call.name} <|constrain|>json<|message|>${call.json}<|call|>`;
    case "functionary":
      return `>>>${call.name}\n${call.json}`;
    case "inkling":
      return `<|message_model|>${call.name}<|content_invoke_tool_json|>${writeJson({ kind: "json", args: ["args"] }, call)}<|end_message|>`;
    case "muse":
      return `<|start|>assistant to=${call.name}<|message|>${inBlock(dialect, call, safe)}<|eom|>`;
    default:
      return dialect.tags === undefined ? inBlock(dialect, call, safe) : writeTag(dialect, call, safe);
  }
}

function inBlock(dialect: Dialect, call: Written, safe: boolean): string {
  const [block] = dialect.blocks;
  const [body] = block?.bodies ?? [];
  if (block === undefined || body === undefined) return call.json;
  const open = block.open[0] ?? "";
  const close = block.close[0] ?? "";
  const lines = body.kind === "json" || body.kind === "tagged" ? "\n" : "";
  const inner = writeBody(body, call, safe);
  if (open === "") return inner;
  const before = lines !== "" && close !== "" && !open.endsWith("\n") ? lines : "";
  return `${open}${before}${inner}${close === "" ? "" : before === "" && !open.endsWith("\n") ? close : `${inner.endsWith("\n") ? "" : "\n"}${close}`}`;
}
