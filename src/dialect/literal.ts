/**
 * One reader for JSON, for the JSON models write when they slip, and for Python and Gemma literals.
 * It hands on JSON text while it reads (the model's own bytes wherever they are JSON already), names
 * each repair, evaluates nothing and never completes what was cut.
 */
import { codeAt, isSpace, markerAt, need, peek, runLength, take, type Input, type Reading } from "./input.ts";

export type Sink = (json: string) => void;

/** `cut`: the answer ended inside the value. */
export type Outcome = "ok" | "bad" | "cut";

export interface Style {
  /** Python's spellings are the norm here, not a repair. */
  readonly python?: boolean;
  /** A token that opens and closes strings, as Gemma has. Unquoted keys and words are the norm with it. */
  readonly quote?: string;
}

export interface Notes {
  add(repair: string): unknown;
}

const depthLimit = 64;
const numberPattern = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;
const looseNumber = /^[+-]?(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][+-]?\d+)?$/;

export function* readLiteral(input: Input, out: Sink, style: Style, notes: Notes, depth = 0): Reading<Outcome> {
  const code = peek(input) < 0 ? yield* codeAt(input) : peek(input);
  if (code < 0) return "cut";
  if (depth > depthLimit) return "bad";
  if (code === 0x7b) return yield* readObject(input, out, style, notes, depth);
  if (code === 0x5b) return yield* readList(input, out, style, notes, depth, "]");
  if (code === 0x28 && style.python) return yield* readList(input, out, style, notes, depth, ")");
  if (style.quote !== undefined && (yield* markerAt(input, [style.quote])) !== undefined) {
    return yield* readTokenString(input, out, style.quote);
  }
  if (code === 0x22 || code === 0x27) return yield* readString(input, out, style, notes);
  return yield* readWord(input, out, style, notes, depth);
}

function* readObject(input: Input, out: Sink, style: Style, notes: Notes, depth: number): Reading<Outcome> {
  out(take(input, 1));
  let comma = "";
  for (let first = true; ; first = false) {
    const space = yield* skipFiller(input, style, notes);
    if (space === undefined) return "cut";
    const code = peek(input);
    if (code === 0x7d) {
      if (comma !== "") notes.add("trailing-comma");
      out(space + take(input, 1));
      return "ok";
    }
    if (!first && comma === "") return code < 0 ? "cut" : "bad";
    out(comma + space);
    const outcome = yield* readPair(input, out, style, notes, depth);
    if (outcome !== "ok") return outcome;
    comma = yield* readComma(input, out, style, notes);
  }
}

function* readPair(input: Input, out: Sink, style: Style, notes: Notes, depth: number): Reading<Outcome> {
  const key = yield* readKey(input, out, style, notes);
  if (key !== "ok") return key;
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
  const length = yield* runLength(input, isWordCode, 257);
  if (length === 0 || length > 256) return "bad";
  const key = take(input, length);
  if (style.quote === undefined && !(style.python && looseNumber.test(key))) notes.add("unquoted-key");
  out(JSON.stringify(key));
  return "ok";
}

/** Letters, digits, `_ - . $` and anything beyond ASCII. */
function isWordCode(code: number): boolean {
  return (
    (code >= 0x61 && code <= 0x7a) ||
    (code >= 0x41 && code <= 0x5a) ||
    (code >= 0x30 && code <= 0x39) ||
    code === 0x5f ||
    code === 0x2d ||
    code === 0x2e ||
    code === 0x24 ||
    code > 0x7f
  );
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

/** The comma is handed on only with the item after it. */
function* readComma(input: Input, out: Sink, style: Style, notes: Notes): Reading<string> {
  if (peek(input) !== 0x2c) out((yield* skipFiller(input, style, notes)) ?? "");
  return peek(input) === 0x2c ? take(input, 1) : "";
}

/** White space is handed on as written, comments are dropped. Undefined: a comment never ended. */
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

function* readTokenString(input: Input, out: Sink, quote: string): Reading<Outcome> {
  take(input, quote.length);
  out('"');
  const first = quote.charAt(0);
  for (;;) {
    let at = input.buffer.indexOf(first, input.at);
    if (at < 0) at = input.buffer.length;
    if (at > input.at) out(escapeText(take(input, at - input.at)));
    if ((yield* codeAt(input)) < 0) return "cut";
    if ((yield* markerAt(input, [quote])) !== undefined) {
      take(input, quote.length);
      out('"');
      return "ok";
    }
    if (input.buffer.startsWith(first, input.at)) out(escapeText(take(input, 1)));
  }
}

/** Text as the inside of a JSON string. Halves of a character pair pass as they are: the other half follows. */
export function escapeText(text: string): string {
  let plain = true;
  for (let at = 0; at < text.length && plain; at++) {
    const code = text.charCodeAt(at);
    plain = code >= 0x20 && code !== 0x22 && code !== 0x5c;
  }
  if (plain) return text;
  // eslint-disable-next-line no-control-regex
  return text.replace(/["\\\u0000-\u001f]/g, (char) => JSON.stringify(char).slice(1, -1));
}

function* readString(input: Input, out: Sink, style: Style, notes: Notes): Reading<Outcome> {
  const quote = take(input, 1).charCodeAt(0);
  if (quote === 0x27 && !style.python) notes.add("single-quotes");
  out('"');
  if (style.python && (yield* codeAt(input)) === quote && (yield* codeAt(input, 1)) === quote) {
    take(input, 2);
    return yield* readTripleString(input, out, style, notes, quote);
  }
  for (;;) {
    plainRun(input, out, quote, style);
    const code = peek(input) < 0 ? yield* codeAt(input) : peek(input);
    if (code < 0) return "cut";
    if (code === quote) {
      take(input, 1);
      out('"');
      return "ok";
    }
    const outcome = yield* readSpecial(input, out, style, notes, code);
    if (outcome !== "ok") return outcome;
  }
}

function* readTripleString(input: Input, out: Sink, style: Style, notes: Notes, quote: number): Reading<Outcome> {
  for (;;) {
    plainRun(input, out, quote, style);
    const code = yield* codeAt(input);
    if (code < 0) return "cut";
    if (code === quote) {
      if ((yield* codeAt(input, 1)) === quote && (yield* codeAt(input, 2)) === quote) {
        take(input, 3);
        out('"');
        return "ok";
      }
      out(escapeText(take(input, 1)));
      continue;
    }
    const outcome = yield* readSpecial(input, out, style, notes, code);
    if (outcome !== "ok") return outcome;
  }
}

/** Everything that is the inside of a JSON string as it stands, escapes included, in one piece. */
function plainRun(input: Input, out: Sink, quote: number, style: Style): void {
  const { buffer } = input;
  let at = input.at;
  for (; at < buffer.length; at++) {
    const code = buffer.charCodeAt(at);
    if (code === 0x5c && style.python !== true && simpleEscapes.has(buffer.charCodeAt(at + 1))) at++;
    else if (code === quote || code === 0x5c || code === 0x22 || code < 0x20) break;
  }
  if (at > input.at) out(take(input, at - input.at));
}

/** `" \\ / b f n r t`, as they may follow a backslash in JSON. */
const simpleEscapes: ReadonlySet<number> = new Set(Array.from('"\\/bfnrt', (char) => char.charCodeAt(0)));

function* readSpecial(input: Input, out: Sink, style: Style, notes: Notes, code: number): Reading<Outcome> {
  if (code === 0x5c) return yield* readEscape(input, out, style, notes);
  if (code < 0x20) notes.add("control-character");
  out(escapeText(take(input, 1)));
  return "ok";
}

function* readEscape(input: Input, out: Sink, style: Style, notes: Notes): Reading<Outcome> {
  const code = yield* codeAt(input, 1);
  if (code < 0) return "cut";
  const char = String.fromCharCode(code);
  if ('"\\/bfnrt'.includes(char)) {
    out(style.python && char === "/" ? "\\\\/" : input.buffer.slice(input.at, input.at + 2));
    take(input, 2);
    return "ok";
  }
  if (char === "u" || (style.python && (char === "x" || char === "U"))) {
    const outcome = yield* readHexEscape(input, out, char === "u" ? 4 : char === "x" ? 2 : 8);
    if (outcome !== undefined) return outcome;
  }
  if (char === "'") {
    if (!style.python) notes.add("bad-escape");
    out("'");
  } else if (style.python && char === "\n") out("");
  else if (style.python && char === "0") out("\\u0000");
  else {
    if (!style.python) notes.add("bad-escape");
    out(`\\\\${escapeText(char)}`);
  }
  take(input, 2);
  return "ok";
}

/** Undefined: the digits are none, so the backslash is one. */
function* readHexEscape(input: Input, out: Sink, digits: number): Reading<Outcome | undefined> {
  if (!(yield* need(input, 2 + digits))) return "cut";
  const hex = input.buffer.slice(input.at + 2, input.at + 2 + digits);
  if (!/^[0-9a-fA-F]+$/.test(hex) || Number.parseInt(hex, 16) > 0x10ffff) return undefined;
  take(input, 2 + digits);
  out(digits === 4 ? `\\u${hex}` : escapeText(String.fromCodePoint(Number.parseInt(hex, 16))));
  return "ok";
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
  const length = yield* runLength(input, style.quote === undefined ? isPlainWordCode : isBareCode, wordLimit);
  if (length >= wordLimit) return "bad";
  // Inside something, more may have followed; alone, the end of the text is the end of the word.
  const ended = depth > 0 && (yield* codeAt(input, length)) < 0;
  const word = input.buffer.slice(input.at, input.at + length).trimEnd();
  const json = wordToJson(word, style, notes);
  if (ended) return length === 0 || json !== undefined || word.length < 6 ? "cut" : "bad";
  if (json === undefined || length === 0) return "bad";
  take(input, length);
  out(json);
  return "ok";
}

const wordLimit = 4096;

function isPlainWordCode(code: number): boolean {
  return isWordCode(code) || code === 0x2b;
}

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
  if (numberPattern.test(word)) return word;
  if (looseNumber.test(word)) {
    const value = Number(word.replaceAll("_", ""));
    if (!Number.isFinite(value)) return undefined;
    if (!style.python) notes.add("loose-number");
    return String(value);
  }
  if (style.quote === undefined || word === "") return undefined;
  notes.add("unquoted-string");
  return JSON.stringify(word);
}
