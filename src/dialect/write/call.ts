/** Calls as text in a dialect. What is written is read back at once; a value the natural form cannot hold goes as JSON. */
import { exactId } from "../../base/hash.ts";
import { stableStringify } from "../../base/json.ts";
import type { CallKind } from "../../spec/model.ts";
import { decodeText } from "../decode.ts";
import type { Block, Body, Dialect, Layout } from "../dialect.ts";
import { toDialect } from "../dialects.ts";
import { createToolTable, type TextTool, type ToolLike } from "../tools.ts";
import { argumentsOf, writeBody, writeJson, writeTag, type Written } from "./body.ts";
import { spacedJson } from "./spelling.ts";

/** A call that is to be written in a dialect. */
export interface CallText {
  readonly name: string;
  readonly namespace?: string;
  readonly id?: string;
  readonly kind?: CallKind;
  /** JSON text, or the text itself for plain-text tools. */
  readonly arguments: string;
  /** Where the call came from: one that was read from text keeps its arguments as the model wrote them. */
  readonly extra?: { readonly wire: string };
}

/**
 * The calls of one answer, as a model that speaks the dialect would write them. `position`: how many
 * calls the conversation held before.
 */
export function encodeCalls(
  dialect: string | Dialect,
  calls: readonly CallText[],
  tools: readonly ToolLike[] = [],
  position = 0,
): string {
  const spoken = toDialect(dialect);
  const table = createToolTable(tools);
  const written = calls.map((call, index) => toWritten(spoken, call, table.list, position + index, index + 1));
  const natural = writeAll(spoken, written, new Set());
  if (readsBack(spoken, written, natural)) return natural;
  const safe = new Set(written.filter((call) => !readsBack(spoken, [call], writeAll(spoken, [call], new Set()))));
  const mixed = writeAll(spoken, written, safe);
  return safe.size > 0 && readsBack(spoken, written, mixed) ? mixed : writeAll(spoken, written, new Set(written));
}

/** One call of an answer in a body of the dialect, without what stands around it. */
export function encodeBody(dialect: Dialect, body: Body, call: CallText, index: number): string {
  return writeBody(body, toWritten(dialect, call, [], index, index + 1), false);
}

/** An id as the dialect writes it, in the call and in its result. */
export function spellId(dialect: Dialect, id: string, name: string, position: number): string {
  switch (dialect.ids) {
    case "functions":
      return /^functions\.[^:]+:\d+$/.test(id) ? id : `functions.${name}:${position}`;
    case "nine":
      return exactId(id, 9);
    case "position":
      return String(position);
    default:
      return id;
  }
}

function toWritten(
  dialect: Dialect,
  call: CallText,
  tools: readonly TextTool[],
  position: number,
  index: number,
): Written {
  const name = call.namespace === undefined ? call.name : `${call.namespace}.${call.name}`;
  const tool = tools.find(
    (one) => one.name === name || (one.plainName === call.name && one.namespace === call.namespace),
  );
  const { json, args } = argumentsOf(call.arguments, call.kind === "custom" || tool?.custom === true);
  const isInvented = dialect.ids === "functions" || dialect.ids === "position";
  const id = call.id === undefined && !isInvented ? undefined : spellId(dialect, call.id ?? "", name, position);
  return { name, id, json: call.extra?.wire === "text" ? json : spacedJson(json), args, tool, position, index };
}

function readsBack(dialect: Dialect, calls: readonly Written[], text: string): boolean {
  const tools = new Map(calls.flatMap(({ tool }) => (tool === undefined ? [] : [[tool.name, tool] as const])));
  const declared = [...tools.values()].map(({ name, parameters, xml, custom }) => ({
    name,
    parameters: custom ? (parameters ?? {}) : parameters,
    xml,
  }));
  const { items } = decodeText(text, { dialect, tools: declared });
  return (
    items.length === calls.length &&
    items.every((item, index) => {
      const call = calls[index]!;
      if (item.type !== "call" || !item.complete || item.name !== call.name) return false;
      return stableStringify(JSON.parse(item.arguments)) === stableStringify(call.args);
    })
  );
}

/** `safe`: the calls whose arguments go as JSON without markup. */
function writeAll(dialect: Dialect, calls: readonly Written[], safe: ReadonlySet<Written>): string {
  if (dialect.channels !== undefined) return writeMessages(dialect, calls, safe);
  if (dialect.tags !== undefined) return calls.map((call) => writeTag(dialect, call, safe.has(call))).join("\n");
  return inBlock(dialect, calls, safe);
}

/** A message for each call, where calls are messages to the tools. */
function writeMessages(dialect: Dialect, calls: readonly Written[], safe: ReadonlySet<Written>): string {
  const messages = calls.map((call) => {
    switch (dialect.channels) {
      case "harmony":
        return `<|start|>assistant to=functions.${call.name}<|channel|>commentary json<|message|>${call.json}<|call|>`;
      case "functionary":
        return `>>>${call.name}\n${call.json}`;
      case "inkling":
        return `<|message_model|>${call.name}<|content_invoke_tool_json|>${writeJson({ kind: "json", args: ["args"] }, call)}<|end_message|>`;
      default:
        return `<|start|>assistant to=${call.name}<|message|>${inBlock(dialect, [call], safe)}`;
    }
  });
  return dialect.channels === "muse" ? `${messages.join("<|eom|>")}<|eot|>` : messages.join("");
}

function inBlock(dialect: Dialect, calls: readonly Written[], safe: ReadonlySet<Written>): string {
  const block = dialect.blocks.find(({ layout }) => layout !== undefined) ?? dialect.blocks[0];
  const [body] = block?.bodies ?? [];
  if (block === undefined || body === undefined) return calls.map(({ json }) => json).join("\n");
  const { open, between, close } = block.layout ?? layoutOf(block, body);
  return `${open}${calls.map((call) => writeBody(body, call, safe.has(call))).join(between)}${close}`;
}

/** A list in one block; else a block for each call, with JSON and elements on lines of their own. */
function layoutOf(block: Block, body: Body): Layout {
  const open = block.open[0] ?? "";
  const close = block.close[0] ?? "";
  if (isList(body)) return { open: `${open}[`, between: ", ", close: `]${close}` };
  const line = open !== "" && close !== "" && (body.kind === "json" || body.kind === "tagged") ? "\n" : "";
  const start = open.endsWith("\n") ? open : `${open}${line}`;
  const needsLine = line !== "" || (open.endsWith("\n") && close !== "" && body.kind !== "codeblock");
  const end = `${needsLine ? "\n" : ""}${close}`;
  return { open: start, between: `${end}\n${start}`, close: end };
}

function isList(body: Body): boolean {
  return body.kind === "json" ? body.list === true : body.kind === "python" && body.list === "brackets";
}
