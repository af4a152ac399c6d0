/**
 * JSON of a value that may hold a very long text, in pieces. Written at once, an answer of megabytes
 * would be in memory four times: as the text, as its JSON, as the line and as the line's bytes.
 */

/** Longer texts are written in pieces of this size. */
const pieceLength = 65_536;
/** Stands for a long text while the rest is written. */
const mark = "callgate:long-text";

/** Joined, they are `JSON.stringify(value)`. None ends inside a character. */
export function jsonPieces(value: object): Iterable<string> {
  return holdsLongText(value) ? longPieces(value) : [JSON.stringify(value)];
}

function* longPieces(value: object): Generator<string, void, undefined> {
  const texts: string[] = [];
  const rest = JSON.stringify(value, (_key, inner: unknown) => {
    if (typeof inner !== "string" || inner.length <= pieceLength) return inner;
    texts.push(inner);
    return mark;
  }).split(`"${mark}"`);
  // The value itself contains the mark.
  if (rest.length !== texts.length + 1) return yield JSON.stringify(value);
  for (const [at, text] of texts.entries()) {
    yield `${rest[at]!}"`;
    yield* quoted(text);
    rest[at + 1] = `"${rest[at + 1]!}`;
  }
  yield rest.at(-1)!;
}

interface Quoted {
  readonly text: string;
  /** What stands between the quotes, in pieces. */
  readonly pieces: readonly string[];
}

/**
 * The long text that was written last, because an answer is written several times in a row: to the journal, as an item,
 * as the text of the turn. Nobody else keeps it.
 */
let last: WeakRef<Quoted> | undefined;

function* quoted(text: string): Generator<string, void, undefined> {
  const known = last?.deref();
  if (known?.text === text) return yield* known.pieces;
  const pieces: string[] = [];
  for (let from = 0, to: number; from < text.length; from = to) {
    to = from + pieceLength;
    if (to < text.length && isHighSurrogate(text.charCodeAt(to - 1))) to--;
    const piece = JSON.stringify(text.slice(from, to)).slice(1, -1);
    pieces.push(piece);
    yield piece;
  }
  last = new WeakRef({ text, pieces });
}

function holdsLongText(value: object): boolean {
  for (const inner of Array.isArray(value) ? value : Object.values(value)) {
    if (typeof inner === "string" && inner.length > pieceLength) return true;
    if (typeof inner === "object" && inner !== null && holdsLongText(inner)) return true;
  }
  return false;
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code <= 0xdbff;
}
