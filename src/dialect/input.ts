/**
 * Text as it arrives. Readers are generators over one shared cursor. They run as far as the text
 * reaches, and pause (`yield`) where a decision needs more, so that the way an answer was cut into
 * chunks cannot change what is read. Positions ahead are relative to the cursor.
 */
export type Reading<T> = Generator<void, T, void>;

export interface Input {
  buffer: string;
  at: number;
  ended: boolean;
  /** What was consumed since `startRecording`. If a call turns out not to be one, it becomes text again. */
  recorded: string | undefined;
  /**
   * Set by a reader that paused in the middle of a long text. It takes what came, and returns whether
   * that was everything. Then no reader has to be resumed: a pause deep inside a value costs a step for
   * each reader around it.
   */
  absorb: (() => boolean) | undefined;
}

export function createInput(text = "", ended = false): Input {
  return { buffer: text, at: 0, ended, recorded: undefined, absorb: undefined };
}

export function append(input: Input, chunk: string): void {
  input.buffer = input.at >= input.buffer.length ? chunk : input.buffer.slice(input.at) + chunk;
  input.at = 0;
}

/** Puts text back in front of the cursor. */
export function unread(input: Input, text: string): void {
  input.buffer = text + input.buffer.slice(input.at);
  input.at = 0;
}

export function startRecording(input: Input): void {
  input.recorded = "";
}

export function stopRecording(input: Input): string {
  const text = input.recorded ?? "";
  input.recorded = undefined;
  return text;
}

/** Moves on and returns what was passed. */
export function take(input: Input, count: number): string {
  const text = input.buffer.slice(input.at, input.at + count);
  input.at += count;
  if (input.recorded !== undefined) input.recorded += text;
  return text;
}

export function left(input: Input): number {
  return input.buffer.length - input.at;
}

/** True when `count` characters are there; false if the answer ended before. */
export function* need(input: Input, count: number): Reading<boolean> {
  while (left(input) < count) {
    if (input.ended) return false;
    yield;
  }
  return true;
}

/** The character code `offset` after the cursor, -1 at the end. */
export function* codeAt(input: Input, offset = 0): Reading<number> {
  if (left(input) <= offset && !(yield* need(input, offset + 1))) return -1;
  return input.buffer.charCodeAt(input.at + offset);
}

/** The same if it is there already, without the cost of a generator. -2 if one has to wait. */
export function codeNow(input: Input, offset: number): number {
  return input.at + offset < input.buffer.length ? input.buffer.charCodeAt(input.at + offset) : -2;
}

/** The code at the cursor if it is there already, otherwise -1: a quick look before a pause. */
export function peek(input: Input): number {
  return input.at < input.buffer.length ? input.buffer.charCodeAt(input.at) : -1;
}

/** How many characters from the offset on fit, at most `limit`. */
export function* runLength(input: Input, fits: (code: number) => boolean, limit: number, offset = 0): Reading<number> {
  let length = 0;
  for (;;) {
    const end = Math.min(input.buffer.length, input.at + offset + limit);
    while (input.at + offset + length < end && fits(input.buffer.charCodeAt(input.at + offset + length))) length++;
    if (input.at + offset + length < input.buffer.length || input.ended || length >= limit) return length;
    yield;
  }
}

const undecided = -2;
const none = -1;

/**
 * Which marker (its index in the list, longest first) stands at the offset. `undecided` while it may
 * still become one.
 */
function testMarkers(input: Input, markers: readonly string[], offset: number): number {
  const start = input.at + offset;
  const available = input.buffer.length - start;
  for (let index = 0; index < markers.length; index++) {
    const marker = markers[index]!;
    if (available >= marker.length) {
      if (input.buffer.startsWith(marker, start)) return index;
    } else if (!input.ended && marker.startsWith(input.buffer.slice(start))) {
      return undecided;
    }
  }
  return none;
}

/** The marker at the offset, or undefined. The list must be sorted longest first (`markers`). */
export function* markerAt(input: Input, list: readonly string[], offset = 0): Reading<string | undefined> {
  for (;;) {
    const found = testMarkers(input, list, offset);
    if (found !== undecided) return found === none ? undefined : list[found];
    yield;
  }
}

/** Longest first, without repeats: the order in which markers are tried. */
export function markers(...lists: readonly (readonly string[])[]): readonly string[] {
  return [...new Set(lists.flat())].filter((marker) => marker !== "").toSorted((a, b) => b.length - a.length);
}

/** The same for markers that are looked for after white space was skipped: what they begin with of it is gone by then. */
export function afterSpaceMarkers(...lists: readonly (readonly string[])[]): readonly string[] {
  return markers(lists.flat().map((marker) => marker.trimStart()));
}

/** Consumes one of the markers if it stands here. */
export function* skipMarker(input: Input, list: readonly string[]): Reading<string | undefined> {
  const marker = yield* markerAt(input, list);
  if (marker !== undefined) take(input, marker.length);
  return marker;
}

export function isSpace(code: number): boolean {
  return code === 32 || code === 10 || code === 13 || code === 9;
}

/** No reasonable answer has more white space between two pieces of markup. */
const spaceLimit = 65_536;

/** Offset of the first character that is no white space; at the end, the offset of the end. */
export function* afterSpace(input: Input, offset = 0): Reading<number> {
  return offset + (yield* runLength(input, isSpace, spaceLimit, offset));
}

export function* skipSpace(input: Input): Reading<string> {
  return take(input, yield* afterSpace(input));
}

export interface Scanner {
  readonly markers: readonly string[];
  /** First characters of markers: 1 at the codes of those in ASCII, and the rest in a set. */
  readonly firsts: Uint8Array;
  readonly others: ReadonlySet<number>;
  /** The one first character, if all of them share it. */
  readonly only: string | undefined;
}

export function createScanner(...lists: readonly (readonly string[])[]): Scanner {
  const list = markers(...lists);
  const codes = new Set(list.map((marker) => marker.charCodeAt(0)));
  const firsts = new Uint8Array(128);
  for (const code of codes) if (code < 128) firsts[code] = 1;
  const others = new Set([...codes].filter((code) => code >= 128));
  return { markers: list, firsts, others, only: codes.size === 1 ? list[0]!.charAt(0) : undefined };
}

function nextCandidate(input: Input, scanner: Scanner, from: number): number {
  if (scanner.only !== undefined) {
    const found = input.buffer.indexOf(scanner.only, from);
    return found < 0 ? input.buffer.length : found;
  }
  const { buffer } = input;
  for (let at = from; at < buffer.length; at++) {
    const code = buffer.charCodeAt(at);
    if (code < 128 ? scanner.firsts[code] === 1 : scanner.others.has(code)) return at;
  }
  return buffer.length;
}

/**
 * Passes text to `sink` until a marker stands at the cursor, and returns the marker; undefined at the
 * end. Holds back only what may still become a marker.
 */
export function* textUntil(input: Input, scanner: Scanner, sink: (text: string) => void): Reading<string | undefined> {
  for (;;) {
    const found = scan(input, scanner, sink);
    if (found >= 0) return scanner.markers[found];
    if (input.ended) return undefined;
    yield* pause(input, () => scan(input, scanner, sink) < 0);
  }
}

/** Passes on what is not a marker. Returns which marker then stands at the cursor, if any. */
function scan(input: Input, scanner: Scanner, sink: (text: string) => void): number {
  let at = input.at;
  let found = none;
  while (at < input.buffer.length) {
    at = nextCandidate(input, scanner, at);
    if (at >= input.buffer.length) break;
    found = testMarkers(input, scanner.markers, at - input.at);
    if (found !== none) break;
    at++;
  }
  if (at > input.at) sink(take(input, at - input.at));
  return found;
}

/** Waits for text that `absorb` cannot take by itself. */
export function* pause(input: Input, absorb: () => boolean): Reading<void> {
  input.absorb = absorb;
  yield;
  input.absorb = undefined;
}

/** The rest of a line or of a name: text up to one of the stop characters, at most `limit` long. Undefined if none came. */
export function* wordUntil(input: Input, stops: string, limit = 256): Reading<string | undefined> {
  let length = 0;
  for (;;) {
    const code = yield* codeAt(input, length);
    if (code < 0 || length > limit) return undefined;
    if (stops.includes(String.fromCharCode(code))) return take(input, length);
    length++;
  }
}

/** Runs a reader over text that is complete, so it never pauses. */
export function readAll<T>(
  text: string,
  read: (input: Input) => Reading<T>,
): { readonly value: T; readonly rest: string } {
  const input = createInput(text, true);
  const step = read(input).next();
  if (step.done !== true) throw new TypeError("a reader paused although the text had ended");
  return { value: step.value, rest: input.buffer.slice(input.at) };
}
