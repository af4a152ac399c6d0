/**
 * One reader for JSON, for the faulty JSON that models write, and for Python and Gemma literals. It
 * passes on JSON text while it reads (the model's own bytes wherever they are JSON already), names
 * each repair, evaluates nothing and never completes what was cut.
 */
import { codesOf, digits, letters } from "./codes.ts";
import {
  afterSpace,
  codeAt,
  isSpace,
  markerAt,
  peek,
  runLength,
  skipMarker,
  take,
  type Input,
  type Reading,
} from "./input.ts";
import { readString, readTokenString, type Outcome, type Sink, type Style } from "./quoting.ts";
import type { Notes } from "./repairs.ts";

const depthLimit = 64;
const numberPattern = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;
const looseNumber = /^[+-]?(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][+-]?\d+)?$/;

export function* readLiteral(input: Input, out: Sink, style: Style, notes: Notes, depth = 0): Reading<Outcome> {
  const code = peek(input) < 0 ? yield* codeAt(input) : peek(input);
  if (code < 0) return "cut";
  if (depth > depthLimit) return "bad";
  if (code === 0x7b)
    return style.python && (yield* isSet(input))
      ? yield* readList(input, out, style, notes, depth, "}")
      : yield* readObject(input, out, style, notes, depth);
  if (code === 0x5b) return yield* readList(input, out, style, notes, depth, "]");
  if (code === 0x28 && style.python) return yield* readList(input, out, style, notes, depth, ")");
  if (style.quote !== undefined && (yield* markerAt(input, [style.quote])) !== undefined) {
    return yield* readTokenString(input, out, style.quote);
  }
  if (style.python && isPrefix(code) && isQuote(yield* codeAt(input, 1)))
    return yield* readPrefixed(input, out, style, notes);
  if (!isQuote(code)) return yield* readWord(input, out, style, notes, depth);
  const outcome = yield* readString(input, out, style, notes);
  // A string closed by its own quote and by the token as well.
  if (outcome === "ok" && style.quote !== undefined && (yield* skipMarker(input, [style.quote])) !== undefined)
    notes.add("stray-quote");
  return outcome;
}

const isPrefix = codesOf("fFrRuU", false);
const isQuote = codesOf("\"'", false);

/** `r'…'` keeps its backslashes; `f'…'` with nothing to fill in is the text itself. */
function* readPrefixed(input: Input, out: Sink, style: Style, notes: Notes): Reading<Outcome> {
  const prefix = take(input, 1).toLowerCase();
  if (prefix === "u") return yield* readString(input, out, style, notes);
  if (prefix === "r") return yield* readString(input, out, { ...style, raw: true }, notes);
  let json = "";
  const outcome = yield* readString(input, (piece) => (json += piece), style, notes);
  if (outcome === "ok" && /[{}]/.test(json)) return "bad";
  out(json);
  return outcome;
}

const elementLimit = 1024;

/** `{'a', 'b'}`: no colon follows the first item in the braces. If it is too long to look past, it is a key. */
function* isSet(input: Input): Reading<boolean> {
  const from = yield* afterSpace(input, 1);
  const quote = yield* codeAt(input, from);
  let at = from;
  if (isQuote(quote)) {
    for (let code = yield* codeAt(input, ++at); code >= 0 && code !== quote; code = yield* codeAt(input, ++at)) {
      if (at - from > elementLimit) return false;
      if (code === 0x5c) at++;
    }
    at++;
  } else at += yield* runLength(input, isWordCode, elementLimit, at);
  const next = yield* codeAt(input, yield* afterSpace(input, at));
  return quote !== 0x7d && (next === 0x2c || next === 0x7d);
}

function* readObject(input: Input, out: Sink, style: Style, notes: Notes, depth: number): Reading<Outcome> {
  out(take(input, 1));
  let comma = "";
  const keys = new Set<string>();
  for (let first = true; ; first = false) {
    const space = yield* skipFiller(input, style, notes);
    if (space === undefined) return "cut";
    const code = peek(input);
    if (code === 0x7d) {
      if (comma !== "") notes.add("trailing-comma");
      out(space + take(input, 1));
      return "ok";
    }
    if (!first && comma === "") {
      if (code < 0 || style.quote === undefined) return code < 0 ? "cut" : "bad";
      // After a quoting token, the next key needs no comma to be told from the value.
      notes.add("missing-comma");
      comma = ",";
    }
    out(comma + space);
    const outcome = yield* readPair(input, out, style, notes, depth, keys);
    if (outcome !== "ok") return outcome;
    comma = yield* readComma(input, out, style, notes);
  }
}

function* readPair(
  input: Input,
  out: Sink,
  style: Style,
  notes: Notes,
  depth: number,
  keys: Set<string>,
): Reading<Outcome> {
  let name = "";
  const key = yield* readKey(
    input,
    (piece) => {
      name += piece;
      out(piece);
    },
    style,
    notes,
  );
  if (key !== "ok") return key;
  // Nobody knows which of the two values was meant.
  if (keys.has(name)) notes.add("duplicate-argument");
  keys.add(name);
  const before = yield* skipFiller(input, style, notes);
  if (before === undefined || peek(input) < 0) return "cut";
  if (peek(input) !== 0x3a) return "bad";
  out(before + take(input, 1));
  const after = yield* skipFiller(input, style, notes);
  if (after === undefined) return "cut";
  out(after);
  return yield* readLiteral(input, out, style, notes, depth + 1);
}

export function* readKey(input: Input, out: Sink, style: Style, notes: Notes): Reading<Outcome> {
  const code = yield* codeAt(input);
  if (code < 0) return "cut";
  if (code === 0x22 || code === 0x27) return yield* readString(input, out, style, notes);
  if (style.quote !== undefined && (yield* markerAt(input, [style.quote])) !== undefined) {
    return yield* readTokenString(input, out, style.quote);
  }
  const length = yield* runLength(input, style.quote === undefined ? isWordCode : isBareKeyCode, 257);
  if (length === 0 || length > 256) return "bad";
  const key = take(input, length).trimEnd();
  if (style.quote === undefined && !(style.python && looseNumber.test(key))) notes.add("unquoted-key");
  out(JSON.stringify(key));
  return "ok";
}

const isWordCode = codesOf(`${letters}${digits}_-.$`, true);

/** A Gemma key needs no quotes, even if it holds spaces. */
function isBareKeyCode(code: number): boolean {
  return code === 9 || (isBareCode(code) && code !== 0x3a && code !== 0x7b && code !== 0x5b);
}

function* readList(input: Input, out: Sink, style: Style, notes: Notes, depth: number, end: string): Reading<Outcome> {
  take(input, 1);
  out("[");
  let comma = "";
  for (let first = true; ; first = false) {
    const space = yield* skipFiller(input, style, notes);
    if (space === undefined) return "cut";
    if (peek(input) === end.charCodeAt(0)) {
      if (comma !== "" && end === "]") notes.add("trailing-comma");
      take(input, 1);
      out(`${space}]`);
      return "ok";
    }
    if (!first && comma === "") return peek(input) < 0 ? "cut" : "bad";
    out(comma + space);
    const outcome = yield* readLiteral(input, out, style, notes, depth + 1);
    if (outcome !== "ok") return outcome;
    comma = yield* readComma(input, out, style, notes);
  }
}

/** The comma is passed on only with the item after it. */
function* readComma(input: Input, out: Sink, style: Style, notes: Notes): Reading<string> {
  if (peek(input) !== 0x2c) out((yield* skipFiller(input, style, notes)) ?? "");
  return peek(input) === 0x2c ? take(input, 1) : "";
}

/** White space is passed on as written, and comments are dropped. Undefined if a comment never ended. */
export function* skipFiller(input: Input, style: Style, notes: Notes): Reading<string | undefined> {
  let space = "";
  for (;;) {
    const code = peek(input) < 0 ? yield* codeAt(input) : peek(input);
    if (isSpace(code)) space += take(input, yield* runLength(input, isSpace, 65_536));
    else if (code === 0x2f && style.quote === undefined) {
      const second = yield* codeAt(input, 1);
      if (second !== 0x2f && second !== 0x2a) return space;
      notes.add("comment");
      if (!(yield* skipComment(input, second === 0x2a))) return undefined;
    } else return space;
  }
}

function* skipComment(input: Input, block: boolean): Reading<boolean> {
  take(input, 2);
  for (;;) {
    const code = yield* codeAt(input);
    if (code < 0) return false;
    if (block ? code === 0x2a && (yield* codeAt(input, 1)) === 0x2f : code === 10 || code === 13) {
      take(input, block ? 2 : 1);
      return true;
    }
    take(input, 1);
  }
}

const words = new Map([
  ["true", "true"],
  ["false", "false"],
  ["null", "null"],
  ["True", "true"],
  ["False", "false"],
  ["None", "null"],
]);

function* readWord(input: Input, out: Sink, style: Style, notes: Notes, depth: number): Reading<Outcome> {
  const fits = style.quote !== undefined ? isBareCode : isLetter(peek(input)) ? isPathCode : isPlainWordCode;
  const length = yield* runLength(input, fits, wordLimit);
  if (length >= wordLimit) return "bad";
  // Inside something, more may have followed. Alone, the end of the text is the end of the word.
  const ended = depth > 0 && (yield* codeAt(input, length)) < 0;
  const word = input.buffer.slice(input.at, input.at + length).trimEnd();
  const json = wordToJson(word, style, notes) ?? (depth > 0 ? unquotedString(word, style, notes) : undefined);
  if (ended) return length === 0 || json !== undefined || word.length < 6 ? "cut" : "bad";
  if (json === undefined || length === 0) return "bad";
  take(input, length);
  out(json);
  return "ok";
}

const wordLimit = 4096;

const isPlainWordCode = codesOf(`${letters}${digits}_-.$+`, true);
/** What a word that begins with a letter may hold: a path is still one word. */
const isPathCode = codesOf(`${letters}${digits}_-.$+/`, true);
const isLetter = codesOf(`${letters}_`, false);

/** What an unquoted Gemma value may hold. */
function isBareCode(code: number): boolean {
  return code >= 0x20 && code !== 0x2c && code !== 0x7d && code !== 0x5d && code !== 0x3c;
}

function wordToJson(word: string, style: Style, notes: Notes): string | undefined {
  const known = words.get(word);
  if (known !== undefined) {
    if (known !== word && !style.python && style.quote === undefined) notes.add("python-literal");
    return known;
  }
  if (numberPattern.test(word)) return Number.isFinite(Number(word)) ? word : undefined;
  // A longer word is not a number that anybody meant, and the pattern would take quadratic time on it.
  if (word.length <= 400 && looseNumber.test(word)) {
    const value = Number(word.replaceAll("_", ""));
    if (!Number.isFinite(value)) return undefined;
    if (!style.python) notes.add("loose-number");
    return String(value);
  }
  return undefined;
}

/** JavaScript's words for no value. */
const noText: ReadonlySet<string> = new Set(["undefined", "NaN", "Infinity"]);

function unquotedString(word: string, style: Style, notes: Notes): string | undefined {
  const fits = style.quote !== undefined || (!style.python && isLetter(word.charCodeAt(0)) && !noText.has(word));
  if (word === "" || !fits) return undefined;
  notes.add("unquoted-string");
  return JSON.stringify(word);
}
