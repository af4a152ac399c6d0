/**
 * One tag per tool. Cline's parameters are child elements and stream; Suna's may also be attributes or
 * the body text, and are laid out when the closing tag came.
 */
import { codesOf, digits, letters } from "../codes.ts";
import type { TagRules, TaggedBody } from "../dialect.ts";
import {
  afterSpace,
  codeAt,
  createScanner,
  markerAt,
  skipSpace,
  startRecording,
  stopRecording,
  take,
  textUntil,
  unread,
  wordUntil,
  type Reading,
} from "../input.ts";
import type { TextTool } from "../tools.ts";
import { createNotes, tellCall, type Context, type Result } from "./context.ts";
import { objectToJson, type Element } from "./elements.ts";
import { layOut } from "./tag-layout.ts";
import { readNamedCall } from "./tagged-body.ts";
import { isPropertyAt } from "./tagged-opens.ts";
import { createTaggedMarks } from "./tagged-marks.ts";
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

const isTagCode = codesOf(`${letters}${digits}_-.:`, false);

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
  /** Set if the tag was never ended and a body stands in it: `<NAME`, the body, `/>`. */
  readonly body?: string;
}

/** Reads attributes up to a `>` that is not inside quotes. */
function* readAttributes(context: Context): Reading<Attributes | undefined> {
  let quote = -1;
  for (let length = 0; length < 65_536; length++) {
    const code = yield* codeAt(context.input, length);
    if (code < 0) return undefined;
    if (quote >= 0) quote = code === quote ? -1 : quote;
    else if (code === 0x22 || code === 0x27) quote = code;
    else if (code === 0x3c) return yield* readUnended(context);
    else if (code === 0x3e) {
      const whole = take(context.input, length + 1).slice(0, -1);
      const closed = whole.endsWith("/");
      const text = closed ? whole.slice(0, -1) : whole;
      return closed && startsYaml(text) ? { text: "", closed, body: text } : { text, closed };
    }
  }
  return undefined;
}

/** A `key:` on a line of its own is not an attribute. */
function startsYaml(text: string): boolean {
  const body = text.trimStart();
  return text.slice(0, text.length - body.length).includes("\n") && /^[^\s=]{1,128}:\s/.test(body);
}

const unended = createScanner(["\n/>"]);

function* readUnended(context: Context): Reading<Attributes | undefined> {
  let body = "";
  if ((yield* textUntil(context.input, unended, (text) => (body += text))) === undefined) return undefined;
  take(context.input, "\n/>".length);
  return { text: "", closed: true, body };
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
  const inner = attributes.body ?? (attributes.closed ? "" : yield* readInner(context, found.tag));
  const { tool } = found;
  const repairs = createNotes();
  if (attributes.body !== undefined) repairs.add("unclosed-tag");
  const json = inner === undefined ? undefined : layOut(rules, tool, attributes.text, inner, repairs);
  return inner !== undefined && json === undefined ? "none" : tellCall(context, { name: tool.name, repairs }, json);
}

/** Reads a call without its own tag: `NAME` alone on its line, and below it elements named after its parameters. */
export function* readBareName(context: Context, tool: TextTool, marker: string): Reading<boolean> {
  const { input } = context;
  if (!(yield* isPropertyAt(context, tool, yield* afterSpace(input, marker.length)))) return false;
  take(input, marker.length);
  const repairs = createNotes(["bare-name"]);
  const elements: Element[] = [];
  const rules = { prefix: "", entities: true, notes: repairs, root: tool.parameters };
  let whole = true;
  while (whole && (yield* isPropertyAt(context, tool, yield* afterSpace(input)))) {
    yield* skipSpace(input);
    take(input, 1);
    const name = (yield* wordUntil(input, ">"))!;
    take(input, 1);
    const close = `</${name}>`;
    let inner = "";
    whole = (yield* textUntil(input, createScanner([close]), (text) => (inner += text))) !== undefined;
    take(input, close.length);
    elements.push({ name, inner });
  }
  const at = yield* afterSpace(input);
  const end = yield* markerAt(input, [`</${tool.xml?.tag ?? tool.name}>`], at);
  if (end !== undefined) take(input, at + end.length);
  tellCall(
    context,
    { name: tool.name, repairs },
    whole ? objectToJson(elements, tool.parameters, rules, 0) : undefined,
  );
  return true;
}

/**
 * Reads up to the closing tag. A tag of the same name inside must be closed too, unless the answer ends
 * before that.
 */
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
