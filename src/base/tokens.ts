/**
 * How many tokens a text will take, estimated: the one answer in this code to that question. Tokenizers
 * differ, so the estimate leans to the high side: a budget kept by it is kept in every script (the tests
 * compare it with o200k), and never do more than four characters pass for one token.
 */

/** What a character is to a tokenizer that first splits a text into words, numbers and marks. */
const [start, lower, upper, digit, space, newline, mark, other] = [0, 1, 2, 3, 4, 5, 6, 7];

/** The kind of each character below 128. */
const kinds = Uint8Array.from({ length: 128 }, (_, code) => {
  if (code >= 0x61 && code <= 0x7a) return lower;
  if (code >= 0x41 && code <= 0x5a) return upper;
  if (code >= 0x30 && code <= 0x39) return digit;
  if (code === 0x20 || code === 0x09) return space;
  return code === 0x0a || code === 0x0d ? newline : mark;
});

/** An image's weight, whatever its bytes: providers count patches, not base64. */
export const imageTokens = 1_600;

/** No text has more tokens than this for each of its UTF-16 units, by the costs below. */
export const mostTokensPerCharacter = 2.25;

/** Costs are counted in twelfths of a token. */
const token = 12;
const leastPerCharacter = token / 4;

/** Of one UTF-16 unit above 127, by where its script lies. */
function scriptCost(code: number): number {
  if (code < 0x0250) return 5; // Latin with accents, in the middle of a word
  if (code < 0x0450) return 5; // Greek, Russian
  if (code < 0x0530) return 12; // letters of the other Cyrillic alphabets
  if (code < 0x0700) return 6; // Armenian, Hebrew, Arabic
  if (code < 0x0e80) return 6; // the scripts of India, Thai
  if (code < 0x10a0) return 12; // Lao, Tibetan, Burmese
  if (code < 0x1100) return 5; // Georgian
  if (code < 0x1e00) return 27; // Ethiopic, Khmer and others that tokenizers have seen little of
  if (code < 0x2000) return 5; // more Latin and Greek with accents
  if (code < 0x2e80) return code >= 0x2500 && code < 0x25a0 ? 12 : 22; // signs, arrows, mathematics; boxes are common
  if (code < 0xac00) return 13; // Chinese, Japanese
  if (code < 0xd800) return 10; // Korean
  return 16; // half of an emoji or a rare character; forms for compatibility
}

/** A letter that goes on with the word it stands in. */
function isAccented(code: number): boolean {
  return (code >= 0xc0 && code < 0x250) || (code >= 0x1e00 && code < 0x2000);
}

interface Scanned {
  /** Where the limit was reached, or the end. */
  readonly at: number;
  readonly cost: number;
}

/** Goes on from `from` until the cost would exceed the limit. */
function scan(text: string, from: number, limit: number): Scanned {
  let before = start;
  let run = 0;
  let mixed = 0; // how often letters and digits took turns in this word
  let cost = 0;
  for (let at = from; at < text.length; at++) {
    const code = text.charCodeAt(at);
    const kind = code < 128 ? kinds[code]! : isAccented(code) ? lower : other;
    const continues = kind === before || (kind === lower && before === upper);
    if (continues) run++;
    else {
      run = 1;
      if (kind > digit) mixed = 0;
      else if (kind === digit ? before === lower || before === upper : before === digit) mixed++;
    }
    const next = cost + (code < 128 ? costOf(kind, before, run, mixed > 1) : scriptCost(code));
    if (Math.max(next, (at + 1 - from) * leastPerCharacter) > limit) return { at, cost };
    cost = next;
    before = kind;
  }
  return { at: text.length, cost: Math.max(cost, (text.length - from) * leastPerCharacter) };
}

/**
 * `run` is how many characters of this kind come in a row, including this one. `isCode` means that letters
 * and digits alternate, as in hexadecimal text and base64, where tokenizers know no words.
 */
function costOf(kind: number, before: number, run: number, isCode: boolean): number {
  switch (kind) {
    case lower: // a word with the space before it is a token, a long one two; what is longer is no word
      if (run === 1) return token;
      return isCode || run > 16 ? 8 : run > 5 ? 4 : 0;
    case upper:
      return run === 1 ? token : 7;
    case digit: // three digits at most, and never a space with them
      return (run % 3 === 1 ? token : 0) + (run === 1 && before === space ? token : 0);
    case space: // a second one is a token, and so is indentation of any depth
      return run === 2 ? token : 0;
    case newline:
      return run > 1 ? 0 : before === mark ? 6 : token;
    default:
      return run === 1 ? token : 6;
  }
}

export function estimateTokens(text: string): number {
  return Math.ceil(scan(text, 0, Infinity).cost / token);
}

/** How much of the beginning fits into that many tokens: an offset that never splits a character. */
export function fittingStart(text: string, tokens: number): number {
  const { at } = scan(text, 0, Math.max(0, tokens) * token);
  return isInsidePair(text, at) ? at - 1 : at;
}

/** Where the longest ending begins that fits into that many tokens, or one a little shorter. */
export function fittingEnd(text: string, tokens: number): number {
  const limit = Math.max(0, tokens) * token;
  let length = Math.min(text.length, Math.floor(limit / leastPerCharacter));
  // The beginning of an ending is found by what it costs to read it forwards.
  while (length > 0) {
    const from = text.length - length;
    const { cost } = scan(text, from, Infinity);
    if (cost <= limit) return isInsidePair(text, from) ? from + 1 : from;
    length = Math.min(length - 1, Math.floor((length * limit) / cost));
  }
  return text.length;
}

function isInsidePair(text: string, at: number): boolean {
  const unit = text.charCodeAt(at);
  const previous = text.charCodeAt(at - 1);
  return unit >= 0xdc00 && unit < 0xe000 && previous >= 0xd800 && previous < 0xdc00;
}
