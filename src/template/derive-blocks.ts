/**
 * Derives blocks and bodies from turns that differ in one thing. Each function proposes a few readings, and
 * the probes decide between them.
 */
import type { JsonBody, NamedBody } from "../dialect/dialect.ts";
import { elementBlocks, firstMarker, lastMarker, type Blocks } from "./derive-elements.ts";
import { one, two } from "./probe.ts";
import { commonEnd, commonStart, outOfMarker, pastMarker } from "./renderings.ts";

/** The model's turn for each probe. It is undefined if the template does not show the calls. */
export interface Shown {
  readonly one: string;
  readonly two: string | undefined;
  readonly empty: string | undefined;
  readonly twoArguments: string | undefined;
  readonly ids: readonly string[];
}

const alpha = one[0]!.name;
const beta = two[1]!.name;
const idMark = "\u0000";

/** The readings in the order in which they are tried: JSON, a name and JSON, Python, tokens as quotes, elements. */
export function* deriveBlocks(shown: Shown): Generator<Blocks> {
  const turns = mapShown(withoutThoughts(shown), (text) =>
    shown.ids.reduce((all, id) => all.replaceAll(id, idMark), text),
  );
  yield* jsonBlocks(turns);
  yield* namedBlocks(turns);
  yield* pythonBlocks(turns);
  yield* quotedBlocks(turns);
  yield* elementBlocks(turns.twoArguments);
}

function mapShown(shown: Shown, change: (text: string) => string): Shown {
  const each = (text: string | undefined) => (text === undefined ? undefined : change(text));
  return {
    ...shown,
    one: change(shown.one),
    two: each(shown.two),
    empty: each(shown.empty),
    twoArguments: each(shown.twoArguments),
  };
}

/** Removes an empty block of thoughts before the call, because it does not belong to the call. */
function withoutThoughts(shown: Shown): Shown {
  return mapShown(shown, (text) => text.replace(/^\s*(?:<[\w:]{0,12}think>)?\s*<\/[\w:]{0,12}think>\s*/, ""));
}

/** A JSON value that begins at `at`, if one does. */
function jsonAt(text: string, at: number): { readonly end: number; readonly value: unknown } | undefined {
  let depth = 0;
  let inString = false;
  for (let index = at; index < text.length; index++) {
    const char = text[index]!;
    if (inString) {
      if (char === "\\") index++;
      else if (char === '"') inString = false;
    } else if (char === '"') inString = true;
    else if (char === "{" || char === "[") depth++;
    else if ((char === "}" || char === "]") && --depth === 0) {
      try {
        return { end: index + 1, value: JSON.parse(text.slice(at, index + 1).replaceAll(idMark, "id")) };
      } catch {
        return undefined; // The brackets do not hold JSON.
      }
    }
  }
  return undefined;
}

function* jsonBlocks({ one: text, two: both }: Shown): Generator<Blocks> {
  const nameAt = text.indexOf(alpha);
  for (const match of text.slice(0, nameAt).matchAll(/[{[]/g)) {
    const found = jsonAt(text, match.index);
    if (found === undefined || found.end < nameAt) continue;
    const list = Array.isArray(found.value);
    const body = bodyOf(list ? (found.value as readonly unknown[])[0] : found.value, list);
    if (body === undefined) continue;
    const open = text.slice(0, match.index).trim();
    const close = text.slice(found.end).trim();
    const lines = !list && both !== undefined && linesIn(both);
    const block = {
      open: open === "" ? [] : [open],
      close: close === "" ? [] : [close],
      bodies: [{ ...body, ...(lines ? { lines } : {}) }],
    };
    if (open === "") yield [{ ...block, close: [], whole: true }];
    else {
      yield [block];
      // What repeats after every call may be the opener of the next call instead of a closer.
      yield [{ ...block, close: [] }];
    }
  }
}

/** Whether two calls of one section are written on separate lines. */
function linesIn(text: string): boolean {
  return /\}\s*\n\s*\{/.test(text);
}

function bodyOf(value: unknown, list: boolean): JsonBody | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const entries = Object.entries(value);
  const name = entries.find(([, inner]) => inner === alpha)?.[0];
  const holds = (inner: unknown) => typeof inner === "object" && inner !== null && "qzpath" in inner;
  const args = entries.find(([, inner]) => holds(inner))?.[0];
  if (args === alpha) return { kind: "json", nameAsKey: true, list };
  if (name !== undefined && args !== undefined) return { kind: "json", name: [name], args: [args], list };
  const inner = entries.find(([, each]) => typeof each === "object" && each !== null && !Array.isArray(each))?.[1];
  return inner === undefined ? undefined : bodyOf(inner, list);
}

/**
 * Blocks in which the name is written before the JSON. The text around and between the two shows where a
 * section and a call begin and end.
 */
function* namedBlocks({ one: text, two: both }: Shown): Generator<Blocks> {
  const nameAt = text.indexOf(alpha);
  const brace = text.indexOf("{", nameAt);
  const args = brace < 0 ? undefined : jsonAt(text, brace);
  if (args === undefined) return;
  const before = text.slice(0, nameAt);
  const after = text.slice(args.end);
  const between = both === undefined ? undefined : betweenCalls(both);
  const each =
    between === undefined
      ? lastMarker(before)
      : between.slice(pastMarker(between, between.length - commonEnd(before, between)));
  const ends = between === undefined ? after : between.slice(0, outOfMarker(between, commonStart(after, between)));
  for (const [open, close] of [
    [each, ends],
    [lastMarker(before), firstMarker(after)],
  ] as const) {
    const section = before.slice(0, before.length - open.length).trim();
    const sectionEnd = after.slice(close.length).trim();
    const body = namedBody(open, text.slice(nameAt + alpha.length, brace), close);
    if (section === "" && open.trim() !== "")
      yield [{ open: [open.trim()], close: [], bodies: [withoutBefore(body)], between: [open.trim()] }];
    if (section !== "") yield [{ open: [section], close: sectionEnd === "" ? [] : [sectionEnd], bodies: [body] }];
    if (section !== "" && sectionEnd === "") {
      // The section of a single call is left open, but the rendering of two calls may show its end.
      const end = both === undefined ? "" : both.slice(both.lastIndexOf("}") + 1 + close.length).trim();
      if (end !== "") yield [{ open: [section], close: [end], bodies: [body] }];
    }
  }
}

function betweenCalls(text: string): string | undefined {
  const brace = text.indexOf("{", text.indexOf(alpha));
  const args = brace < 0 ? undefined : jsonAt(text, brace);
  const next = text.indexOf(beta);
  return args === undefined || next < args.end ? undefined : text.slice(args.end, next);
}

function namedBody(open: string, separator: string, close: string): NamedBody {
  const fence = /```\w*\s*$/.exec(separator)?.[0].trim();
  const mark = fence === undefined ? separator : separator.slice(0, separator.lastIndexOf("```"));
  const [idMarker, rest] = mark.includes(idMark) ? mark.split(idMark) : [undefined, mark];
  const kimi = open.endsWith("functions.") || /^:\d/.test(separator);
  const ending = fence === undefined ? close : close.replace(/^\s*```\s*/, "");
  const [before = "", idFirst] = open.includes(idMark) ? open.split(idMark) : [open];
  const opener = kimi ? before.replace(/functions\.$/, "") : before;
  return {
    kind: "named",
    ...(opener.trim() === "" ? {} : { before: [opener.trimStart()] }),
    separator: [kimi ? rest.replace(/^:\d+/, "") : rest],
    ...(fence === undefined ? {} : { after: [fence] }),
    ...(ending.trim() === "" ? {} : { close: [ending.trim()] }),
    ...(idMarker === undefined ? {} : { id: [idMarker] }),
    ...(idFirst === undefined ? {} : { idFirst: [idFirst] }),
    ...(kimi ? { kimi } : {}),
  };
}

function withoutBefore({ before: _before, ...body }: NamedBody): NamedBody {
  return body;
}

function* pythonBlocks({ one: text }: Shown): Generator<Blocks> {
  const nameAt = text.indexOf(alpha);
  if (text[nameAt + alpha.length] !== "(") return;
  const end = text.indexOf(")", nameAt) + 1;
  const before = text.slice(0, nameAt).trim();
  const after = text.slice(end).trim();
  const list = before.endsWith("[");
  const open = list ? before.slice(0, -1).trim() : before;
  const close = list ? after.replace(/^\]/, "").trim() : after;
  const bodies = [{ kind: "python", list: list ? "brackets" : "lines" }] as const;
  if (open === "") yield [{ open: [], close: [], bodies, whole: true }];
  else yield [{ open: [open], close: close === "" ? [] : [close], bodies }];
}

function* quotedBlocks({ one: text }: Shown): Generator<Blocks> {
  const nameAt = text.indexOf(alpha);
  const inside = /^\{qzpath:(\S{2,32}?)qzpathvalue/.exec(text.slice(nameAt + alpha.length));
  if (inside === null) return;
  const before = text.slice(0, nameAt);
  const prefix = /\w+:$/.exec(before)?.[0] ?? "";
  const open = before.slice(0, before.length - prefix.length).trim();
  const close = text.slice(text.indexOf("}", nameAt) + 1).trim();
  const bodies = [{ kind: "quoted", prefix, quote: inside[1]! }] as const;
  // The text after the last call may already open its result.
  for (const end of new Set([close, firstMarker(close)]))
    yield [{ open: [open], close: end === "" ? [] : [end], bodies }];
}
