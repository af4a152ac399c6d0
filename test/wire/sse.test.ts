import * as fc from "fast-check";
import { createParser } from "eventsource-parser";
import { describe, expect, test } from "vitest";
import type { Frame } from "../../src/wire/codec.ts";
import { createSseReader, decodeSse, encodeSse } from "../../src/wire/sse.ts";
import { cpuMs } from "../work.ts";

function inChunks(body: Uint8Array, cuts: readonly number[]): readonly Frame[] {
  const reader = createSseReader();
  const bounds = [0, ...cuts.map((cut) => cut % (body.length + 1)).toSorted((a, b) => a - b), body.length];
  const frames = bounds.slice(1).flatMap((end, at) => [...reader.push(body.subarray(bounds[at], end))]);
  return [...frames, ...reader.end()];
}

const line = fc.string({ unit: "binary", maxLength: 12 }).map((text) => text.replaceAll(/[\r\n\u{feff}]/gu, "·"));
const field = fc.tuple(fc.constantFrom("data", "event", "id", "retry", "", "other"), fc.constantFrom(":", ": "), line);
const breaks = fc.constantFrom("\n", "\r\n", "\r");
const body = fc
  .array(fc.tuple(fc.array(field, { maxLength: 4 }), breaks), { maxLength: 6 })
  .map((events) => events.map(([fields, end]) => fields.map((parts) => parts.join("") + end).join("") + end).join(""));

describe("reading server-sent events", () => {
  test("cutting the bytes anywhere changes nothing", () => {
    fc.assert(
      fc.property(body, fc.array(fc.nat(200), { maxLength: 8 }), fc.boolean(), (text, cuts, marked) => {
        const bytes = new TextEncoder().encode((marked ? "\ufeff" : "") + text);
        const whole = decodeSse(bytes);
        expect(inChunks(bytes, cuts)).toEqual(whole);
        expect(
          inChunks(
            bytes,
            Array.from(bytes, (_, at) => at),
          ),
        ).toEqual(whole);
        expect(decodeSse(new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes))).toEqual(whole);
      }),
      { numRuns: 200 },
    );
  });

  test("agrees with eventsource-parser on everything that has data", () => {
    fc.assert(
      fc.property(body, (text) => {
        const theirs: Frame[] = [];
        const parser = createParser({ onEvent: ({ event, data }) => theirs.push(event ? { event, data } : { data }) });
        parser.feed(`${text}\n\n`);
        expect(decodeSse(`${text}\n\n`)).toEqual(theirs.filter((frame) => frame.data !== ""));
      }),
      { numRuns: 200 },
    );
  });

  test("what was written is read back", () => {
    const frame = fc.record({
      event: fc.option(fc.stringMatching(/^[a-z._]{1,10}$/), { nil: undefined }),
      data: fc.string({ minLength: 1 }),
    });
    fc.assert(
      fc.property(fc.array(frame), (frames) => {
        const clean = frames.map(({ event, data }) => ({
          ...(event === undefined ? {} : { event }),
          data: data.replaceAll("\r", "") || "x",
        }));
        expect(decodeSse(encodeSse(clean))).toEqual(clean);
      }),
    );
  });

  test("a body without the last blank line gives its last event too", () => {
    expect(decodeSse("data: a\n\ndata: [DONE]")).toEqual([{ data: "a" }, { data: "[DONE]" }]);
  });

  test("a long line fed byte by byte costs no more per byte", () => {
    const reader = createSseReader();
    const feed = () => {
      for (let at = 0; at < 400_000; at++) reader.push("x");
    };
    expect(cpuMs(feed)).toBeLessThan(5_000);
  });
});

test("a line that never ends is an error before it takes all memory", () => {
  const reader = createSseReader();
  const piece = "x".repeat(1 << 23);
  const frames = [`data: ${piece}`, ...Array.from({ length: 17 }, () => piece), "\n\ndata: more\n\n"].flatMap(
    (text) => [...reader.push(text)],
  );
  expect([...frames, ...reader.end()]).toEqual([{ event: "error", data: "an event of more than 128 MB" }]);
});
