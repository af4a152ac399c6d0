import { beforeAll, describe, expect, test } from "vitest";
import { isObject, type JsonObject } from "../../../src/base/json.ts";
import { codecs, decodeRecording } from "../../../src/wire/index.ts";
import { reportAnswer } from "../../../src/wire/report.ts";
import { ensureBuilt, lines, run } from "../../cli/run.ts";
import { randomCuts } from "../streams.ts";
import { type FieldStream, tools, toStream } from "./case.ts";
import { cases as chat } from "./chat.ts";
import { cases as gemini } from "./gemini.ts";
import { cases as messages } from "./messages.ts";
import { cases as responses } from "./responses.ts";

const streams: readonly FieldStream[] = [
  ...chat.map((one) => toStream("chat", one)),
  ...responses.map((one) => toStream("responses", one)),
  ...messages.map((one) => toStream("messages", one)),
  ...gemini.map((one) => toStream("gemini", one)),
];

/** Exactly what is expected and nothing beside it; an error may say more than is asked. */
function expectExactly(report: JsonObject, expected: JsonObject): void {
  const calls = report["calls"] as readonly JsonObject[]; // the report of an answer has calls
  expect(new Set(calls.map((call) => call["id"])).size).toBe(calls.length);
  const told = (expected["calls"] as readonly JsonObject[]).map((call, at) =>
    call["id"] === null ? { ...call, id: calls[at]?.["id"] ?? "none" } : call,
  );
  const { error, ...rest } = expected;
  const { error: found, ...said } = report;
  expect(said).toEqual({ ...rest, calls: told });
  if (isObject(error)) expect(found).toMatchObject(error);
  else expect(found).toBeNull();
}

function cut(bytes: Uint8Array, places: readonly number[]): readonly Uint8Array[] {
  const bounds = [0, ...places.toSorted((a, b) => a - b), bytes.length];
  return bounds.slice(1).map((end, at) => bytes.slice(bounds[at], end));
}

describe("a stream from the field is read right, however it is cut:", () => {
  test.each(streams)("$id", ({ wire, input, expected }) => {
    const decode = (chunks: readonly (string | Uint8Array)[]) =>
      reportAnswer(decodeRecording(codecs[wire], chunks, { declared: tools }));
    const whole = decode([input]);
    expectExactly(whole, expected);
    const bytes = new TextEncoder().encode(input);
    expect(decode(Array.from(bytes, (byte) => Uint8Array.of(byte)))).toEqual(whole);
    for (const seed of [1, 2, 3]) expect(decode(cut(bytes, randomCuts(bytes.length, 12, seed)))).toEqual(whole);
  });
});

describe("the command tells the same", () => {
  beforeAll(ensureBuilt, 60_000);

  test("for all of them in one batch", async () => {
    const asked = streams.map(({ id, wire, input }, at) => ({
      id,
      wire,
      tools,
      input,
      chunks: at % 2 === 0 ? [] : [3, 1, 40, 7],
    }));
    const { code, stdout } = await run(["decode", "--batch"], {
      input: asked.map((line) => JSON.stringify(line)).join("\n"),
    });
    expect(code).toBe(0);
    const answers = lines(stdout);
    expect(answers).toHaveLength(streams.length);
    for (const [at, { id, ...report }] of answers.entries()) {
      expect(id).toBe(streams[at]!.id);
      expectExactly(report as JsonObject, streams[at]!.expected);
    }
  });
});
