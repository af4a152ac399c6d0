import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { countBreaks, createCapture, decodeBytes } from "../../../src/runtime/process/capture.ts";
import type { ExecChunk } from "../../../src/spec/capability.ts";
import { createDeltas } from "../../../src/runtime/process/deltas.ts";
import { createRecording, type KeptFile } from "../../../src/runtime/process/run.ts";

/** `bytes` in the pieces that `cuts` make of it. */
function pieces(bytes: Buffer, cuts: readonly number[]): Buffer[] {
  const at = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).toSorted((a, b) => a - b), bytes.length];
  return at.slice(1).map((end, index) => bytes.subarray(at[index], end));
}

const texts = fc.string({ unit: "grapheme", maxLength: 400 });
const cuts = fc.array(fc.nat(2000), { maxLength: 20 });

describe("what is kept of an output", () => {
  test("of a command that said nothing is nothing, and no binary", () => {
    const nothing = { head: "", tail: "", droppedBytes: 0, totalBytes: 0, lineBreaks: 0, binary: false };
    for (const limit of [0, 10]) expect(createCapture(limit).read()).toEqual(nothing);
  });

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
    capture.skip(1000, 7);
    capture.push(Buffer.from("last\n"));
    expect(capture.read()).toEqual({
      head: "first ",
      tail: "last\n",
      droppedBytes: 1000,
      totalBytes: 1011,
      lineBreaks: 8,
      binary: false,
    });
  });

  test("counts line breaks wherever the bytes lie in memory", () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom(0x0a, 0x0b, 0x8a, 0x00, 0x61, 0xff)), fc.nat(7), (list, offset) => {
        const bytes = Buffer.concat([Buffer.alloc(offset), Buffer.from(list)]).subarray(offset);
        expect(countBreaks(bytes)).toBe(list.filter((byte) => byte === 0x0a).length);
      }),
    );
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

  test("stop at a bound, are never longer than 8 KiB, and the last one says how much was left out", () => {
    const seen: ExecChunk[] = [];
    const deltas = createDeltas((chunk) => seen.push(chunk));
    for (let round = 0; round < 50; round++) deltas.push("stdout", Buffer.alloc(100_000, "x"));
    deltas.skip("stdout", 11);
    deltas.push("stderr", Buffer.from("late"));
    deltas.end();
    const shown = seen.reduce((sum, { text }) => sum + text.length, 0);
    expect(shown).toBeLessThanOrEqual(256 * 1024);
    expect(Math.max(...seen.map(({ text }) => text.length))).toBeLessThanOrEqual(8192);
    expect(seen.slice(-2)).toEqual([
      { stream: "stdout", text: "", omittedBytes: 5_000_011 - shown },
      { stream: "stderr", text: "", omittedBytes: 4 },
    ]);
  });

  test("are few even where every byte comes alone", () => {
    const seen: ExecChunk[] = [];
    const deltas = createDeltas((chunk) => seen.push(chunk));
    for (let round = 0; round < 20_000; round++) deltas.push("stdout", Buffer.from("x"));
    deltas.end();
    expect(seen.length).toBeLessThanOrEqual(2_002);
    expect(seen.reduce((sum, { text, omittedBytes = 0 }) => sum + text.length + omittedBytes, 0)).toBe(20_000);
  });
});

describe("a recording of two streams", () => {
  const streams = fc.array(
    fc.record({
      stream: fc.constantFrom("stdout" as const, "stderr" as const),
      bytes: fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.from(bytes)),
    }),
    { maxLength: 30 },
  );

  test("counts truly, and keeps in its file what came, in order, up to the bound", () => {
    fc.assert(
      fc.property(streams, fc.integer({ min: 1, max: 200 }), fc.nat(900), (pieces, maxBytes, keepBytes) => {
        const written: Buffer[] = [];
        const keep = (): KeptFile => ({
          path: "/kept",
          write: (bytes) => void written.push(Buffer.from(bytes)),
          writeBeginning() {},
          close() {},
        });
        const recording = createRecording({ maxBytes, keep, keepBytes });
        for (const { stream, bytes } of pieces) recording.push(stream, bytes);
        const { stdout, stderr, output } = recording.take();
        const all = Buffer.concat(pieces.map(({ bytes }) => bytes));
        const of = (name: string) =>
          Buffer.concat(pieces.filter(({ stream }) => stream === name).map(({ bytes }) => bytes));
        for (const [captured, bytes] of [
          [output, all],
          [stdout, of("stdout")],
          [stderr, of("stderr")],
        ] as const) {
          expect([captured.totalBytes, captured.lineBreaks]).toEqual([bytes.length, countBreaks(bytes)]);
          if (bytes.length <= maxBytes) expect(captured.head).toBe(decodeBytes(bytes).text);
        }
        const isLong = all.length > maxBytes && keepBytes > 0;
        expect(output.kept).toEqual(isLong ? { path: "/kept", bytes: Math.min(all.length, keepBytes) } : undefined);
        if (isLong) expect(Buffer.concat(written)).toEqual(all.subarray(0, keepBytes));
      }),
    );
  });

  test("keeps the bytes of what is no UTF-8", () => {
    const recording = createRecording({ maxBytes: 100, keep: undefined, keepBytes: 0 });
    recording.push("stdout", Buffer.from([0x64, 0xe9, 0x6a, 0xe0]));
    const { output } = recording.take();
    expect([output.head, [...output.raw!]]).toEqual(["déjà", [0x64, 0xe9, 0x6a, 0xe0]]);
  });

  test("starts over when it is taken, with a file of its own", () => {
    let files = 0;
    const keep = (): KeptFile => ({ path: `/kept-${++files}`, write() {}, writeBeginning() {}, close() {} });
    const recording = createRecording({ maxBytes: 4, keep, keepBytes: 100 });
    recording.push("stdout", Buffer.from("long enough"));
    expect(recording.take().output.kept?.path).toBe("/kept-1");
    recording.push("stdout", Buffer.from("and again"));
    expect(recording.take().output.kept).toEqual({ path: "/kept-2", bytes: 9 });
    expect(recording.take().output.totalBytes).toBe(0);
  });

  test("a disk that is full ends the keeping, and no more is promised than was written", () => {
    let room = 6;
    const keep = (): KeptFile => ({
      path: "/kept",
      write(bytes) {
        if ((room -= bytes.length) < 0) throw new Error("ENOSPC");
      },
      writeBeginning() {},
      close() {},
    });
    const recording = createRecording({ maxBytes: 4, keep, keepBytes: 100 });
    for (const piece of ["abcd", "ef", "gh", "ij"]) recording.push("stdout", Buffer.from(piece));
    expect(recording.take().output.kept).toEqual({ path: "/kept", bytes: 6 });
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
    expect(decodeBytes(bytes)).toMatchObject({ text, binary });
  });

  test("with a NUL are no text", () => {
    expect(decodeBytes(Buffer.from([0x7f, 0x45, 0x4c, 0x46, 0, 0, 1])).binary).toBe(true);
  });
});
