import type { CapturedOutput } from "../../spec/capability.ts";
import { decodeBytes } from "./decode.ts";

/** Keeps the first and the last bytes of an output in bounded memory, however long it is. */
export interface Capture {
  push(bytes: Buffer): void;
  /** Bytes that were thrown away before they came here; they lie before the next push. */
  skip(count: number): void;
  readonly totalBytes: number;
  /** What is there now. */
  read(): CapturedOutput;
  /** What is there now, and starts over. */
  take(): CapturedOutput;
}

const emptyOutput: CapturedOutput = { head: "", tail: "", droppedBytes: 0, totalBytes: 0, binary: false };

export function createCapture(maxBytes: number): Capture {
  const headLimit = Math.ceil(maxBytes / 2);
  const tailLimit = maxBytes - headLimit;
  let head: Buffer[] = [];
  let headBytes = 0;
  let total = 0;
  // The tail is a list while it is short and a ring of fixed size once it has been full: chunks kept
  // by reference would hold the far larger buffers they were read into.
  let ring: Buffer | undefined;
  let ringAt = 0;
  let ringBytes = 0;
  let skipped = 0;

  function pushTail(bytes: Buffer): void {
    if (tailLimit === 0 || bytes.length === 0) return;
    ring ??= Buffer.allocUnsafe(tailLimit);
    const kept = bytes.length > tailLimit ? bytes.subarray(bytes.length - tailLimit) : bytes;
    const first = Math.min(kept.length, tailLimit - ringAt);
    kept.copy(ring, ringAt, 0, first);
    kept.copy(ring, 0, first);
    ringAt = (ringAt + kept.length) % tailLimit;
    ringBytes = Math.min(tailLimit, ringBytes + kept.length);
  }

  function readTail(): Buffer {
    if (!ring || ringBytes === 0) return Buffer.alloc(0);
    if (ringBytes < tailLimit) return ring.subarray(0, ringBytes);
    return Buffer.concat([ring.subarray(ringAt), ring.subarray(0, ringAt)]);
  }

  function read(): CapturedOutput {
    if (total === 0) return emptyOutput;
    const headBuffer = head.length === 1 ? head[0]! : Buffer.concat(head);
    const tailBuffer = readTail();
    if (total === headBuffer.length + tailBuffer.length) {
      const whole = tailBuffer.length === 0 ? headBuffer : Buffer.concat([headBuffer, tailBuffer]);
      const { text, binary } = decodeBytes(whole);
      return { head: text, tail: "", droppedBytes: 0, totalBytes: total, binary };
    }
    const start = headBuffer.subarray(0, wholeCharactersEnd(headBuffer));
    const end = tailBuffer.subarray(wholeCharactersStart(tailBuffer));
    const first = decodeBytes(start);
    const last = decodeBytes(end);
    const droppedBytes = total - start.length - end.length;
    return { head: first.text, tail: last.text, droppedBytes, totalBytes: total, binary: first.binary || last.binary };
  }

  function clear(): void {
    head = [];
    headBytes = ringAt = ringBytes = total = skipped = 0;
    ring = undefined;
  }

  return {
    push(bytes) {
      total += bytes.length;
      if (skipped > 0) return pushTail(bytes);
      const room = headLimit - headBytes;
      if (room > 0) {
        const part = bytes.length <= room ? bytes : bytes.subarray(0, room);
        head.push(compact(part));
        headBytes += part.length;
      }
      if (bytes.length > room) pushTail(bytes.subarray(Math.max(0, room)));
    },
    skip(count) {
      total += count;
      skipped += count;
      // What lies before the gap is not the end of the output: only the head stays.
      ringAt = ringBytes = 0;
    },
    get totalBytes() {
      return total;
    },
    read,
    take() {
      const taken = read();
      clear();
      return taken;
    },
  };
}

/** A small view into a large read buffer would keep all of it alive. */
function compact(bytes: Buffer): Buffer {
  return bytes.length * 2 < bytes.buffer.byteLength ? Buffer.from(bytes) : bytes;
}

/** Where the last whole UTF-8 character ends. */
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

/** Where the first whole UTF-8 character starts. */
function wholeCharactersStart(bytes: Uint8Array): number {
  let start = 0;
  while (start < Math.min(3, bytes.length) && (bytes[start]! & 0xc0) === 0x80) start++;
  return start;
}
