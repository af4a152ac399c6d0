/** Quoted text of every kind, passed on as the inside of a JSON string while it is read. */
import { codeAt, markerAt, need, pause, peek, take, type Input, type Reading } from "./input.ts";
import type { Notes } from "./repairs.ts";

export type Sink = (json: string) => void;

/** `cut`: the answer ended inside the value. */
export type Outcome = "ok" | "bad" | "cut";

export interface Style {
  /** Python's spellings are normal here, and not a repair. */
  readonly python?: boolean;
  /** A backslash stands for itself. */
  readonly raw?: boolean;
  /** A token that opens and closes strings, as in Gemma. Unquoted keys and words are normal with it. */
  readonly quote?: string;
}

export function* readTokenString(input: Input, out: Sink, quote: string): Reading<Outcome> {
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

/** Text as the inside of a JSON string. Halves of a surrogate pair pass unchanged, because the other half follows. */
export function escapeText(text: string): string {
  let plain = true;
  for (let at = 0; at < text.length && plain; at++) {
    const code = text.charCodeAt(at);
    plain = code >= 0x20 && code !== 0x22 && code !== 0x5c;
  }
  if (plain) return text;
  if (!/[\ud800-\udfff]/.test(text)) return JSON.stringify(text).slice(1, -1);
  // eslint-disable-next-line no-control-regex
  return text.replace(/["\\\u0000-\u001f]/g, (char) => JSON.stringify(char).slice(1, -1));
}

export function* readString(input: Input, out: Sink, style: Style, notes: Notes): Reading<Outcome> {
  const quote = take(input, 1).charCodeAt(0);
  if (quote === 0x27 && !style.python) notes.add("single-quotes");
  out('"');
  if (style.python && (yield* codeAt(input)) === quote && (yield* codeAt(input, 1)) === quote) {
    take(input, 2);
    return yield* readTripleString(input, out, style, notes, quote);
  }
  for (;;) {
    plainRun(input, out, quote, style);
    const code = peek(input);
    if (code < 0) {
      if (input.ended) return "cut";
      yield* pause(input, () => {
        plainRun(input, out, quote, style);
        return peek(input) < 0;
      });
      continue;
    }
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

/** Everything that can stay as it is inside a JSON string, with escapes, in one piece. */
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
  if (style.raw) {
    out(`\\\\${escapeText(char)}`);
    take(input, 2);
    return "ok";
  }
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

/** Undefined if these are not hex digits, so that the backslash is literal. */
function* readHexEscape(input: Input, out: Sink, digits: number): Reading<Outcome | undefined> {
  if (!(yield* need(input, 2 + digits))) return "cut";
  const hex = input.buffer.slice(input.at + 2, input.at + 2 + digits);
  if (!/^[0-9a-fA-F]+$/.test(hex) || Number.parseInt(hex, 16) > 0x10ffff) return undefined;
  take(input, 2 + digits);
  out(digits === 4 ? `\\u${hex}` : escapeText(String.fromCodePoint(Number.parseInt(hex, 16))));
  return "ok";
}
