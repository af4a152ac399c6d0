/**
 * The layout of fields in a request to the launcher: a letter, a length (4 bytes, little endian) and
 * that many bytes.
 */
import { StartError } from "./child.ts";

export interface Fields {
  text(tag: string, value: string): void;
  bytes(tag: string, value: Uint8Array): void;
  /** Fields that were written before. */
  whole(fields: Uint8Array): void;
  numbers(tag: string, values: readonly number[], size: 2 | 4 | 8): void;
  end(): Buffer;
}

/**
 * Writes into one growing buffer, because a request has some hundred fields, and one buffer for each
 * would cost more than sending them.
 */
export function createFields(): Fields {
  let buffer = Buffer.allocUnsafe(4000); // just small enough that Node takes it from a piece of memory that it has
  let at = 0;

  function makeRoom(size: number): void {
    if (at + size <= buffer.length) return;
    const larger = Buffer.allocUnsafe(Math.max(buffer.length * 2, at + size));
    buffer.copy(larger, 0, 0, at);
    buffer = larger;
  }

  function close(tag: string, size: number): void {
    buffer[at] = tag.charCodeAt(0);
    buffer.writeUInt32LE(size, at + 1);
    at += 5 + size;
  }

  function bytes(tag: string, value: Uint8Array): void {
    makeRoom(5 + value.length);
    buffer.set(value, at + 5);
    close(tag, value.length);
  }

  return {
    bytes,
    text(tag, value) {
      refuseNul(value);
      makeRoom(6 + value.length * 3); // the most that UTF-8 can take
      const size = buffer.write(value, at + 5, "utf8");
      buffer[at + 5 + size] = 0;
      close(tag, size + 1);
    },
    whole(fields) {
      makeRoom(fields.length);
      buffer.set(fields, at);
      at += fields.length;
    },
    numbers: (tag, values, size) => bytes(tag, pack(values, size)),
    end: () => buffer.subarray(0, at),
  };
}

function refuseNul(value: string): void {
  if (value.includes("\0")) throw new StartError("exec", "EINVAL", "a NUL byte cannot be part of a command");
}

export function cString(value: string): Buffer {
  refuseNul(value);
  return Buffer.from(`${value}\0`);
}

export function pack(values: readonly number[], size: 2 | 4 | 8): Buffer {
  const packed = Buffer.alloc(values.length * size);
  for (const [index, value] of values.entries()) {
    if (size === 8) packed.writeBigUInt64LE(value === Infinity ? 0xffff_ffff_ffff_ffffn : BigInt(value), index * 8);
    else if (size === 4) packed.writeUInt32LE(value, index * 4);
    else packed.writeUInt16LE(Math.min(value, 0xffff), index * 2);
  }
  return packed;
}
