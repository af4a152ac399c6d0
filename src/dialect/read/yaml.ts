/** The part of YAML that models write as a tool's body: maps, lists, plain and quoted scalars, block text, JSON. */
import { typesOf } from "../../schema/coerce.ts";
import { follow } from "../../schema/subschema.ts";
import type { Notes } from "../repairs.ts";
import { itemsOf, propertyIn } from "../schema.ts";
import { normalizeLiteral, propertyNames, textToJson } from "../values.ts";

interface Lines {
  readonly list: string[];
  at: number;
  readonly notes: Notes;
  /** The whole schema, in which references are looked up. */
  readonly root: unknown;
}

const keyPattern = /^(?:"([^"]{1,128})"|'([^']{1,128})'|([^\s"'#:[\]{},-][^:#]{0,127}?))\s*:(?:\s(.*))?$/;
const nestingLimit = 32;

/** The text as one JSON object, or undefined if it is not a map. */
export function yamlToJson(text: string, parameters: unknown, notes: Notes): string | undefined {
  const list = text.replace(/^\n/, "").trimEnd().split("\n");
  const lines: Lines = { list, at: 0, notes, root: parameters };
  const first = nextIndent(lines);
  if (first < 0) return "{}";
  const json = readMap(lines, first, parameters, 0);
  return json !== undefined && nextIndent(lines) < 0 ? json : byDeclaredKeys(text, parameters, notes);
}

function indentOf(line: string): number {
  return line.length - line.trimStart().length;
}

/** Goes to the next line that is neither empty nor a comment and returns its indent, or -1 at the end. */
function nextIndent(lines: Lines): number {
  while (lines.at < lines.list.length && /^\s*(?:#.*)?$/.test(lines.list[lines.at]!)) lines.at++;
  return lines.at < lines.list.length ? indentOf(lines.list[lines.at]!) : -1;
}

function readMap(lines: Lines, indent: number, schema: unknown, depth: number): string | undefined {
  const fields = new Map<string, string>();
  for (let next = nextIndent(lines); next >= indent; next = nextIndent(lines)) {
    const match = next === indent ? keyPattern.exec(lines.list[lines.at]!.trim()) : null;
    const key = match?.[1] ?? match?.[2] ?? match?.[3];
    if (key === undefined || fields.has(key) || depth > nestingLimit) return undefined;
    lines.at++;
    const json = readValue(lines, indent, match![4]?.trim() ?? "", propertyIn(schema, key, lines.root), depth);
    if (json === undefined) return undefined;
    fields.set(key, json);
  }
  return `{${[...fields].map(([key, json]) => `${JSON.stringify(key)}:${json}`).join(",")}}`;
}

function readList(lines: Lines, indent: number, schema: unknown, depth: number): string | undefined {
  const items: string[] = [];
  const itemSchema = itemsOf(schema, lines.root);
  for (let next = nextIndent(lines); next === indent; next = nextIndent(lines)) {
    const item = /^-(?:\s+(.*))?$/.exec(lines.list[lines.at]!.trim());
    if (item === null) break;
    const json = readItem(lines, indent, item[1]?.trim() ?? "", itemSchema, depth);
    if (json === undefined) return undefined;
    items.push(json);
  }
  return `[${items.join(",")}]`;
}

/** `- key: value` begins a map whose other keys stand below the first. */
function readItem(lines: Lines, indent: number, rest: string, schema: unknown, depth: number): string | undefined {
  if (!keyPattern.test(rest)) {
    lines.at++;
    return readValue(lines, indent, rest, schema, depth + 1);
  }
  const line = lines.list[lines.at]!;
  const inner = line.length - line.trimStart().slice(1).trimStart().length;
  lines.list[lines.at] = " ".repeat(inner) + rest;
  return readMap(lines, inner, schema, depth + 1);
}

function readValue(lines: Lines, indent: number, rest: string, schema: unknown, depth: number): string | undefined {
  if (/^[|>][+-]?$/.test(rest)) return JSON.stringify(blockText(lines, indent, rest));
  if (rest === "") return readBelow(lines, indent, schema, depth);
  const flow = /^[[{]/.test(rest) ? normalizeLiteral(rest, lines.notes) : undefined;
  return flow ?? (/^[[{]/.test(rest) ? undefined : scalar(rest, schema, lines));
}

/** Reads what stands below its key and is indented further. A list may have the indent of its key. */
function readBelow(lines: Lines, indent: number, schema: unknown, depth: number): string | undefined {
  const next = nextIndent(lines);
  const isList = next >= indent && /^-(?:\s|$)/.test(lines.list[lines.at]!.trim());
  if (isList) return readList(lines, next, schema, depth + 1);
  return next > indent ? readMap(lines, next, schema, depth + 1) : scalar("", schema, lines);
}

/** `|` keeps line ends, `>` folds them; `-` leaves out the last one. */
function blockText(lines: Lines, indent: number, style: string): string {
  const from = lines.at;
  while (
    lines.at < lines.list.length &&
    (indentOf(lines.list[lines.at]!) > indent || lines.list[lines.at]!.trim() === "")
  )
    lines.at++;
  const block = lines.list.slice(from, lines.at);
  const inner = Math.min(...block.filter((line) => line.trim() !== "").map(indentOf), 1024);
  const body = block
    .map((line) => line.slice(inner))
    .join("\n")
    .trimEnd();
  const text = style.startsWith(">") ? body.replace(/(?<!\n)\n(?!\n)/g, " ") : body;
  return style.endsWith("-") || text === "" ? text : `${text}\n`;
}

function scalar(text: string, schema: unknown, { notes, root }: Lines): string {
  if (/^"(?:[^"\\]|\\.)*"$/s.test(text)) return normalizeLiteral(text, notes) ?? JSON.stringify(text);
  if (/^'(?:[^']|'')*'$/s.test(text)) return JSON.stringify(text.slice(1, -1).replaceAll("''", "'"));
  const plain = text.replace(/\s#.*$/s, "");
  const types = schema === undefined ? new Set<string>() : typesOf(follow(root, schema), root, 0);
  if (types.size > 0) return textToJson(plain, types, notes);
  // YAML itself tells numbers and booleans from text.
  return /^(?:true|false|null|-?(?:0|[1-9]\d{0,15})(?:\.\d{1,15})?)$/.test(plain) ? plain : JSON.stringify(plain);
}

/** Reads text that is not YAML but whose lines begin with declared keys. Each value reaches up to the next key. */
function byDeclaredKeys(text: string, parameters: unknown, notes: Notes): string | undefined {
  const names = new Set(propertyNames(parameters));
  const values = new Map<string, string>();
  let last: string | undefined;
  for (const line of text.replace(/^\n/, "").trimEnd().split("\n")) {
    const key = keyPattern.exec(line)?.[3];
    if (key !== undefined && names.has(key) && !values.has(key)) {
      values.set(key, line.slice(line.indexOf(":") + 1).replace(/^ /, ""));
      last = key;
    } else if (last !== undefined) values.set(last, `${values.get(last)!}\n${line}`);
    else if (line.trim() !== "") return undefined;
  }
  if (values.size === 0) return undefined;
  notes.add("unquoted-text");
  const root = { list: [], at: 0, notes, root: parameters };
  const fields = [...values].map(([key, value]) => {
    const whole = value.includes("\n")
      ? JSON.stringify(`${value}\n`)
      : scalar(value.trim(), propertyIn(parameters, key, parameters), root);
    return `${JSON.stringify(key)}:${whole}`;
  });
  return `{${fields.join(",")}}`;
}
