/**
 * A raw text value between its tags. A closing tag counts only if something legal follows it, a call
 * quoted inside a value stays part of the value, and a parameter that was never closed ends where the
 * next declared one begins.
 */
import {
  afterSpace,
  codeAt,
  createScanner,
  left,
  markerAt,
  skipMarker,
  skipSpace,
  take,
  textUntil,
  type Reading,
} from "../input.ts";
import type { Arguments, ValueSink } from "./arguments.ts";
import type { Context } from "./context.ts";
import { headerAt } from "./header.ts";
import type { TaggedMarks } from "./tagged-marks.ts";
import { namelessAt, parameterAt } from "./tagged-opens.ts";

/** What ended a parameter or the call. */
export type Ending = "closed" | "implicit" | "cut" | "bad";

export interface OpenValue {
  readonly sink: ValueSink;
  readonly close: string;
  readonly args: Arguments;
  /** This value stood behind its name, so the next one may as well. */
  readonly nameless: boolean;
}

export function* readValue(context: Context, marks: TaggedMarks, value: OpenValue): Reading<Ending> {
  const { input } = context;
  if (yield* readCdata(context, value.sink)) {
    if (marks.body.cdata !== true) context.opened.at(-1)?.repairs.add("cdata");
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
      else if (yield* startsNext(context, marks, value, marker)) return "implicit";
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

/** Whether one of the markers or the end of the answer follows, with nothing but white space before it. */
function* isFollowedBy(context: Context, offset: number, legal: readonly string[]): Reading<boolean> {
  const { input } = context;
  const at = yield* afterSpace(input, offset);
  if ((yield* codeAt(input, at)) < 0 || (yield* markerAt(input, legal, at)) !== undefined) return true;
  // The answer may end in the middle of the marker.
  const rest = input.ended && left(input) - at < 64 ? input.buffer.slice(input.at + at) : undefined;
  return rest !== undefined && legal.some((marker) => marker.startsWith(rest));
}

/** Whether a parameter begins here that is declared and was not given yet. Then the one before it was never closed. */
function* startsNext(context: Context, marks: TaggedMarks, value: OpenValue, marker: string): Reading<boolean> {
  const { args } = value;
  const header = yield* parameterAt(context, marks, marker);
  if (header === undefined) return value.nameless && (yield* namelessAt(context, marks, args, marker)) !== undefined;
  return header.repair === undefined && !args.has(header.name) && args.mayTake(header.name);
}

const cdataOpen = ["<![CDATA["];
const cdataEnd = createScanner(["]]>"]);

/** Reads `<![CDATA[…]]>`. There are several in a row if the value holds `]]>` itself. */
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
