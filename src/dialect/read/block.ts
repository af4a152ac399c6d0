/**
 * Reads one block from its opener to its end, whatever bodies it holds. What turns out not to be a
 * call becomes text again.
 */
import type { Block, Body, TagPair } from "../dialect.ts";
import {
  afterSpace,
  afterSpaceMarkers,
  codeAt,
  createScanner,
  left,
  markerAt,
  markers,
  skipMarker,
  skipSpace,
  startRecording,
  stopRecording,
  take,
  textUntil,
  type Reading,
} from "../input.ts";
import type { Context, Result } from "./context.ts";
import { readJsonBody } from "./json-body.ts";
import { readActionBody, readCodeblockBody } from "./line-body.ts";
import { createNamedMarks, readNamedBody } from "./named-body.ts";
import { createPairsMarks, readPairsBody } from "./pairs-body.ts";
import { nameAt, readPythonBody, readQuotedBody } from "./python-body.ts";
import { readNestedBody, readTaggedBody } from "./tagged-body.ts";
import { createTaggedMarks } from "./tagged-marks.ts";

/** A block with its markers sorted once. */
export interface BlockReader {
  readonly block: Block;
  readonly opens: readonly string[];
  readonly closes: readonly string[];
  readonly between: readonly string[];
  /** `bare`: the call has no block around it, and the cursor is at the call itself. */
  read(context: Context, opener: string, bare?: boolean): Reading<Result>;
  /** Reads the inside of the block, without an opener. The caller does the recording. */
  readBody(context: Context): Reading<Result>;
}

export function createBlockReader(
  block: Block,
  stray: readonly string[],
  thoughtEnds: readonly string[] = [],
): BlockReader {
  const opens = markers(block.open);
  const closes = afterSpaceMarkers(block.close);
  const bodies = block.bodies.map((body) => createBodyReader(body, block));
  const skipped = markers(block.between ?? [], stray);
  const junkEnd = createScanner(closes, opens);
  // Only if each call has its own opener can text before it be told from a call.
  const callOpens = block.bodies.every(opensCalls) ? markers(block.bodies.flatMap(callOpensOf)) : [];

  function* readOne(context: Context): Reading<Result> {
    for (const [index, body] of bodies.entries()) {
      if (!(yield* body.starts(context))) continue;
      context.last = body.body.kind;
      const before = context.opened.length;
      const result = yield* body.read(context);
      if (index >= (block.own ?? bodies.length))
        for (const call of context.opened.slice(before)) call.repairs.add("other-form");
      return result;
    }
    return "none";
  }

  /** Reads what may follow a call inside the block. True means that another call may come. */
  function* goesOn(context: Context): Reading<boolean | "broken"> {
    const { input } = context;
    const at = yield* afterSpace(input);
    if (closes.length === 0) {
      if (block.between === undefined || (yield* markerAt(input, skipped, at)) === undefined) return false;
      take(input, at);
      return true;
    }
    take(input, at);
    if ((yield* skipMarker(input, closes)) !== undefined) return false;
    if ((yield* codeAt(input)) < 0 || (yield* endsInCloser(context, closes))) return implicit(context);
    if ((yield* skipMarker(input, opens)) !== undefined) return !implicit(context);
    if ((yield* markerAt(input, skipped)) !== undefined) return true;
    for (const body of bodies) if (isMarked(body.body) && (yield* body.starts(context))) return true;
    return (yield* skipJunk(context)) ? false : "broken";
  }

  /** Skips text between the last call and the closer. Nothing may follow JSON; elements are complete by themselves. */
  function* skipJunk(context: Context): Reading<boolean> {
    const { input } = context;
    if (context.last !== "tagged") return false;
    let junk = "";
    const marker = yield* textUntil(input, junkEnd, (text) => (junk += text));
    if (marker !== undefined && closes.includes(marker)) take(input, marker.length);
    else context.emit.text(junk);
    return true;
  }

  function* read(context: Context): Reading<Result> {
    const { input } = context;
    for (;;) {
      yield* skipSpace(input);
      for (let mark = yield* skipMarker(input, skipped); mark !== undefined; mark = yield* skipMarker(input, skipped)) {
        yield* skipSpace(input);
        // At the block's own end it is a mistake of the model. Anywhere else, the thoughts around the calls end here.
        const atEnd = (yield* codeAt(input)) < 0 || (yield* markerAt(input, closes)) !== undefined;
        if (thoughtEnds.includes(mark) && !atEnd) context.emit.draft();
      }
      if (context.opened.length > 0 && ((yield* skipMarker(input, closes)) !== undefined || (yield* codeAt(input)) < 0))
        return "ok";
      if (callOpens.length > 0) take(input, yield* noiseLength(context, callOpens, closes));
      const result = yield* readOne(context);
      if (result !== "ok") return result === "none" && context.opened.length > 0 ? "broken" : result;
      const more = yield* goesOn(context);
      if (more === "broken") return "broken";
      if (!more) return "ok";
    }
  }

  return {
    block,
    opens,
    closes,
    between: skipped,
    readBody: read,
    *read(context, opener, bare = false) {
      const { input } = context;
      startRecording(input);
      if (!bare) take(input, opener.length);
      const result = bare ? yield* readOne(context) : yield* read(context);
      const raw = stopRecording(input);
      if (result === "none") context.emit.text(raw);
      if (result === "broken" && !isCut(context)) {
        for (const writer of context.opened) writer.fail("its block is broken");
      }
      if (closes.length > 0 && (result === "broken" || result === "spoiled"))
        yield* keepRest(context, junkEnd.markers, closes);
      return result;
    },
  };
}

/** Whether something else than a name opens the body. After a call, a name alone could be prose. */
function isMarked(body: Body): boolean {
  return body.kind === "pairs" ? body.call !== undefined : body.kind !== "named" || body.before !== undefined;
}

function callOpensOf(body: Body): readonly string[] {
  if (body.kind === "tagged") return body.call.map(({ open }) => open);
  if (body.kind === "named") return body.before ?? [];
  return body.kind === "pairs" && body.call !== undefined ? [body.call.open] : [];
}

function opensCalls(body: Body): boolean {
  return callOpensOf(body).length > 0;
}

const noiseLimit = 256;

/** How much text a model put between the opener of the section and its first call. */
function* noiseLength(context: Context, opens: readonly string[], closes: readonly string[]): Reading<number> {
  for (let length = 0; length <= noiseLimit; length++) {
    if ((yield* markerAt(context.input, opens, length)) !== undefined) return length;
    if ((yield* codeAt(context.input, length)) < 0 || (yield* markerAt(context.input, closes, length)) !== undefined)
      return 0;
  }
  return 0;
}

const restLimit = 4096;

/** What is left of a broken call up to the end of its block is not meant for the reader, so it stays with the call. */
function* keepRest(context: Context, ends: readonly string[], closes: readonly string[]): Reading<void> {
  const { input } = context;
  for (let length = 0; length <= restLimit; length++) {
    const end = yield* markerAt(input, ends, length);
    if (end !== undefined) {
      if (length > 0) context.opened.at(-1)?.rest(take(input, length));
      yield* skipMarker(input, closes);
      return;
    }
    if ((yield* codeAt(input, length)) < 0) return;
  }
}

/** The answer ended inside a call that has its own tags. The calls before it were closed by theirs. */
function isCut({ input, last }: Context): boolean {
  return input.ended && left(input) === 0 && (last === "tagged" || last === "named" || last === "pairs");
}

/** The closer is missing. Returns false, for "nothing more". */
function implicit(context: Context): false {
  context.opened.at(-1)?.repairs.add("implicit-close");
  return false;
}

/** The answer ends in the middle of the closer. */
function* endsInCloser(context: Context, closes: readonly string[]): Reading<boolean> {
  const { input } = context;
  const longest = closes[0]?.length ?? 0;
  if (input.buffer.length - input.at >= longest && (yield* codeAt(input, longest)) >= 0) return false;
  yield* codeAt(input, longest);
  const rest = input.buffer.slice(input.at);
  if (!input.ended || !closes.some((close) => close.startsWith(rest))) return false;
  take(input, rest.length);
  return true;
}

/** One kind of body: whether it can begin at the cursor, and how it is read. */
interface BodyReader {
  readonly body: Body;
  starts(context: Context): Reading<boolean>;
  read(context: Context): Reading<Result>;
}

function createBodyReader(body: Body, block: Block): BodyReader {
  switch (body.kind) {
    case "json":
      return { body, starts: startsJson, read: (context) => readJsonBody(context, body) };
    case "named": {
      const marks = createNamedMarks(body, block);
      const starts = body.before === undefined ? startsName : startsWith(body.before);
      return { body, starts, read: (context) => readNamedBody(context, marks) };
    }
    case "tagged": {
      const marks = createTaggedMarks(body, block);
      const read = body.nested === undefined ? readTaggedBody : readNestedBody;
      return { body, starts: startsWith(marks.starts), read: (context) => read(context, marks) };
    }
    case "pairs": {
      const marks = createPairsMarks(body, block);
      const starts = body.call === undefined ? startsName : startsWith([body.call.open]);
      return { body, starts, read: (context) => readPairsBody(context, marks) };
    }
    case "python":
      return { body, starts: startsPython, read: (context) => readPythonBody(context, body) };
    case "quoted":
      return { body, starts: startsAnything, read: (context) => readQuotedBody(context, body) };
    case "action":
      return { body, starts: startsAnything, read: (context) => readActionBody(context, body) };
    case "codeblock":
      return { body, starts: startsAnything, read: readCodeblockBody };
  }
}

function startsWith(opens: readonly string[]): BodyReader["starts"] {
  const list = markers(opens);
  return function* (context) {
    return (yield* markerAt(context.input, list)) !== undefined;
  };
}

function* startsAnything(context: Context): Reading<boolean> {
  return (yield* codeAt(context.input)) >= 0;
}

function* startsJson(context: Context): Reading<boolean> {
  const code = yield* codeAt(context.input);
  if (code === 0x7b) return true;
  if (code === 0x2f) return (yield* markerAt(context.input, comments)) !== undefined;
  if (code !== 0x5b) return false;
  return (yield* codeAt(context.input, yield* afterSpace(context.input, 1))) === 0x7b;
}

const comments = ["//", "/*"];

function* startsName(context: Context): Reading<boolean> {
  const code = yield* codeAt(context.input);
  return code > 0x20 && code !== 0x3c && code !== 0x7b && code !== 0x5b;
}

function* startsPython(context: Context): Reading<boolean> {
  const { input } = context;
  const code = yield* codeAt(input);
  const offset = code === 0x5b ? yield* afterSpace(input, 1) : 0;
  return (yield* nameAt(input, offset)) > 0;
}

/** Hunyuan's tags may all carry one suffix, `<tool_call:k7>`: the same block, written with it. */
export function withSuffix(block: Block, suffix: string): Block {
  const mark = (tag: string) => (tag.endsWith(">") ? `${tag.slice(0, -1)}:${suffix}>` : tag);
  const pair = (one: TagPair): TagPair => ({ open: mark(one.open), close: mark(one.close) });
  const body = (one: Body): Body =>
    one.kind === "pairs"
      ? {
          ...one,
          key: pair(one.key),
          value: pair(one.value),
          ...(one.call === undefined ? {} : { call: pair(one.call) }),
          ...(one.separator === undefined ? {} : { separator: mark(one.separator) }),
        }
      : one;
  return { ...block, open: block.open.map(mark), close: block.close.map(mark), bodies: block.bodies.map(body) };
}
