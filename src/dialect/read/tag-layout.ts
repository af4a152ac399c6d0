/** What stood in and between a tool's tags, laid out as its parameters: by the tool's own mapping, or by its schema. */
import type { XmlParameter } from "../../spec/tool.ts";
import type { TagRules } from "../dialect.ts";
import type { TextTool } from "../tools.ts";
import type { Notes } from "../repairs.ts";
import { propertyIn } from "../schema.ts";
import { normalizeLiteral, propertyNames, textToJson, wantedOf } from "../values.ts";
import { contentOf, elementToJson, objectToJson, type Content } from "./elements.ts";
import { decodeEntities, parseAttributes } from "./header.ts";
import { yamlToJson } from "./yaml.ts";

/** Assigns attributes, elements and body text to the parameters they stand for. */
export function layOut(
  rules: TagRules,
  tool: TextTool,
  attributeText: string,
  inner: string,
  notes: Notes,
): string | undefined {
  if (inner.trimStart().startsWith("{")) {
    const json = normalizeLiteral(inner, notes);
    if (json !== undefined) {
      notes.add("json-body");
      return json;
    }
  }
  const isYaml = rules.body === "yaml" && !inner.trimStart().startsWith("<");
  if (isYaml) return yamlToJson(inner, tool.parameters, notes);
  if (rules.body === "yaml") notes.add("other-form");
  const mapping = tool.xml?.parameters;
  if (mapping !== undefined) return mapped(tool, mapping, parseAttributes(attributeText), inner, notes);
  return unmapped(rules, tool, parseAttributes(attributeText), inner, notes);
}

function mapped(
  tool: TextTool,
  mapping: readonly XmlParameter[],
  attributes: ReadonlyMap<string, string>,
  inner: string,
  notes: Notes,
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
        add(name, elementToJson(inners[0]!, propertyIn(tool.parameters, name, tool.parameters), rulesOf(tool, notes)));
      else if (inners.length > 1) add(name, JSON.stringify(inners));
      else if (parameter.required !== false && required(tool, name)) return undefined;
    } else if (content.text.trim() !== "") add(name, textToJson(oneNewline(content.text), type, notes));
  }
  return `{${fields.join(",")}}`;
}

function rulesOf(tool: TextTool, notes: Notes, entities = false) {
  return { prefix: "", entities, notes, root: tool.parameters };
}

function required(tool: TextTool, name: string): boolean {
  const list = tool.parameters?.["required"];
  return Array.isArray(list) && list.includes(name);
}

/** The attribute's name. Authors of mappings wrote `.`, the bare name and `@name`. */
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
  notes: Notes,
): string | undefined {
  const given = [...attributes].map(
    ([name, value]) => `${JSON.stringify(name)}:${textToJson(value, wantedOf(tool.parameters, name), notes)}`,
  );
  const content = contentOf(inner, "") ?? pick(inner, new Set(propertyNames(tool.parameters)));
  // If there are words between the elements, the whole is one value, or not a call: words are never left out.
  if (content.elements.length === 0 || content.text.trim() !== "") {
    const only = onlyText(tool);
    if (inner.trim() !== "" && only === undefined) return undefined;
    if (only !== undefined && inner.trim() !== "")
      given.push(
        `${JSON.stringify(only)}:${JSON.stringify(rules.entities === true ? decodeEntities(inner.trim()) : inner.trim())}`,
      );
    return `{${given.join(",")}}`;
  }
  const elements = content.elements.filter((one, index) => !isReplaced(content.elements, one.name, index, tool));
  if (elements.length < content.elements.length) notes.add("duplicate-argument");
  const body = objectToJson(elements, tool.parameters, rulesOf(tool, notes, rules.entities === true), 0);
  return given.length === 0 ? body : `{${[...given, ...(body === "{}" ? [] : [body.slice(1, -1)])].join(",")}}`;
}

/** Whether this is a declared parameter that is not a list and is given again further on. */
function isReplaced(elements: Content["elements"], name: string, index: number, tool: TextTool): boolean {
  if (wantedOf(tool.parameters, name) === undefined || isArray(tool, name)) return false;
  return elements.findLastIndex((other) => other.name === name) > index;
}

function isArray(tool: TextTool, name: string): boolean {
  const wanted = wantedOf(tool.parameters, name);
  return wanted !== undefined && wanted !== "any" && wanted.has("array");
}

/** The parameter that body text stands for: the only required one, or otherwise the only one that can be text. */
function onlyText(tool: TextTool): string | undefined {
  const list = tool.parameters?.["required"];
  const isText = (name: unknown): name is string => {
    const wanted = typeof name === "string" ? wantedOf(tool.parameters, name) : undefined;
    return wanted === "any" || wanted?.has("string") === true;
  };
  const names = Array.isArray(list) && list.length > 0 ? list : propertyNames(tool.parameters).filter(isText);
  return names.length === 1 ? names.find(isText) : undefined;
}
