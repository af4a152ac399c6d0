import { describe, expect, test } from "vitest";
import { gemini } from "../../../src/wire/gemini/index.ts";
import { decodeBody, expectReport, randomCuts, recordedStreams } from "../streams.ts";

describe.each(recordedStreams("gemini"))("recorded stream $name", ({ body, tools, expect: expected }) => {
  test("is read as expected, whole, byte by byte and cut anywhere", () => {
    const options = { declared: tools };
    const whole = decodeBody(gemini, body, [], options);
    expectReport(whole, expected);
    expect(
      decodeBody(
        gemini,
        body,
        Array.from(body, (_, at) => at),
        options,
      ),
    ).toEqual(whole);
    for (let seed = 0; seed < 20; seed++) {
      expect(decodeBody(gemini, body, randomCuts(body.length, 7, seed), options)).toEqual(whole);
    }
  });
});
