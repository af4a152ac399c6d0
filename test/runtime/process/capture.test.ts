import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createCapture } from "../../../src/runtime/process/capture.ts";
import { decodeBytes } from "../../../src/runtime/process/decode.ts";
import { createDeltas } from "../../../src/runtime/process/deltas.ts";

/** `bytes` in the pieces that `cuts` make of it. */
function pieces(bytes: Buffer, cuts: readonly number[]): Buffer[] {
  const at = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).toSorted((a, b) => a - b), bytes.length];
  return at.slice(1).map((end, index) => bytes.subarray(at[index], end));
}

const texts = fc.string({ unit: "grapheme", maxLength: 400 });
const cuts = fc.array(fc.nat(2000), { maxLength: 20 });

describe("what is kept of an output", () => {
  test("is all of it when it fits, however it was cut", () => {
    fc.assert(
      fc.property(texts, cuts, (text, at) => {
        const bytes = Buffer.from(text);
        const capture = createCapture(bytes.length + 1);
        for (const piece of pieces(bytes, at)) capture.push(piece);
        expect(capture.read()).toMatchObject({
          head: decodeBytes(bytes).text,
          tail: "",
          droppedBytes: 0,
          totalBytes: bytes.length,
        });
      }),
    );
  });

  test("never exceeds the limit, is made of whole characters, and every byte is kept or counted", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom("a", "é", "✓", "😀", "\n"), maxLength: 400 }),
        cuts,
        fc.integer({ min: 1, max: 300 }),
        (text, at, max) => {
          const bytes = Buffer.from(text);
          const capture = createCapture(max);
          for (const piece of pieces(bytes, at)) capture.push(piece);
          const { head, tail, droppedBytes, totalBytes } = capture.read();
          expect(Buffer.byteLength(head + tail)).toBeLessThanOrEqual(max);
          expect(Buffer.byteLength(head) + Buffer.byteLength(tail) + droppedBytes).toBe(totalBytes);
          expect(text.startsWith(head)).toBe(true);
          expect(text.endsWith(tail)).toBe(true);
        },
      ),
    );
  });

  test("tells of bytes that were thrown away before they came", () => {
    const capture = createCapture(100);
    capture.push(Buffer.from("first "));
    capture.skip(1000);
    capture.push(Buffer.from("last"));
    expect(capture.take()).toEqual({
      head: "first ",
      tail: "last",
      droppedBytes: 1000,
      totalBytes: 1010,
      binary: false,
    });
    expect(capture.read().totalBytes).toBe(0);
  });
});

describe("events of an output", () => {
  test("are the output, in whole characters", () => {
    fc.assert(
      fc.property(texts, cuts, (text, at) => {
        const seen: string[] = [];
        const deltas = createDeltas(({ text: piece }) => seen.push(piece));
        for (const piece of pieces(Buffer.from(text), at)) deltas.push("stdout", piece);
        deltas.end();
        expect(seen.join("")).toBe(Buffer.from(text).toString());
      }),
    );
  });

  test("stop at their limit and are never longer than 8 KiB", () => {
    const seen: string[] = [];
    const deltas = createDeltas(({ text }) => seen.push(text), 3);
    deltas.push("stdout", Buffer.alloc(100_000, "x"));
    expect(seen.map(({ length }) => length)).toEqual([8192, 8192, 8192]);
  });
});

describe("bytes", () => {
  test.each([
    ["UTF-8", Buffer.from("naïve ✓"), "naïve ✓", false],
    ["UTF-8 with one bad byte", Buffer.concat([Buffer.from("naïve ✓ "), Buffer.of(0xff)]), "naïve ✓ \ufffd", false],
    ["Latin", Buffer.from("déjà vu", "latin1"), "déjà vu", false],
    ["UTF-16 with its mark", Buffer.from("\ufeffwide", "utf16le"), "wide", false],
    ["colours of a terminal", Buffer.from("\u001b[31mred\u001b[0m\r\n"), "\u001b[31mred\u001b[0m\r\n", false],
  ])("of %s become their text", (_name, bytes, text, binary) => {
    expect(decodeBytes(bytes)).toEqual({ text, binary });
  });

  test("with a NUL are no text", () => {
    expect(decodeBytes(Buffer.from([0x7f, 0x45, 0x4c, 0x46, 0, 0, 1])).binary).toBe(true);
  });
});
