import { expect, test } from "vitest";
import { readLines } from "../../src/base/lines.ts";

async function linesOf(chunks: readonly (string | Uint8Array)[]): Promise<readonly string[]> {
  const lines: string[] = [];
  for await (const line of readLines(
    (async function* () {
      yield* chunks;
    })(),
  ))
    lines.push(line);
  return lines;
}

test("lines end at \\n and nowhere else, however the stream is cut", async () => {
  const text = '{"a":"x\u2028y\u2029z\u0085"}\r\n{"b":"é"}\n\nlast';
  const bytes = new TextEncoder().encode(text);
  const expected = ['{"a":"x\u2028y\u2029z\u0085"}', '{"b":"é"}', "", "last"];
  expect(await linesOf([text])).toEqual(expected);
  expect(await linesOf(Array.from(bytes, (byte) => Uint8Array.of(byte)))).toEqual(expected);
  expect(await linesOf([])).toEqual([]);
});
