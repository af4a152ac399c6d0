import { describe, expect, test } from "vitest";
import { codecs, decodeRecording } from "../../src/wire/index.ts";
import { reportAnswer } from "../../src/wire/report.ts";
import type { WireName } from "../../src/wire/codec.ts";
import { decodeBody, expectReport, recordedStreams } from "./streams.ts";

const wires: readonly WireName[] = ["chat", "gemini", "messages", "responses"];

/** Small and repeatable, so that a failing input can be made again from its number. */
function createRandom(seed: number): (below: number) => number {
  let state = Math.imul(seed + 1, 0x9e3779b1);
  return (below) => {
    state = Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x1234567;
    return (state >>> 0) % below;
  };
}

const scraps = [
  "\n",
  "\r",
  "\n\n",
  "data: ",
  "event: error\n",
  "null",
  "{}",
  "[]",
  '""',
  "-1",
  "1e999",
  "\\u0000",
  "\ud83d",
  "[DONE]",
  '"index":0,',
  '"__proto__":',
];

function mutate(body: string, random: (below: number) => number): string {
  let text = body;
  for (let times = 1 + random(4); times > 0; times--) {
    const at = random(text.length + 1);
    const end = Math.min(text.length, at + random(40));
    const piece = text.slice(at, end);
    const kinds = [
      () => text.slice(0, at) + text.slice(end),
      () => text.slice(0, end) + piece + text.slice(end),
      () => text.slice(0, at) + scraps[random(scraps.length)]! + text.slice(end),
      () => text.slice(0, at),
      () => text.slice(end) + text.slice(0, at),
      () => text.replaceAll(piece === "" ? "x" : piece.slice(0, 3), String(random(10))),
    ];
    text = kinds[random(kinds.length)]!().slice(0, 100_000);
  }
  return text;
}

describe.each(wires)("%s", (wire) => {
  const codec = codecs[wire];
  const streams = recordedStreams(wire);

  test("reads its recorded streams as expected", () => {
    for (const { body, tools, expect: expected } of streams)
      expectReport(decodeBody(codec, body, [], { declared: tools }), expected);
  });

  test("5,000 broken bodies: no crash, no hang, nothing runs that did not end properly", () => {
    const bodies = streams.map(({ body }) => new TextDecoder().decode(body));
    const wrong: string[] = [];
    for (let number = 0; number < 5000; number++) {
      const text = mutate(bodies[number % bodies.length]!, createRandom(number));
      const answer = decodeRecording(codec, [text.slice(0, text.length / 2), text.slice(text.length / 2)]);
      const calls = answer.items.filter((item) => item.type === "call");
      if (answer.outcome !== "ok" && calls.some((call) => call.complete)) wrong.push(`${number}: may run`);
      if (new Set(calls.map((call) => call.id)).size !== calls.length) wrong.push(`${number}: ids`);
      if (!JSON.stringify(reportAnswer(answer)).includes('"outcome"')) wrong.push(`${number}: report`);
    }
    expect(wrong).toEqual([]);
  });
});
