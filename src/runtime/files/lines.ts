/** Reads some lines of a file, from its beginning or its end, without reading the rest. */
import { readSync } from "node:fs";
import { setImmediate } from "node:timers/promises";
import type { FileSlice } from "../../spec/capability.ts";

export interface SliceOptions {
  /** Only the first bytes of longer lines are kept. */
  readonly maxLineBytes: number;
  /** How many bytes to read after the first wanted line was found. */
  readonly maxBytes: number;
}

const chunkBytes = 256 * 1024;
const smallBytes = 64 * 1024;
const headBytes = 512;
const newline = 0x0a;
/** How many chunks a long scan reads before it lets other work run. */
const chunksPerBreath = 32;

/** An open file, and how long it was when it was looked at. */
export interface OpenFile {
  readonly fd: number;
  readonly size: number;
}

/** Lines `from` to `to`, counted from 1, or from the end if negative (-1 is the last). */
export async function sliceLines(
  { fd, size }: OpenFile,
  from: number,
  to: number,
  options: SliceOptions,
): Promise<FileSlice> {
  if (from === 1 && size <= smallBytes) return sliceSmall(fd, size, to, options.maxLineBytes);
  const found = from < 0 ? findFromEnd(fd, size, -from) : { start: await findFromStart(fd, from), lacking: 0 };
  const { start, lacking } = found;
  if (start === undefined) return { lines: [], first: from, more: false, head: readHead(fd), sizeBytes: size };
  // The file may begin after the line that was asked for, and even after the last one.
  const first = from + lacking;
  if (first > to) return { lines: [], first, more: size > 0, head: readHead(fd), sizeBytes: size };
  return readFrom(fd, { start, first, wanted: to - first + 1, size }, options);
}

/** Most files are small: they are read, decoded and split at once. */
function sliceSmall(fd: number, size: number, wanted: number, maxLineBytes: number): FileSlice {
  const buffer = Buffer.allocUnsafe(size);
  const length = readSync(fd, buffer, 0, size, 0);
  const lines = buffer.toString("utf8", 0, length).split("\n");
  if (lines.at(-1) === "") lines.pop();
  const more = lines.length > wanted;
  const shown = (more ? lines.slice(0, wanted) : lines).map((line) => {
    const whole = line.endsWith("\r") ? line.slice(0, -1) : line;
    if (whole.length * 3 <= maxLineBytes || Buffer.byteLength(whole) <= maxLineBytes) return whole;
    return toLine(Buffer.from(whole).subarray(0, maxLineBytes), true);
  });
  return { lines: shown, first: 1, more, head: buffer.subarray(0, Math.min(headBytes, length)), sizeBytes: size };
}

function readHead(fd: number): Uint8Array {
  const buffer = Buffer.alloc(headBytes);
  return buffer.subarray(0, readSync(fd, buffer, 0, headBytes, 0));
}

/** The offset at which line `wanted` begins. Undefined if the file has fewer lines. */
async function findFromStart(fd: number, wanted: number): Promise<number | undefined> {
  if (wanted <= 1) return 0;
  const buffer = allocateChunk();
  let missing = wanted - 1;
  let position = 0;
  for (let chunk = 1; ; chunk++) {
    const length = readSync(fd, buffer.bytes, 0, chunkBytes, position);
    if (length === 0) return undefined;
    const found = countTo(buffer, length, missing);
    if (found.at >= 0) return position + found.at + 1;
    missing -= found.count;
    position += length;
    if (chunk % chunksPerBreath === 0) await setImmediate();
  }
}

/** Counts newlines in a chunk up to the `missing`-th. Returns its place, or -1 and how many there were. */
function countTo(chunk: Chunk, length: number, missing: number): { readonly at: number; readonly count: number } {
  const { bytes, words } = chunk;
  const wholeWords = length >> 2;
  let count = 0;
  for (let word = 0; word < wholeWords; word++) {
    // Four bytes at a time: the xor turns a newline into a zero byte, and only then does a high bit survive.
    const mixed = words[word]! ^ 0x0a0a0a0a;
    if (((mixed - 0x01010101) & ~mixed & 0x80808080) === 0) continue;
    for (let index = word << 2; index < (word << 2) + 4; index++) {
      if (bytes[index] === newline && ++count === missing) return { at: index, count };
    }
  }
  for (let index = wholeWords << 2; index < length; index++) {
    if (bytes[index] === newline && ++count === missing) return { at: index, count };
  }
  return { at: -1, count };
}

/** The same memory as bytes and as words. */
interface Chunk {
  readonly bytes: Buffer;
  readonly words: Int32Array;
}

function allocateChunk(): Chunk {
  const memory = new ArrayBuffer(chunkBytes);
  return { bytes: Buffer.from(memory), words: new Int32Array(memory) };
}

/**
 * The offset at which the `count`-th line from the end begins, read backwards. `lacking` lines are not
 * there, because the file is shorter.
 */
function findFromEnd(fd: number, size: number, count: number): { readonly start: number; readonly lacking: number } {
  const buffer = Buffer.allocUnsafe(chunkBytes);
  let missing = count;
  for (let end = size; end > 0;) {
    const start = Math.max(0, end - chunkBytes);
    const length = readSync(fd, buffer, 0, end - start, start);
    for (let index = length - 1; index >= 0; index--) {
      // The newline at the very end of the file does not begin another line.
      if (buffer[index] !== newline || start + index === size - 1) continue;
      if (--missing === 0) return { start: start + index + 1, lacking: 0 };
    }
    end = start;
  }
  return { start: 0, lacking: size === 0 ? count : missing - 1 };
}

/** What to read, once the first byte is known. */
interface Span {
  readonly start: number;
  readonly first: number;
  readonly wanted: number;
  readonly size: number;
}

async function readFrom(fd: number, { start, first, wanted, size }: Span, options: SliceOptions): Promise<FileSlice> {
  const buffer = Buffer.allocUnsafe(Math.max(headBytes, Math.min(chunkBytes, size - start)));
  const collector = createCollector(options.maxLineBytes);
  let head = start === 0 ? undefined : readHead(fd);
  let position = start;
  for (let chunk = 1; ; chunk++) {
    const length = readSync(fd, buffer, 0, buffer.length, position);
    head ??= Uint8Array.prototype.slice.call(buffer, 0, Math.min(headBytes, length));
    position += length;
    if (length === 0 || collector.take(buffer.subarray(0, length), wanted)) break;
    if (position >= size || position - start >= options.maxBytes) break;
    if (chunk % chunksPerBreath === 0) await setImmediate();
  }
  const { lines, rest } = collector.finish(wanted);
  return { lines, first, more: rest || position < size, head, sizeBytes: size };
}

/** Splits bytes into lines. Only the beginning of a line that is too long is kept. */
function createCollector(maxLineBytes: number) {
  const lines: string[] = [];
  let held: Buffer[] = [];
  let heldBytes = 0;
  /** The length of the line that is being read, including what is not kept of it. */
  let lineBytes = 0;
  let rest = false;

  const keep = (bytes: Buffer) => {
    lineBytes += bytes.length;
    const room = maxLineBytes - heldBytes;
    if (room <= 0 || bytes.length === 0) return;
    // Copied, because the chunk's memory is reused for the next one.
    held.push(Buffer.from(bytes.subarray(0, room)));
    heldBytes += Math.min(room, bytes.length);
  };
  const flush = (end: Buffer) => {
    const isCut = lineBytes + end.length > maxLineBytes;
    if (held.length === 0) lines.push(toLine(end.subarray(0, maxLineBytes), isCut));
    else {
      keep(end);
      lines.push(toLine(Buffer.concat(held), isCut));
    }
    held = [];
    heldBytes = 0;
    lineBytes = 0;
  };

  return {
    /** True when there are enough lines. */
    take(bytes: Buffer, wanted: number): boolean {
      let from = 0;
      while (lines.length < wanted) {
        const at = bytes.indexOf(newline, from);
        if (at < 0) {
          keep(bytes.subarray(from));
          return lines.length === wanted - 1 && heldBytes >= maxLineBytes;
        }
        flush(bytes.subarray(from, at));
        from = at + 1;
      }
      rest = from < bytes.length;
      return true;
    },
    finish(wanted: number): { readonly lines: readonly string[]; readonly rest: boolean } {
      if (heldBytes > 0 && lines.length < wanted) flush(Buffer.alloc(0));
      return { lines, rest };
    },
  };
}

function toLine(bytes: Buffer, isCut: boolean): string {
  if (isCut) return bytes.toString("utf8", 0, wholeCharacters(bytes));
  const end = bytes.length > 0 && bytes[bytes.length - 1] === 0x0d ? bytes.length - 1 : bytes.length;
  return bytes.toString("utf8", 0, end);
}

/** Where the last whole character ends. */
function wholeCharacters(bytes: Buffer): number {
  let start = bytes.length - 1;
  while (start > 0 && bytes.length - start < 4 && (bytes[start]! & 0xc0) === 0x80) start--;
  const lead = bytes[start] ?? 0;
  const needed = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
  return bytes.length - start < needed ? Math.max(0, start) : bytes.length;
}
