/** Elements inside elements, turned into JSON by the schema: for formats that nest values as tags. */
import { typesOf } from "../../schema/coerce.ts";
import { follow } from "../../schema/subschema.ts";
import type { Notes } from "../repairs.ts";
import { itemsOf, propertyIn } from "../schema.ts";
import { textToJson } from "../values.ts";
import { decodeEntities } from "./header.ts";

export interface Element {
  readonly name: string;
  readonly inner: string;
}

export interface Content {
  readonly elements: readonly Element[];
  /** What stands between the elements. */
  readonly text: string;
}

export interface ElementRules {
  /** Written before every tag. */
  readonly prefix: string;
  readonly entities: boolean;
  readonly notes: Notes;
  readonly root: unknown;
}

const tagName = /<(\/?)([A-Za-z0-9_.:-]{1,128})((?:\s[^<>]{0,2048})?)(\/?)>/y;
const depthLimit = 32;

/** The outermost elements of the text, or undefined if the tags do not match. */
export function contentOf(raw: string, prefix: string): Content | undefined {
  const elements: Element[] = [];
  let text = "";
  let at = 0;
  while (at < raw.length) {
    const open = nextTag(raw, prefix, at);
    if (open === undefined) break;
    if (open.closing) return undefined;
    text += raw.slice(at, open.start);
    if (open.empty) {
      elements.push({ name: open.name, inner: "" });
      at = open.end;
      continue;
    }
    const close = closeOf(raw, prefix, open.name, open.end);
    if (close === undefined) return undefined;
    elements.push({ name: open.name, inner: raw.slice(open.end, close.start) });
    at = close.end;
  }
  return { elements, text: text + raw.slice(at) };
}

interface Tag {
  readonly name: string;
  readonly closing: boolean;
  readonly empty: boolean;
  readonly start: number;
  readonly end: number;
}

function nextTag(raw: string, prefix: string, from: number): Tag | undefined {
  const mark = `${prefix}<`;
  for (let at = raw.indexOf(mark, from); at >= 0; at = raw.indexOf(mark, at + 1)) {
    tagName.lastIndex = at + prefix.length;
    const match = tagName.exec(raw);
    if (match) {
      const empty = match[4] === "/" || match[3]!.endsWith("/");
      return { name: match[2]!, closing: match[1] === "/", empty, start: at, end: tagName.lastIndex };
    }
  }
  return undefined;
}

/** The tag that closes an element of this name, which may hold other elements of its name. */
function closeOf(raw: string, prefix: string, name: string, from: number): Tag | undefined {
  let depth = 0;
  for (let tag = nextTag(raw, prefix, from); tag !== undefined; tag = nextTag(raw, prefix, tag.end)) {
    if (tag.name !== name || tag.empty) continue;
    if (!tag.closing) depth++;
    else if (depth-- === 0) return tag;
  }
  return undefined;
}

export function elementToJson(inner: string, schema: unknown, rules: ElementRules, depth = 0): string {
  const node = follow(rules.root, schema);
  const types = typesOf(node, rules.root, 0);
  const text = () => (rules.entities ? decodeEntities(inner) : inner);
  const word = inner.trim();
  if (word.startsWith("<![CDATA[") && word.endsWith("]]>")) {
    rules.notes.add("cdata");
    const raw = word.slice("<![CDATA[".length, -"]]>".length).replaceAll("]]]]><![CDATA[>", "]]>");
    return textToJson(raw, types.size === 0 ? undefined : types, rules.notes);
  }
  const nested =
    depth < depthLimit && (types.size === 0 || !types.has("string")) ? contentOf(inner, rules.prefix) : undefined;
  if (nested !== undefined && nested.elements.length > 0 && nested.text.trim() === "") {
    return groupToJson(nested.elements, node, types, rules, depth);
  }
  if (word === "" && types.has("array") && !types.has("string")) return "[]";
  const numbers = types.has("array") && !types.has("string") ? numbersOf(word, node, rules) : undefined;
  if (numbers !== undefined) return numbers;
  return textToJson(text(), types.size === 0 ? undefined : types, rules.notes);
}

/** Reads `1, 2, 3`, or one number on each line, if the schema wants a list of numbers. */
function numbersOf(word: string, node: Record<string, unknown>, rules: ElementRules): string | undefined {
  const types = typesOf(follow(rules.root, itemsOf(node, rules.root)), rules.root, 0);
  const isNumber = types.has("number") || types.has("integer");
  const parts = isNumber && /^[-+\d.]/.test(word) ? word.split(/\s{0,64}[,\n]\s{0,64}/) : [];
  const numbers = parts.map((part) => textToJson(part, types, rules.notes));
  if (numbers.length === 0 || numbers.some((json) => json.startsWith('"'))) return undefined;
  rules.notes.add("unbracketed-list");
  return `[${numbers.join(",")}]`;
}

function groupToJson(
  elements: readonly Element[],
  node: Record<string, unknown>,
  types: ReadonlySet<string>,
  rules: ElementRules,
  depth: number,
): string {
  const numbered = elements.every(({ name }, index) => name === "item" || name === String(index));
  const isList = types.has("array") ? numbered || !types.has("object") : numbered && types.size === 0;
  if (!isList) return objectToJson(elements, node, rules, depth);
  const items = itemsOf(node, rules.root);
  if (!numbered) return `[${objectToJson(elements, items, rules, depth)}]`;
  return `[${elements.map(({ inner }) => elementToJson(inner, items, rules, depth + 1)).join(",")}]`;
}

/** Elements as the object that the schema describes. */
export function objectToJson(
  elements: readonly Element[],
  schema: unknown,
  rules: ElementRules,
  depth: number,
): string {
  const groups = new Map<string, string[]>();
  for (const { name, inner } of elements) {
    const group = groups.get(name);
    if (group === undefined) groups.set(name, [inner]);
    else group.push(inner);
  }
  const fields = [...groups].map(([name, inners]) => {
    const property = propertyIn(schema, name, rules.root);
    return `${JSON.stringify(name)}:${repeatedToJson(inners, property, rules, depth + 1)}`;
  });
  return `{${fields.join(",")}}`;
}

/** Several elements of one name become a list. A single one becomes a value. */
function repeatedToJson(inners: readonly string[], schema: unknown, rules: ElementRules, depth: number): string {
  if (inners.length === 1) return elementToJson(inners[0]!, schema, rules, depth);
  const items = itemsOf(schema, rules.root);
  return `[${inners.map((inner) => elementToJson(inner, items, rules, depth)).join(",")}]`;
}
