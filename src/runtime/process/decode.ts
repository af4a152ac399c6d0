/** Bytes of a command to text: UTF-8 as it is, other encodings told apart from data that is no text at all. */
import { isUtf8 } from "node:buffer";

interface DecodedBytes {
  readonly text: string;
  readonly binary: boolean;
}

export function decodeBytes(bytes: Uint8Array): DecodedBytes {
  const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const utf16 = utf16Label(view);
  if (utf16) return { text: new TextDecoder(utf16).decode(view), binary: false };
  const binary = looksBinary(view);
  if (binary || isUtf8(view) || isMostlyUtf8(view)) return { text: view.toString("utf8"), binary };
  return { text: new TextDecoder("windows-1252").decode(view), binary: false };
}

function utf16Label(bytes: Buffer): "utf-16le" | "utf-16be" | undefined {
  if (bytes.length < 2 || bytes.length % 2 !== 0) return undefined;
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return "utf-16le";
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return "utf-16be";
  return undefined;
}

const sampleBytes = 8192;

/** A NUL, or control characters that no text and no terminal output has, in the first bytes. */
function looksBinary(bytes: Buffer): boolean {
  const sample = bytes.subarray(0, sampleBytes);
  if (sample.includes(0)) return true;
  let odd = 0;
  for (const byte of sample) {
    // Tab to carriage return, bell, backspace and escape are how terminals talk.
    if (byte < 0x20 && !(byte >= 0x07 && byte <= 0x0d) && byte !== 0x1b) odd++;
  }
  return odd > sample.length / 10;
}

/** One bad byte in a UTF-8 text does not make it another encoding. */
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
