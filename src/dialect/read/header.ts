/** The inside of an opening tag, looked at without consuming it: `=NAME>`, or attributes with either quote. */
import { codesOf, digits, letters } from "../codes.ts";
import { codeAt, codeNow, isSpace, markerAt, runLength, type Input, type Reading } from "../input.ts";
import type { Repair } from "../repairs.ts";

export interface Header {
  readonly name: string;
  readonly attributes: ReadonlyMap<string, string>;
  readonly selfClosing: boolean;
  /** How many characters it takes, its end included. */
  readonly length: number;
  /** Set if the value begins inside the tag, as in `<parameter=key=value`. */
  readonly value?: string;
  readonly repair?: Repair;
}

const headerLimit = 4096;
const nameKeys = ["name", "tool", "key"];
/** What an attribute may say beside the name; any other word for the name is a family's own. */
const otherKeys: ReadonlySet<string> = new Set(["type", "string", "index", "id", "class"]);

/** Undefined if there is no tag here that names anything. */
export function* headerAt(input: Input, offset: number, end: string): Reading<Header | undefined> {
  const first = yield* codeAt(input, offset);
  return first === 0x3d ? yield* equalsHeader(input, offset, end) : yield* attributeHeader(input, offset, end);
}

function* equalsHeader(input: Input, offset: number, end: string): Reading<Header | undefined> {
  for (let length = 1; length <= 512; length++) {
    const now = codeNow(input, offset + length);
    const code = now === -2 ? yield* codeAt(input, offset + length) : now;
    if (code < 0) return undefined;
    if (code === end.charCodeAt(0) && (yield* markerAt(input, [end], offset + length)) !== undefined) {
      return named(textAt(input, offset + 1, length - 1), length + end.length);
    }
    if (code === 10 || code === 0x3c) return unfinished(textAt(input, offset + 1, length - 1), length, code === 10);
  }
  return undefined;
}

/** Reads `>NAME</function>`, where the name stands in the place of the content. Undefined if it is not a name. */
export function* textHeaderAt(
  input: Input,
  offset: number,
  close: string,
  repair: Repair,
): Reading<Header | undefined> {
  if ((yield* codeAt(input, offset)) !== 0x3e) return undefined;
  const from = offset + 1 + (yield* runLength(input, isSpace, 16, offset + 1));
  const length = yield* runLength(input, isKeyCode, 129, from);
  const end = from + length + (yield* runLength(input, isSpace, 16, from + length));
  if (length === 0 || length > 128 || (yield* markerAt(input, [close], end)) === undefined) return undefined;
  return {
    name: textAt(input, from, length),
    attributes: new Map(),
    selfClosing: false,
    length: end + close.length - offset,
    repair,
  };
}

function textAt(input: Input, offset: number, length: number): string {
  return input.buffer.slice(input.at + offset, input.at + offset + length);
}

function named(text: string, length: number): Header | undefined {
  const selfClosing = text.endsWith("/");
  const name = unquote((selfClosing ? text.slice(0, -1) : text).trim());
  return name === "" ? undefined : { name, attributes: new Map(), selfClosing, length };
}

function unquote(text: string): string {
  const quoted = /^(["'])(.*)\1$/s.exec(text);
  return quoted ? quoted[2]! : text;
}

/** Reads a tag without its `>`. The line ends instead, or the value begins after a second `=`. */
function unfinished(text: string, length: number, line: boolean): Header | undefined {
  const split = text.indexOf("=");
  if (split > 0) {
    return {
      name: text.slice(0, split).trim(),
      value: text.slice(split + 1),
      attributes: new Map(),
      selfClosing: false,
      length,
      repair: "unclosed-tag",
    };
  }
  const name = text.trim();
  return !line || name === ""
    ? undefined
    : { name, attributes: new Map(), selfClosing: false, length, repair: "unclosed-tag" };
}

/** Where in `key="value"` the look ahead stands. */
type Spot = "between" | "key" | "after key" | "before value" | "value" | "quoted" | "other";

function* attributeHeader(input: Input, offset: number, end: string): Reading<Header | undefined> {
  let spot: Spot = "between";
  let quote = -1;
  for (let length = 0; length <= headerLimit; length++) {
    const now = codeNow(input, offset + length);
    const code = now === -2 ? yield* codeAt(input, offset + length) : now;
    if (code < 0) return undefined;
    if (
      spot !== "quoted" &&
      code === end.charCodeAt(0) &&
      (yield* markerAt(input, [end], offset + length)) !== undefined
    ) {
      const header = withAttributes(textAt(input, offset, length));
      return header === undefined ? undefined : { ...header, length: length + end.length };
    }
    if (spot === "before value" && (code === 0x22 || code === 0x27)) quote = code;
    spot = nextSpot(spot, code, quote);
    // It is prose after all, so nothing more has to be held back for it.
    if (spot === "other") return undefined;
  }
  return undefined;
}

function nextSpot(spot: Spot, code: number, quote: number): Spot {
  if (spot === "quoted") return code === quote ? "between" : "quoted";
  if (code === 0x3c) return "other";
  if (isSpace(code)) return spot === "key" ? "after key" : spot === "value" ? "between" : spot;
  if (code === 0x3d) return spot === "key" || spot === "after key" ? "before value" : "other";
  if (spot === "before value") return code === quote ? "quoted" : "value";
  if (spot === "value") return "value";
  if (code === 0x2f && spot === "between") return "between";
  return spot !== "after key" && isKeyCode(code) ? "key" : "other";
}

/** Characters of a key. Beyond ASCII there may be the odd character that a tokenizer leaves for a space. */
const isKeyCode = codesOf(`${letters}${digits}_:.-/`, true);

function withAttributes(text: string): Omit<Header, "length"> | undefined {
  const attributes = parseAttributes(text);
  const key =
    nameKeys.find((each) => attributes.has(each)) ?? [...attributes.keys()].find((each) => !otherKeys.has(each));
  const name = key === undefined ? undefined : attributes.get(key)?.trim();
  if (name === undefined || name === "") return undefined;
  const glued = /^\s/.test(text) ? {} : ({ repair: "glued-attribute" } as const);
  return { name, attributes, selfClosing: text.trimEnd().endsWith("/"), ...glued };
}

/** `key="value"`, `key='value'`, `key=value`, in any order. Anchored, one attribute at a time. */
export function parseAttributes(text: string): Map<string, string> {
  const attributes = new Map<string, string>();
  const one = /[^A-Za-z0-9_:.-]*([A-Za-z0-9_:.-]{1,128})\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'/]+))/y;
  for (let match = one.exec(text); match; match = one.exec(text)) {
    const key = match[1]!;
    if (!attributes.has(key)) attributes.set(key, decodeEntities(match[2] ?? match[3] ?? match[4]!));
  }
  return attributes;
}

const entities = new Map([
  ["amp", "&"],
  ["lt", "<"],
  ["gt", ">"],
  ["quot", '"'],
  ["apos", "'"],
]);

/** Replaces the five named references of XML and numeric ones, once. */
export function decodeEntities(text: string): string {
  if (!text.includes("&")) return text;
  return text.replace(/&(?:#x([0-9a-fA-F]{1,6})|#(\d{1,7})|(amp|lt|gt|quot|apos));/g, (whole, hex, decimal, name) => {
    if (name !== undefined) return entities.get(name) ?? whole;
    const code = hex === undefined ? Number(decimal) : Number.parseInt(hex, 16);
    return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : whole;
  });
}

/** Escapes what would end an attribute's value or be read as a reference. */
export function encodeAttribute(text: string): string {
  return text.replace(/[&"<>\n\r\t]/g, (char) => `&#${char.charCodeAt(0)};`);
}
