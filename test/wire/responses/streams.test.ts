import { describe, expect, test } from "vitest";
import { responses } from "../../../src/wire/responses/index.ts";
import { decodeBody, expectReport, randomCuts, recordedStreams } from "../streams.ts";

describe.each(recordedStreams("responses"))("recorded stream $name", ({ body, tools, expect: expected }) => {
  test("is read as expected, whole, byte by byte and cut anywhere", () => {
    const options = { declared: tools };
    const whole = decodeBody(responses, body, [], options);
    expectReport(whole, expected);
    const everywhere = Array.from({ length: body.length }, (_, at) => at);
    expect(decodeBody(responses, body, everywhere, options)).toEqual(whole);
    for (let seed = 0; seed < 20; seed++) {
      expect(decodeBody(responses, body, randomCuts(body.length, 9, seed), options)).toEqual(whole);
    }
  });
});
