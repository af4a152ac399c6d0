import { describe, expect, test } from "vitest";
import { messages } from "../../../src/wire/messages/index.ts";
import { decodeBody, expectReport, randomCuts, recordedStreams } from "../streams.ts";

describe.each(recordedStreams("messages"))("recorded stream $name", ({ body, tools, expect: expected }) => {
  test("is read as expected, whole, byte by byte and cut anywhere", () => {
    const options = { declared: tools };
    const whole = decodeBody(messages, body, [], options);
    expectReport(whole, expected);
    const everywhere = Array.from({ length: body.length }, (_, at) => at);
    expect(decodeBody(messages, body, everywhere, options)).toEqual(whole);
    for (let seed = 0; seed < 20; seed++) {
      expect(decodeBody(messages, body, randomCuts(body.length, 9, seed), options)).toEqual(whole);
    }
  });
});
