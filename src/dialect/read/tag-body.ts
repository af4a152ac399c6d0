/**
 * One tag per tool. Cline's parameters are child elements and stream; Suna's may also be attributes or
 * the body text, and are laid out when the closing tag came.
 */
import { cutWhy } from "../emit.ts";
import type { XmlParameter } from "../../spec/tool.ts";
import type { TagRules, TaggedBody } from "../dialect.ts";
import {
  codeAt,
  createScanner,
  startRecording,
  stopRecording,
  take,
  textUntil,
  unread,
  type Reading,
} from "../input.ts";
import type { TextTool } from "../tools.ts";
import { normalizeLiteral, propertyOf, textToJson, wantedOf } from "../values.ts";
import type { Context, Result } from "./context.ts";
import { contentOf, elementToJson, objectToJson, type Content } from "./elements.ts";
import { decodeEntities, parseAttributes } from "./header.ts";
import { createTaggedMarks, readNamedCall } from "./tagged-body.ts";
import { yamlToJson } from "./yaml.ts";
import { isObject } from "../../base/json.ts";

/** The tool whose opening tag stands at the cursor, and how long `<name` is. */
export function* toolAt(context: Context): Reading<{ readonly tool: TextTool; readonly tag: string } | undefined> {
  let length = 1;
  while (length < 130 && isTagCode(yield* codeAt(context.input, length))) length++;
  const tag = context.input.buffer.slice(context.input.at + 1, context.input.at + length);
  const next = yield* codeAt(context.input, length);
  if (next !== 0x3e && next !== 0x2f && next !== 32 && next !== 10) return undefined;
  const tool = context.tools.byTag(tag);
  return tool === undefined ? undefined : { tool, tag };
}

function isTagCode(code: number): boolean {
  return (
    (code >= 0x30 && code <= 0x39) ||
    (code >= 0x41 && code <= 0x5a) ||
    (code >= 0x61 && code <= 0x7a) ||
    code === 0x5f ||
    code === 0x2d ||
    code === 0x2e ||
    code === 0x3a
  );
}

export function* readTag(
  context: Context,
  rules: TagRules,
  found: { readonly tool: TextTool; readonly tag: string },
): Reading<Result> {
  const { input } = context;
  startRecording(input);
  take(input, found.tag.length + 1);
  const attributes = yield* readAttributes(context);
  let result: Result = "none";
  if (attributes !== undefined) {
    const streams =
      rules.body === "elements" && rules.trim === "one-newline" && found.tool.xml?.parameters === undefined;
    result =
      streams && !attributes.closed && attributes.text.trim() === ""
        ? yield* readStreamed(context, found)
        : yield* readBuffered(context, rules, found, attributes);
  }
  const raw = stopRecording(input);
  if (result === "none") context.emit.text(raw);
  return result;
}

interface Attributes {
  readonly text: string;
  readonly closed: boolean;
}

/** Up to the `>` that is not inside quotes. */
function* readAttributes(context: Context): Reading<Attributes | undefined> {
  let quote = -1;
  for (let length = 0; length < 65_536; length++) {
    const code = yield* codeAt(context.input, length);
    if (code < 0) return undefined;
    if (quote >= 0) quote = code === quote ? -1 : quote;
    else if (code === 0x22 || code === 0x27) quote = code;
    else if (code === 0x3e) {
      const text = take(context.input, length + 1).slice(0, -1);
      return { text: text.endsWith("/") ? text.slice(0, -1) : text, closed: text.endsWith("/") };
    }
  }
  return undefined;
}

function* readStreamed(
  context: Context,
  { tool, tag }: { readonly tool: TextTool; readonly tag: string },
): Reading<Result> {
  const properties = tool.parameters?.["properties"];
  const pair = { open: `<${tag}>`, close: `</${tag}>` };
  const body: TaggedBody = {
    kind: "tagged",
    call: [pair],
    parameter: (isObject(properties) ? Object.keys(properties) : []).map((name) => ({
      open: `<${name}>`,
      close: `</${name}>`,
      name,
    })),
    trim: "one-newline",
    tags: { call: "", parameter: "" },
  };
  return yield* readNamedCall(context, createTaggedMarks(body, undefined), pair, {
    name: tool.name,
    attributes: new Map(),
    selfClosing: false,
    length: 0,
  });
}

function* readBuffered(
  context: Context,
  rules: TagRules,
  found: { readonly tool: TextTool; readonly tag: string },
  attributes: Attributes,
): Reading<Result> {
  const inner = attributes.closed ? "" : yield* readInner(context, found.tag);
  const { tool } = found;
  const repairs = new Set<string>();
  const json = inner === undefined ? undefined : layOut(context, rules, tool, attributes.text, inner, repairs);
  if (inner !== undefined && json === undefined) return "none";
  const writer = context.call({ name: tool.name, untyped: true, repairs });
  context.opened.push(writer);
  if (json === undefined) {
    writer.fail(cutWhy);
    return "broken";
  }
  writer.write(json);
  writer.close();
  return "ok";
}

/** Up to the closing tag; a tag of the same name inside must be closed as well, unless the answer ends before that. */
function* readInner(context: Context, tag: string): Reading<string | undefined> {
  const { input } = context;
  const close = `</${tag}>`;
  const scanner = createScanner([close, `</ ${tag}>`, `<${tag}>`]);
  let inner = "";
  let depth = 0;
  let candidate = -1;
  for (;;) {
    const marker = yield* textUntil(input, scanner, (text) => (inner += text));
    if (marker === undefined) break;
    const piece = take(input, marker.length);
    if (marker === `<${tag}>`) depth++;
    else if (depth-- === 0) return inner;
    else candidate = inner.length;
    inner += piece;
  }
  if (candidate < 0) return undefined;
  const rest = inner.slice(candidate + close.length);
  if (input.recorded !== undefined) input.recorded = input.recorded.slice(0, input.recorded.length - rest.length);
  unread(input, rest);
  return inner.slice(0, candidate);
}

/** Attributes, elements and body text to the parameters they stand for. */
function layOut(
  context: Context,
  rules: TagRules,
  tool: TextTool,
  attributeText: string,
  inner: string,
  notes: Set<string>,
): string | undefined {
  if (inner.trimStart().startsWith("{")) {
    const json = normalizeLiteral(inner, notes);
    if (json !== undefined) {
      notes.add("json-body");
      return json;
    }
  }
  if (rules.body === "yaml") return yamlToJson(inner, tool.parameters, notes);
  const mapping = tool.xml?.parameters;
  if (mapping !== undefined) return mapped(tool, mapping, parseAttributes(attributeText), inner, notes);
  return unmapped(rules, tool, parseAttributes(attributeText), inner, notes);
}

function mapped(
  tool: TextTool,
  mapping: readonly XmlParameter[],
  attributes: ReadonlyMap<string, string>,
  inner: string,
  notes: Set<string>,
): string | undefined {
  const wanted = new Set(mapping.filter(({ node }) => node === "element").map(elementName));
  const content = pick(inner, wanted);
  const fields: string[] = [];
  const add = (name: string, json: string) => fields.push(`${JSON.stringify(name)}:${json}`);
  for (const parameter of mapping) {
    const { name, node } = parameter;
    const type = wantedOf(tool.parameters, name);
    if (node === "attribute") {
      const value = attributes.get(attributeName(parameter));
      if (value !== undefined) add(name, textToJson(value, type, notes));
      else if (parameter.required !== false && required(tool, name)) return undefined;
    } else if (node === "element") {
      const found = content.elements.filter((element) => element.name === elementName(parameter));
      const inners = found.map((element) => oneNewline(element.inner));
      if (inners.length === 1)
        add(name, elementToJson(inners[0]!, propertyOf(tool.parameters, name), rulesOf(tool, notes)));
      else if (inners.length > 1) add(name, JSON.stringify(inners));
      else if (parameter.required !== false && required(tool, name)) return undefined;
    } else if (content.text.trim() !== "") add(name, textToJson(oneNewline(content.text), type, notes));
  }
  return `{${fields.join(",")}}`;
}

function rulesOf(tool: TextTool, notes: Set<string>, entities = false) {
  return { prefix: "", entities, notes, root: tool.parameters };
}

function required(tool: TextTool, name: string): boolean {
  const list = tool.parameters?.["required"];
  return Array.isArray(list) && list.includes(name);
}

/** Authors wrote `.`, the bare name and `@name`. */
function attributeName({ name, path }: XmlParameter): string {
  return path === undefined || path === "." || path === "" ? name : path.replace(/^@/, "");
}

function elementName({ name, path }: XmlParameter): string {
  return path === undefined || path === "." || path === "" ? name : (path.split("/").at(-1) ?? name);
}

function oneNewline(text: string): string {
  return text.replace(/^\n/, "").replace(/\n$/, "");
}

/** Only the elements that are asked for count as such; every other tag is text. A closing tag inside a value is data unless markup follows it. */
function pick(inner: string, names: ReadonlySet<string>): Content {
  const elements: { name: string; inner: string }[] = [];
  let text = "";
  let rest = inner;
  for (;;) {
    const open = [...names]
      .map((name) => ({ name, at: rest.indexOf(`<${name}>`) }))
      .filter(({ at }) => at >= 0)
      .toSorted((a, b) => a.at - b.at)[0];
    if (open === undefined) return { elements, text: text + rest };
    const from = open.at + open.name.length + 2;
    const close = closeFor(rest, open.name, from, names);
    if (close < 0) return { elements, text: text + rest };
    text += rest.slice(0, open.at);
    elements.push({ name: open.name, inner: rest.slice(from, close) });
    rest = rest.slice(close + open.name.length + 3);
  }
}

function closeFor(text: string, name: string, from: number, names: ReadonlySet<string>): number {
  const close = `</${name}>`;
  for (let at = text.indexOf(close, from); at >= 0; at = text.indexOf(close, at + 1)) {
    const after = text.slice(at + close.length, at + close.length + 256).trimStart();
    if (after === "" || [...names].some((other) => after.startsWith(`<${other}>`))) return at;
  }
  return text.lastIndexOf(close) >= from ? text.lastIndexOf(close) : -1;
}

function unmapped(
  rules: TagRules,
  tool: TextTool,
  attributes: ReadonlyMap<string, string>,
  inner: string,
  notes: Set<string>,
): string | undefined {
  const properties = tool.parameters?.["properties"];
  const names = isObject(properties) ? Object.keys(properties) : [];
  const given = [...attributes].map(
    ([name, value]) => `${JSON.stringify(name)}:${textToJson(value, wantedOf(tool.parameters, name), notes)}`,
  );
  const strings = new Set(names.filter((name) => wantedOf(tool.parameters, name) !== undefined));
  const content = contentOf(inner, "") ?? pick(inner, strings);
  if (content.elements.length === 0 || (content.text.trim() !== "" && onlyText(tool) !== undefined)) {
    const only = onlyText(tool);
    if (inner.trim() !== "" && only === undefined) return undefined;
    if (only !== undefined && inner.trim() !== "")
      given.push(
        `${JSON.stringify(only)}:${JSON.stringify(rules.entities === true ? decodeEntities(inner.trim()) : inner.trim())}`,
      );
    return `{${given.join(",")}}`;
  }
  const repeated = content.elements.some(
    (one, index) =>
      content.elements.findIndex((other) => other.name === one.name) < index &&
      wantedOf(tool.parameters, one.name) !== undefined &&
      !isArray(tool, one.name),
  );
  if (repeated) return undefined;
  const body = objectToJson(content.elements, properties, rulesOf(tool, notes, rules.entities === true), 0);
  return given.length === 0 ? body : `{${[...given, ...(body === "{}" ? [] : [body.slice(1, -1)])].join(",")}}`;
}

function isArray(tool: TextTool, name: string): boolean {
  const wanted = wantedOf(tool.parameters, name);
  return wanted !== undefined && wanted !== "any" && wanted.has("array");
}

/** The parameter that body text stands for: the only one that must be given, and a string. */
function onlyText(tool: TextTool): string | undefined {
  const list = tool.parameters?.["required"];
  const properties = tool.parameters?.["properties"];
  const names = Array.isArray(list) && list.length > 0 ? list : isObject(properties) ? Object.keys(properties) : [];
  const [only] = names;
  if (names.length !== 1 || typeof only !== "string") return undefined;
  const wanted = wantedOf(tool.parameters, only);
  return wanted === "any" || wanted?.has("string") === true ? only : undefined;
}
