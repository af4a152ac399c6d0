/**
 * Calls with one element per parameter and raw text between the tags. A closing tag counts only if
 * something legal follows it, a call quoted inside a value stays part of the value, and a parameter
 * that was never closed ends where the next declared one begins.
 */
import type { Block, TaggedBody, TagPair } from "../dialect.ts";
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
  type Reading,
  type Scanner,
} from "../input.ts";
import { readLiteral } from "../literal.ts";
import { createArguments, type Arguments, type Told, type ValueSink } from "./arguments.ts";
import type { Context, Result } from "./context.ts";
import { headerAt, type Header } from "./header.ts";

/** The markers of one dialect, ready to be looked for. */
export interface TaggedMarks {
  readonly body: TaggedBody;
  readonly end: string;
  readonly callOpens: readonly string[];
  readonly callCloses: readonly string[];
  readonly parameterOpens: readonly string[];
  readonly blockOpens: readonly string[];
  readonly blockCloses: readonly string[];
  /** Parameters whose tag is their name. */
  readonly fixed: ReadonlyMap<string, string>;
  readonly inValue: Scanner;
  readonly afterValue: readonly string[];
  readonly afterCall: readonly string[];
}

export function createTaggedMarks(body: TaggedBody, block: Block | undefined): TaggedMarks {
  const callOpens = markers(body.call.map((pair) => pair.open));
  const callCloses = markers(body.call.map((pair) => pair.close));
  const parameterOpens = markers(body.parameter.map((pair) => pair.open));
  const parameterCloses = markers(body.parameter.map((pair) => pair.close));
  const blockOpens = markers(block?.open ?? []);
  const blockCloses = markers(block?.close ?? []);
  return {
    body,
    end: body.end ?? ">",
    callOpens,
    callCloses,
    parameterOpens,
    blockOpens,
    blockCloses,
    fixed: new Map(body.parameter.flatMap((pair) => (pair.name === undefined ? [] : [[pair.open, pair.name]]))),
    inValue: createScanner(parameterCloses, callCloses, blockCloses, parameterOpens, callOpens),
    afterValue: markers(
      parameterOpens,
      callCloses,
      blockCloses,
      block === undefined || block.open.length === 0 ? [] : callOpens,
    ),
    afterCall: markers(blockCloses, callOpens, blockOpens, block?.between ?? []),
  };
}

/** What ended a parameter or the call. */
type Ending = "closed" | "implicit" | "cut" | "bad";

export function* readTaggedBody(context: Context, marks: TaggedMarks): Reading<Result> {
  const { input } = context;
  const open = yield* markerAt(input, marks.callOpens);
  const header = open === undefined ? undefined : yield* headerAt(input, open.length, marks.end);
  if (open === undefined || header === undefined) return "none";
  const pair = marks.body.call.find((candidate) => candidate.open === open)!;
  take(input, open.length + header.length);
  return yield* readNamedCall(context, marks, pair, header);
}

/** The rest of a call whose opening tag was read. */
export function* readNamedCall(context: Context, marks: TaggedMarks, pair: TagPair, header: Header): Reading<Result> {
  const writer = context.call({ name: plainName(context, header.name), untyped: true });
  context.opened.push(writer);
  if (header.repair !== undefined) writer.repairs.add(header.repair);
  const ending = header.selfClosing ? "closed" : yield* readParameters(context, marks, pair, writer);
  if (header.selfClosing) writer.write("{}");
  if (ending === "implicit") writer.repairs.add("implicit-close");
  if (ending === "closed" || ending === "implicit") writer.close();
  else writer.fail(ending === "cut" ? cutWhy : "the parameters cannot be read");
  return ending === "closed" || ending === "implicit" ? "ok" : "broken";
}

/** `a.a` is how some models write a tool `a` that has no namespace. */
function plainName(context: Context, name: string): string {
  if (context.tools.find(name) !== undefined) return name;
  const half = name.slice(0, (name.length - 1) / 2);
  return name === `${half}.${half}` && context.tools.find(half) !== undefined ? half : name;
}

function* readParameters(context: Context, marks: TaggedMarks, pair: TagPair, writer: CallWriter): Reading<Ending> {
  const { input } = context;
  const args = createArguments(writer, { trim: marks.body.trim, undeclared: marks.body.undeclared });
  for (let count = 0; ; count++) {
    yield* skipSpace(input);
    const code = yield* codeAt(input);
    if (code < 0) return "cut";
    if (count === 0 && code === 0x7b) return yield* readJson(context, pair, writer);
    const open = yield* markerAt(input, marks.parameterOpens);
    const header = open === undefined ? undefined : yield* parameterAt(context, marks, open);
    if (open !== undefined && header !== undefined) {
      take(input, open.length + header.length);
      const ending = yield* readParameter(context, marks, { open, header, args, writer });
      if (ending === "cut" || ending === "bad") return ending;
      continue;
    }
    const ending = yield* readEnd(context, marks, pair);
    if (ending === undefined) return "bad";
    if (args.finish()) return ending;
    writer.fail("a parameter was given twice");
    return "bad";
  }
}

function* parameterAt(context: Context, marks: TaggedMarks, open: string): Reading<Header | undefined> {
  const name = marks.fixed.get(open);
  if (name !== undefined) return { name, attributes: new Map(), selfClosing: false, length: 0 };
  return yield* headerAt(context.input, open.length, marks.end);
}

/** The call's own closing tag; or what can only come after it. */
function* readEnd(context: Context, marks: TaggedMarks, pair: TagPair): Reading<Ending | undefined> {
  if ((yield* skipMarker(context.input, [pair.close])) !== undefined) return "closed";
  if ((yield* skipMarker(context.input, marks.callCloses)) !== undefined) return "implicit";
  return (yield* markerAt(context.input, marks.afterCall)) === undefined ? undefined : "implicit";
}

/** The arguments as one JSON object where the parameters should be. */
function* readJson(context: Context, pair: TagPair, writer: CallWriter): Reading<Ending> {
  writer.repairs.add("json-body");
  const outcome = yield* readLiteral(context.input, writer.write, {}, writer.repairs);
  if (outcome !== "ok") return outcome;
  yield* skipSpace(context.input);
  if ((yield* skipMarker(context.input, [pair.close])) !== undefined) return "closed";
  return (yield* codeAt(context.input)) < 0 ? "cut" : "bad";
}

interface Parameter {
  readonly open: string;
  readonly header: Header;
  readonly args: Arguments;
  readonly writer: CallWriter;
}

function* readParameter(context: Context, marks: TaggedMarks, parameter: Parameter): Reading<Ending> {
  const { header, args, writer } = parameter;
  if (header.repair !== undefined) writer.repairs.add(header.repair);
  const sink = args.begin(header.name, toldBy(header));
  if (header.value !== undefined) sink.text(header.value);
  if (header.selfClosing) {
    sink.end();
    return "closed";
  }
  const close = marks.body.parameter.find((pair) => pair.open === parameter.open)!.close;
  const ending = yield* readValue(context, marks, { sink, close, args });
  if (ending === "closed" || ending === "implicit") sink.end();
  if (ending === "implicit") writer.repairs.add("implicit-close");
  return ending;
}

/** DSML says `string="true"`, Kimi K3 `type="string"`, ours `type="text"` or `type="json"`. */
function toldBy(header: Header): Told {
  const string = header.attributes.get("string");
  if (string !== undefined) return string === "true" ? "text" : "json";
  const type = header.attributes.get("type");
  if (type === undefined) return undefined;
  return type === "string" || type === "text" ? "text" : "json";
}

interface OpenValue {
  readonly sink: ValueSink;
  readonly close: string;
  readonly args: Arguments;
}

function* readValue(context: Context, marks: TaggedMarks, value: OpenValue): Reading<Ending> {
  const { input } = context;
  if (marks.body.cdata === true && (yield* readCdata(context, value.sink))) {
    yield* skipSpace(input);
    return (yield* skipMarker(input, [value.close])) === undefined ? "bad" : "closed";
  }
  // Depth of calls quoted inside the value, and of parameters inside those.
  let quoted = 0;
  let inner = 0;
  // Where another call was met, only the value's own closing tag is proof that it was quoted.
  let met = false;
  for (;;) {
    const marker = yield* textUntil(input, marks.inValue, value.sink.text);
    if (marker === undefined) return "cut";
    if (marker === value.close) {
      if (quoted > 0 && inner > 0) inner--;
      else if (yield* isFollowedBy(context, marker.length, marks.afterValue)) {
        take(input, marker.length);
        return "closed";
      }
    } else if (marks.callOpens.includes(marker)) {
      if ((yield* headerAt(input, marker.length, marks.end)) !== undefined) {
        quoted++;
        met = true;
      }
    } else if (marks.parameterOpens.includes(marker)) {
      if (quoted > 0) inner++;
      else if (yield* startsNext(context, marks, value.args, marker)) return "implicit";
    } else if (quoted > 0) {
      if (marks.callCloses.includes(marker)) {
        quoted--;
        inner = 0;
      }
    } else if (yield* endsCall(context, marks, marker)) return met ? "bad" : "implicit";
    value.sink.text(take(input, marker.length));
  }
}

function* endsCall(context: Context, marks: TaggedMarks, marker: string): Reading<boolean> {
  if (marks.callCloses.includes(marker)) return yield* isFollowedBy(context, marker.length, marks.afterCall);
  if (!marks.blockCloses.includes(marker)) return false;
  return yield* isFollowedBy(context, marker.length, marks.blockOpens);
}

/** Nothing but white space, then one of the markers or the end of the answer. */
function* isFollowedBy(context: Context, offset: number, legal: readonly string[]): Reading<boolean> {
  const at = yield* afterSpace(context.input, offset);
  if ((yield* codeAt(context.input, at)) < 0) return true;
  return (yield* markerAt(context.input, legal, at)) !== undefined;
}

/** A parameter that is declared and was not given yet: the one before it was never closed. */
function* startsNext(context: Context, marks: TaggedMarks, args: Arguments, marker: string): Reading<boolean> {
  const header = yield* parameterAt(context, marks, marker);
  return header !== undefined && header.repair === undefined && !args.has(header.name) && args.mayTake(header.name);
}

const cdataOpen = ["<![CDATA["];
const cdataEnd = createScanner(["]]>"]);

/** `<![CDATA[…]]>`, several in a row where the value holds `]]>` itself. */
function* readCdata(context: Context, sink: ValueSink): Reading<boolean> {
  const { input } = context;
  const at = yield* afterSpace(input);
  if ((yield* markerAt(input, cdataOpen, at)) === undefined) return false;
  take(input, at);
  while ((yield* skipMarker(input, cdataOpen)) !== undefined) {
    if ((yield* textUntil(input, cdataEnd, sink.text)) === undefined) return true;
    take(input, 3);
  }
  return true;
}
