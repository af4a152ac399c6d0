import fc from "fast-check";
import { expect, test } from "vitest";
import { createDecoder } from "../../../src/wire/messages/decoder.ts";
import { missing, project, readAnswer, recordedStreams } from "../responses/recorded.ts";

const streams = recordedStreams("messages");

test("there are recorded streams", () => {
  expect(streams.length).toBeGreaterThanOrEqual(7);
});

test.each(streams)("$name is read as expected, whole and byte by byte", ({ body, expect: expected }) => {
  const whole = readAnswer(createDecoder(), body);
  expect(missing(expected, project(whole))).toEqual([]);
  expect(readAnswer(createDecoder(), body, [1])).toEqual(whole);
});

test("cutting a stream anywhere changes nothing", () => {
  fc.assert(
    fc.property(fc.constantFrom(...streams), fc.array(fc.integer({ min: 1, max: 400 }), { minLength: 1, maxLength: 20 }), ({ body }, sizes) => {
      expect(readAnswer(createDecoder(), body, sizes)).toEqual(readAnswer(createDecoder(), body));
    }),
    { numRuns: 200 },
  );
});
