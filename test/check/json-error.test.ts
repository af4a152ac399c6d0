import * as fc from "fast-check";
import { expect, test } from "vitest";
import { describeJsonError, locateJsonError } from "../../src/check/json-error.ts";

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

test("it finds an error exactly where JSON.parse finds one", () => {
  const broken = fc
    .tuple(fc.json(), fc.nat(), fc.constantFrom("", ",", "}", "]", '"', "\\", "x", "\n", ":", "0", "\u007f"))
    .map(([text, at, extra]) => {
      const place = at % (text.length + 1);
      return text.slice(0, place) + extra + text.slice(place + (at % 2));
    });
  fc.assert(
    fc.property(fc.oneof(fc.json(), broken, fc.string()), (text) => {
      const error = locateJsonError(text);
      expect(error === undefined).toBe(isJson(text));
      if (!error) return;
      expect(error.position).toBeLessThanOrEqual(text.length);
      expect(describeJsonError(text, error).length).toBeLessThan(600);
    }),
    { numRuns: 2000 },
  );
});

test("a text cut short is told as ending too early", () => {
  const whole = String.raw`{"a":[1,{"b":"text é \u00e9\n"}],"c":null,"t":true,"f":false,"d":-1.5e+3}`;
  for (let end = 1; end < whole.length; end++) {
    const text = whole.slice(0, end);
    const error = locateJsonError(text)!;
    expect(error?.position, text).toBe(text.length);
    expect(describeJsonError(text, error)).toContain("it ends too early");
  }
});
