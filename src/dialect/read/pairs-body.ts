/** A name, then key and value elements in turn: GLM and its relatives. */
import type { Block, PairsBody, TaggedBody } from "../dialect.ts";
import { cutWhy, type CallWriter } from "../calls.ts";
import {
  afterSpace,
  codeAt,
  createScanner,
  markerAt,
  markers,
  skipMarker,
  skipSpace,
  take,
  textUntil,
  type Input,
  type Reading,
  type Scanner,
} from "../input.ts";
import { readLiteral } from "../literal.ts";
import { createArguments, type Arguments, type ValueSink } from "./arguments.ts";
import type { Context, Result } from "./context.ts";
import type { Header } from "./header.ts";
import { readNamedCall } from "./tagged-body.ts";
import { createTaggedMarks, type TaggedMarks } from "./tagged-marks.ts";
import { isProperty } from "./tagged-opens.ts";

export interface PairsMarks {
  readonly body: PairsBody;
  readonly nameEnds: Scanner;
  readonly keyEnds: Scanner;
  readonly valueEnds: Scanner;
  /** Ends the call: its own closing tag, or its block's. */
  readonly closes: readonly string[];
  readonly opens: readonly string[];
  /** What may follow the name or a value. */
  readonly afterValue: readonly string[];
  /** For the model that goes on with elements named after the parameters. */
  readonly tagged: TaggedMarks;
}

export function createPairsMarks(body: PairsBody, block: Block): PairsMarks {
  const own = body.call === undefined ? [] : [body.call.close];
  const closes = markers(own, body.call === undefined ? block.close : []);
  const opens = markers(body.call === undefined ? block.open : [body.call.open]);
  return {
    body,
    nameEnds: createScanner(["\n", "<", "{"], body.separator === undefined ? [] : [body.separator], closes),
    keyEnds: createScanner([body.key.close, body.value.open, "<"]),
    valueEnds: createScanner([body.value.close, body.key.open], closes),
    closes,
    opens,
    afterValue: markers([body.key.open], closes),
    tagged: createTaggedMarks(bareElements, block),
  };
}

/** No dialect has `NAME<key>value</key></NAME>`, but models write it. */
const bareElements: TaggedBody = {
  kind: "tagged",
  call: [],
  parameter: [],
  trim: "one-newline",
  tags: { call: "", parameter: "" },
};

export function* readPairsBody(context: Context, marks: PairsMarks): Reading<Result> {
  const { input } = context;
  const { body } = marks;
  if (body.call !== undefined) {
    if ((yield* skipMarker(input, [body.call.open])) === undefined) return "none";
    yield* skipSpace(input);
  }
  let name = "";
  const end = yield* textUntil(input, marks.nameEnds, (text) => (name += text.slice(0, 257)));
  if (end === undefined || name.length > 256 || !/^[^\s<>"'=]+[ \t]*$/.test(name)) return "none";
  yield* skipSpace(input);
  // Newer models of the family leave the separator out.
  if (body.separator !== undefined && (yield* skipMarker(input, [body.separator])) !== undefined)
    yield* skipSpace(input);
  const plain = name.trim().replace(/(?:\\n)+$/, "");
  const tool = context.tools.find(plain);
  if (tool !== undefined && (yield* isProperty(context, marks.tagged, tool))) {
    const header: Header = { name: plain, attributes: new Map(), selfClosing: false, length: 0, repair: "bare-name" };
    return yield* readNamedCall(context, marks.tagged, { open: `<${plain}>`, close: `</${plain}>` }, header);
  }
  if (!(yield* looksLikeCall(context, marks))) return "none";
  const writer = context.call({ name: plain, untyped: true });
  context.opened.push(writer);
  return yield* readPairs(context, marks, writer);
}

/** Prose after the opener is not a call. A key, the end of the call or JSON must follow the name. */
function* looksLikeCall(context: Context, marks: PairsMarks): Reading<boolean> {
  if ((yield* codeAt(context.input)) === 0x7b) return true;
  return (yield* markerAt(context.input, marks.afterValue)) !== undefined;
}

function* readPairs(context: Context, marks: PairsMarks, writer: CallWriter): Reading<Result> {
  const { input } = context;
  const args = createArguments(writer, { trim: marks.body.trim });
  if ((yield* codeAt(input)) === 0x7b) return yield* readJson(context, marks, writer);
  for (;;) {
    yield* skipGap(input, writer);
    if ((yield* codeAt(input)) < 0) return broken(writer, cutWhy);
    if ((yield* skipMarker(input, [marks.body.key.open])) !== undefined) {
      if (!(yield* readPair(context, marks, args, writer))) return broken(writer, "a parameter cannot be read");
      continue;
    }
    const close = yield* readClose(context, marks);
    if (close === undefined && (yield* markerAt(input, marks.opens)) === undefined)
      return broken(writer, "the parameters cannot be read");
    if (close === undefined) writer.repairs.add("implicit-close");
    args.finish();
    writer.close();
    return "ok";
  }
}

/** Takes the call's own closing tag. The block's closing tag is left to the block. */
function* readClose(context: Context, marks: PairsMarks): Reading<string | undefined> {
  return marks.body.call === undefined
    ? yield* markerAt(context.input, marks.closes)
    : yield* skipMarker(context.input, marks.closes);
}

function broken(writer: CallWriter, why: string): Result {
  writer.fail(why);
  return "broken";
}

function* readJson(context: Context, marks: PairsMarks, writer: CallWriter): Reading<Result> {
  writer.repairs.add("json-body");
  const outcome = yield* readLiteral(context.input, writer.write, {}, writer.repairs);
  yield* skipSpace(context.input);
  if (outcome !== "ok" || (yield* readClose(context, marks)) === undefined) {
    return broken(writer, "the arguments are not JSON");
  }
  writer.close();
  return "ok";
}

function* readPair(context: Context, marks: PairsMarks, args: Arguments, writer: CallWriter): Reading<boolean> {
  const { input } = context;
  const key = yield* readKey(context, marks);
  if (key === undefined) return false;
  yield* skipGap(input, writer);
  if ((yield* skipMarker(input, [marks.body.value.open])) === undefined) {
    if ((yield* codeAt(input)) < 0 || (yield* markerAt(input, marks.valueEnds.markers)) !== undefined) return false;
    writer.repairs.add("implicit-open");
  }
  const sink = args.begin(key);
  const done = yield* readValue(context, marks, sink, writer);
  if (done) sink.end();
  return done;
}

/** A key may hold anything but its own closing tag. */
function* readKey(context: Context, marks: PairsMarks): Reading<string | undefined> {
  let key = "";
  for (;;) {
    const end = yield* textUntil(context.input, marks.keyEnds, (text) => (key += text.slice(0, keyLimit + 1)));
    if (end === undefined || key.length > keyLimit) return undefined;
    if (end === marks.body.key.close) take(context.input, end.length);
    if (end !== "<") return key;
    key += take(context.input, 1);
  }
}

const keyLimit = 1024;

/** Skips white space between two tags. Some models write a line end as the two characters `\n`. */
function* afterGap(input: Input, offset: number): Reading<number> {
  let at = yield* afterSpace(input, offset);
  while ((yield* markerAt(input, escapedLine, at)) !== undefined) at = yield* afterSpace(input, at + 2);
  return at;
}

const escapedLine = ["\\n"];

function* skipGap(input: Input, writer: CallWriter): Reading<void> {
  if (take(input, yield* afterGap(input, 0)).includes("\\")) writer.repairs.add("escaped-newline");
}

function* readValue(context: Context, marks: PairsMarks, sink: ValueSink, writer: CallWriter): Reading<boolean> {
  const { input } = context;
  for (;;) {
    const marker = yield* textUntil(input, marks.valueEnds, sink.text);
    if (marker === undefined) return false;
    const explicit = marker === marks.body.value.close;
    const follow = explicit ? marks.afterValue : marker === marks.body.key.open ? undefined : marks.opens;
    if (follow === undefined ? yield* isKey(context, marks) : yield* isFollowedBy(context, marker.length, follow)) {
      if (explicit) take(input, marker.length);
      else writer.repairs.add("implicit-close");
      return true;
    }
    sink.text(take(input, marker.length));
  }
}

/** Whether a whole `<arg_key>…</arg_key>` stands here, with a value after it. */
function* isKey(context: Context, marks: PairsMarks): Reading<boolean> {
  const { key, value } = marks.body;
  for (let length = key.open.length; length < 256; length++) {
    const code = yield* codeAt(context.input, length);
    if (code < 0 || code === 10) return false;
    if (code !== 0x3c) continue;
    if ((yield* markerAt(context.input, [key.close], length)) === undefined) return false;
    const at = yield* afterGap(context.input, length + key.close.length);
    return (yield* markerAt(context.input, [value.open], at)) !== undefined;
  }
  return false;
}

function* isFollowedBy(context: Context, offset: number, legal: readonly string[]): Reading<boolean> {
  const at = yield* afterGap(context.input, offset);
  if ((yield* codeAt(context.input, at)) < 0) return true;
  return (yield* markerAt(context.input, legal, at)) !== undefined;
}
