/** The first and the last bytes of an output, in bounded memory however long it is, with exact counts of the whole. */
import { isUtf8 } from "node:buffer";
import type { CapturedOutput } from "../../spec/capability.ts";

export interface Capture {
  /** `breaks`: how many of these bytes end a line, if that is known. */
  push(bytes: Buffer, breaks?: number): void;
  /** Bytes that were thrown away before they came here. They lie before the next push. */
  skip(count: number, breaks: number): void;
  totalBytes(): number;
  /** All of it in pieces, as long as nothing was left out. */
  pieces(): readonly Buffer[];
  /** A copy that continues independently from here. */
  clone(): Capture;
  /** What has been captured so far. */
  read(): CapturedOutput;
}

const emptyOutput: CapturedOutput = {
  head: "",
  tail: "",
  droppedBytes: 0,
  totalBytes: 0,
  lineBreaks: 0,
  binary: false,
};

export function createCapture(maxBytes: number): Capture {
  return captureFrom(maxBytes, {
    head: [],
    headBytes: 0,
    total: 0,
    breaks: 0,
    ringAt: 0,
    ringBytes: 0,
    skipped: false,
  });
}

interface State {
  head: Buffer[];
  headBytes: number;
  total: number;
  breaks: number;
  /** Of fixed size, because pieces kept by reference would keep alive the far larger buffers they were read into. */
  ring?: Buffer;
  ringAt: number;
  ringBytes: number;
  skipped: boolean;
}

function captureFrom(maxBytes: number, state: State): Capture {
  const headLimit = Math.ceil(maxBytes / 2);
  const tailLimit = maxBytes - headLimit;

  function pushTail(bytes: Buffer): void {
    if (tailLimit === 0 || bytes.length === 0) return;
    const ring = (state.ring ??= Buffer.allocUnsafe(tailLimit));
    const kept = bytes.length > tailLimit ? bytes.subarray(bytes.length - tailLimit) : bytes;
    const first = Math.min(kept.length, tailLimit - state.ringAt);
    kept.copy(ring, state.ringAt, 0, first);
    kept.copy(ring, 0, first);
    state.ringAt = (state.ringAt + kept.length) % tailLimit;
    state.ringBytes = Math.min(tailLimit, state.ringBytes + kept.length);
  }

  function tailPieces(): readonly Buffer[] {
    const { ring, ringAt, ringBytes } = state;
    if (!ring || ringBytes === 0) return [];
    return ringBytes < tailLimit ? [ring.subarray(0, ringBytes)] : [ring.subarray(ringAt), ring.subarray(0, ringAt)];
  }

  function read(): CapturedOutput {
    const { total, breaks } = state;
    if (total === 0) return emptyOutput;
    const counts = { totalBytes: total, lineBreaks: breaks };
    if (total === state.headBytes + state.ringBytes) {
      const whole = join([...state.head, ...tailPieces()]);
      const { text, binary, faithful } = decodeBytes(whole);
      return { head: text, tail: "", droppedBytes: 0, ...counts, binary, ...(faithful ? {} : { raw: whole }) };
    }
    const headBuffer = join(state.head);
    const tailBuffer = join(tailPieces());
    const start = headBuffer.subarray(0, wholeCharactersEnd(headBuffer));
    const end = tailBuffer.subarray(wholeCharactersStart(tailBuffer));
    const first = decodeBytes(start);
    const last = decodeBytes(end);
    const droppedBytes = total - start.length - end.length;
    return { head: first.text, tail: last.text, droppedBytes, ...counts, binary: first.binary || last.binary };
  }

  return {
    push(bytes, breaks = countBreaks(bytes)) {
      state.total += bytes.length;
      state.breaks += breaks;
      if (state.skipped) return pushTail(bytes);
      const room = headLimit - state.headBytes;
      if (room > 0) {
        const part = bytes.length <= room ? bytes : bytes.subarray(0, room);
        state.head.push(compact(part));
        state.headBytes += part.length;
      }
      if (bytes.length > room) pushTail(bytes.subarray(Math.max(0, room)));
    },
    skip(count, breaks) {
      state.total += count;
      state.breaks += breaks;
      if (count > 0) state.skipped = true;
      // What lies before the gap is not the end of the output, so only the head stays.
      state.ringAt = state.ringBytes = 0;
    },
    totalBytes: () => state.total,
    pieces: () => [...state.head, ...tailPieces()],
    clone: () =>
      captureFrom(maxBytes, {
        ...state,
        head: [...state.head],
        ...(state.ring ? { ring: Buffer.from(state.ring) } : {}),
      }),
    read,
  };
}

function join(pieces: readonly Buffer[]): Buffer {
  return pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces);
}

const lineBreak = 0x0a;
const noWords = new Int32Array(0);

/** Four bytes at a time, because counting one by one would cost more than reading. */
export function countBreaks(bytes: Uint8Array): number {
  const { length } = bytes;
  let count = 0;
  let at = 0;
  const aligned = Math.min(length, (4 - (bytes.byteOffset & 3)) & 3);
  for (; at < aligned; at++) if (bytes[at] === lineBreak) count++;
  const words = length - at < 4 ? noWords : new Int32Array(bytes.buffer, bytes.byteOffset + at, (length - at) >> 2);
  for (let index = 0; index < words.length; index++) {
    const word = words[index]! ^ 0x0a0a0a0a; // a line break is now a zero byte
    const zeros = ~(((word & 0x7f7f7f7f) + 0x7f7f7f7f) | word) & 0x80808080;
    if (zeros !== 0) count += Math.imul((zeros >>> 7) & 0x01010101, 0x01010101) >>> 24;
  }
  for (at += words.length * 4; at < length; at++) if (bytes[at] === lineBreak) count++;
  return count;
}

/** Copies a small view, which would otherwise keep a large read buffer alive. */
function compact(bytes: Buffer): Buffer {
  return bytes.length * 2 < bytes.buffer.byteLength ? Buffer.from(bytes) : bytes;
}

/** Where the last complete UTF-8 character ends. */
function wholeCharactersEnd(bytes: Uint8Array): number {
  const length = bytes.length;
  for (let back = 1; back <= Math.min(4, length); back++) {
    const byte = bytes[length - back]!;
    if ((byte & 0xc0) === 0x80) continue;
    const needs = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    return needs > back ? length - back : length;
  }
  return length;
}

/** Where the first complete UTF-8 character starts. */
function wholeCharactersStart(bytes: Uint8Array): number {
  let start = 0;
  while (start < Math.min(3, bytes.length) && (bytes[start]! & 0xc0) === 0x80) start++;
  return start;
}

interface DecodedBytes {
  readonly text: string;
  readonly binary: boolean;
  /** Encoding the text as UTF-8 gives these bytes again. */
  readonly faithful: boolean;
}

/**
 * Decodes the bytes of a command: UTF-8 as it is, and other encodings where they can be told apart
 * from binary data.
 */
export function decodeBytes(bytes: Uint8Array): DecodedBytes {
  const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const utf16 = utf16Label(view);
  if (utf16) return { text: new TextDecoder(utf16).decode(view), binary: false, faithful: false };
  const binary = looksBinary(view);
  const faithful = isUtf8(view);
  if (binary || faithful || isMostlyUtf8(view)) return { text: view.toString("utf8"), binary, faithful };
  return { text: new TextDecoder("windows-1252").decode(view), binary: false, faithful };
}

function utf16Label(bytes: Buffer): "utf-16le" | "utf-16be" | undefined {
  if (bytes.length < 2 || bytes.length % 2 !== 0) return undefined;
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return "utf-16le";
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return "utf-16be";
  return undefined;
}

const sampleBytes = 8192;

/** Looks in the first bytes for a NUL, or for control characters that neither text nor terminal output has. */
function looksBinary(bytes: Buffer): boolean {
  const sample = bytes.subarray(0, sampleBytes);
  if (sample.includes(0)) return true;
  let odd = 0;
  for (const byte of sample) {
    // Tab to carriage return, bell, backspace and escape are normal in terminal output.
    if (byte < 0x20 && !(byte >= 0x07 && byte <= 0x0d) && byte !== 0x1b) odd++;
  }
  return odd > sample.length / 10;
}

/** One bad byte does not turn a UTF-8 text into another encoding. */
function isMostlyUtf8(bytes: Buffer): boolean {
  let whole = 0;
  let broken = 0;
  for (let at = 0; at < bytes.length;) {
    const byte = bytes[at]!;
    if (byte < 0x80) {
      at++;
      continue;
    }
    const length = byte >= 0xf0 && byte < 0xf5 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc2 ? 2 : 1;
    if (length > 1 && byte < 0xf5 && isUtf8(bytes.subarray(at, at + length))) {
      whole++;
      at += length;
    } else {
      broken++;
      at++;
    }
  }
  return whole >= broken && whole > 0;
}
