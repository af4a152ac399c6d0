/** The same bodies the readers know, written. Each gives the natural form and a form that holds any value. */
import { isObject, typeName, type Json, type JsonObject } from "../../base/json.ts";
import type { Body, Dialect, JsonBody, NamedBody, PairsBody, TaggedBody } from "../dialect.ts";
import { encodeAttribute } from "../read/header.ts";
import { customKey, type TextTool } from "../tools.ts";
import { markerFree, spacedJson, toElements, toPython, toQuoted } from "./spelling.ts";

export interface Written {
  readonly name: string;
  readonly id?: string | undefined;
  /** JSON text of an object. */
  readonly json: string;
  readonly args: JsonObject;
  readonly tool: TextTool | undefined;
  /** Which call of the conversation it is, from 0. */
  readonly position: number;
  /** Which call of its answer it is, from 1. */
  readonly index: number;
}

/** No string is held by it, so all are quoted as JSON. */
const unwritable = "";

/** One call; what stands around several is the block's. `safe`: the arguments as one JSON object without any character that could be markup. */
export function writeBody(body: Body, call: Written, safe: boolean): string {
  switch (body.kind) {
    case "json":
      return writeJson(body, call);
    case "named":
      return writeNamed(body, call);
    case "tagged":
      return writeTagged(body, call, safe);
    case "pairs":
      return writePairs(body, call, safe);
    case "python":
      return writePython(call, body.quote);
    case "quoted":
      return `${body.prefix}${call.name}${toQuoted(call.args, safe ? unwritable : body.quote, body.sorted)}`;
    case "action":
      return ` ${call.name}\n${body.input[0]} ${call.json}`;
    case "codeblock":
      return writeCodeblock(call, safe);
  }
}

export function writeJson(body: JsonBody, call: Written): string {
  const { json } = call;
  const key = JSON.stringify(body.name?.[0] ?? "name");
  const pair = `${key}: ${JSON.stringify(call.name)}, ${JSON.stringify(body.args?.[0] ?? "arguments")}: ${json}`;
  const id = body.id === undefined || call.id === undefined ? "" : `"${body.id.key}": ${JSON.stringify(call.id)}`;
  const [first, last] = body.id?.at === "first" ? [id, ""] : ["", id];
  const entries = [first, pair, last].filter((entry) => entry !== "").join(", ");
  const object = body.nameAsKey === true ? `{${JSON.stringify(call.name)}: ${json}}` : `{${entries}}`;
  if (body.indent === undefined) return object;
  // Inside a list: one level further in than alone.
  const { indent } = body;
  return spacedJson(object, indent).replaceAll("\n", `\n${" ".repeat(indent)}`);
}

function writeNamed(body: NamedBody, call: Written): string {
  const name = body.kimi === true ? (call.id ?? `functions.${call.name}:${call.position}`) : call.name;
  const id = body.id === undefined || call.id === undefined ? "" : `${body.id[0]}${call.id}`;
  const first = body.idFirst === undefined ? "" : `${call.id ?? `call_${call.position}`}${body.idFirst[0]}`;
  const open = body.after === undefined ? "" : `${body.after[0]}\n`;
  const close = body.after === undefined ? "" : "\n```";
  return `${body.before?.[0] ?? ""}${first}${name}${id}${body.separator[0]}${open}${call.json}${close}${body.close?.[0] ?? ""}`;
}

function writeTagged(body: TaggedBody, call: Written, safe: boolean): string {
  const open = fill(body.tags.call, call.name, null).replace("{index}", String(call.index));
  const close = body.call[0]!.close;
  const line = body.compact === true ? "" : "\n";
  if (body.json === true) return `${open}${safe ? markerFree(call.json) : call.json}${close}`;
  if (safe) return `${open}\n${markerFree(call.json)}\n${close}`;
  if (body.nested !== undefined) return `${open}${toElements(call.args, body.nested)}${close}`;
  const end = body.parameter[0]!.close;
  const parameters = Object.entries(call.args).map(
    ([key, value]) => `${fill(body.tags.parameter, key, value)}${valueText(value, body)}${end}${line}`,
  );
  return `${open}${line}${parameters.join("")}${close}`;
}

function fill(template: string, name: string, value: Json): string {
  const quoted = template.includes('"{name}"') ? encodeAttribute(name) : name;
  const text = typeof value === "string";
  const type = Array.isArray(value) ? "array" : typeName(value);
  return template
    .replace("{string}", String(text))
    .replace("{type}", type)
    .replace("{kind}", text ? "text" : "json")
    .replace("{name}", () => quoted);
}

function valueText(value: Json, body: Pick<TaggedBody, "trim" | "cdata" | "inline" | "python">): string {
  const isWord = typeof value === "boolean" || value === null;
  const text =
    typeof value === "string"
      ? value
      : body.python === true && isWord
        ? toPython(value)
        : spacedJson(JSON.stringify(value));
  if (body.cdata === true && /[<&\n]/.test(text)) return `<![CDATA[${text.replaceAll("]]>", "]]]]><![CDATA[>")}]]>`;
  return body.trim === "none" || (body.inline === true && !text.includes("\n")) ? text : `\n${text}\n`;
}

function writePairs(body: PairsBody, call: Written, safe: boolean): string {
  const line = body.compact === true ? "" : "\n";
  const head = `${body.call?.open ?? ""}${call.name}${body.separator ?? ""}`;
  const tail = body.call?.close ?? "";
  if (safe) return `${head}\n${markerFree(call.json)}\n${tail}`;
  const pairs = Object.entries(call.args).map(
    ([key, value]) =>
      `${line}${body.key.open}${key}${body.key.close}${line}${body.value.open}${valueText(value, body)}${body.value.close}`,
  );
  return `${head}${pairs.join("")}${line}${tail}`;
}

function writePython(call: Written, quote: string | undefined): string {
  const entries = Object.entries(call.args);
  const plain = entries.every(([key]) => /^[A-Za-z_][A-Za-z0-9_]*$/.test(key));
  if (!plain) return `${call.name}(**${toPython(call.args, quote)})`;
  return `${call.name}(${entries.map(([key, value]) => `${key}=${toPython(value, quote)}`).join(", ")})`;
}

function writeCodeblock(call: Written, safe: boolean): string {
  if (safe) return `TOOL_NAME: ${call.name}\n${markerFree(call.json)}\n`;
  const lines = Object.entries(call.args).map(
    ([key, value]) => `BEGIN_ARG: ${key}\n${typeof value === "string" ? value : JSON.stringify(value)}\nEND_ARG\n`,
  );
  return `TOOL_NAME: ${call.name}\n${lines.join("")}`;
}

/** A tag per tool, laid out by the tool's mapping where it has one. */
export function writeTag(dialect: Dialect, call: Written, safe: boolean): string {
  const tag = call.tool?.xml?.tag ?? call.name;
  const rules = dialect.tags!;
  if (safe) return `<${tag}>\n${markerFree(call.json)}\n</${tag}>`;
  if (rules.body === "yaml") return `<${tag}>\n${yamlOf(call)}\n</${tag}>`;
  const rows = new Map((call.tool?.xml?.parameters ?? []).map((row) => [row.name, row]));
  let attributes = "";
  let elements = "";
  let content = "";
  for (const [key, value] of Object.entries(call.args)) {
    const row = rows.get(key);
    const text = typeof value === "string" ? value : JSON.stringify(value);
    const path = row?.path === undefined || row.path === "." ? key : row.path.replace(/^@/, "").split("/").at(-1)!;
    if (row?.node === "attribute") attributes += ` ${path}="${encodeAttribute(text)}"`;
    else if (row?.node === "content" || row?.node === "text") content += text;
    else {
      const trim = rules.trim === "one-newline" || rows.size > 0 ? "one-newline" : "none";
      elements += `<${path}>${valueText(value, { trim, inline: true })}</${path}>\n`;
    }
  }
  return `<${tag}${attributes}>\n${elements}${content === "" ? "" : `${content}\n`}</${tag}>`;
}

/** JSON is YAML: every value in one line, quoted. */
function yamlOf(call: Written): string {
  return Object.entries(call.args)
    .map(
      ([key, value]) =>
        `${/^[A-Za-z0-9_.$-]{1,128}$/.test(key) ? key : markerFree(JSON.stringify(key))}: ${markerFree(JSON.stringify(value))}`,
    )
    .join("\n");
}

/** The arguments of a call as an object: a plain-text tool's input gets its one name. */
export function argumentsOf(text: string, custom: boolean): { readonly json: string; readonly args: JsonObject } {
  if (custom) return { json: JSON.stringify({ [customKey]: text }), args: { [customKey]: text } };
  try {
    const value: unknown = JSON.parse(text === "" ? "{}" : text);
    if (isObject(value)) return { json: text === "" ? "{}" : text, args: value as JsonObject };
  } catch {
    // A call that was never whole is shown with what it had.
  }
  return { json: JSON.stringify({ [customKey]: text }), args: { [customKey]: text } };
}
