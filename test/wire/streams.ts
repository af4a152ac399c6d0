/** Recorded streams and their expectations, and the ways to feed them. */
import { readFileSync } from "node:fs";
import { expect } from "vitest";
import { isObject, type JsonObject } from "../../src/base/json.ts";
import { answerToEvents, collect } from "../../src/wire/answer.ts";
import type { Answer } from "../../src/spec/model.ts";
import type { Codec, DecodeOptions, WireName } from "../../src/wire/codec.ts";
import { codecs } from "../../src/wire/index.ts";
import { reportAnswer } from "../../src/wire/report.ts";
import { createSseReader, encodeFrame } from "../../src/wire/sse.ts";
import { sharedFiles } from "../shared/cases.ts";

export interface RecordedStream {
  readonly name: string;
  readonly body: Uint8Array;
  readonly tools: readonly string[];
  readonly expect: JsonObject;
}

/** Streams of our own, and the maintainers' recorded ones where they are there. */
export function recordedStreams(wire: WireName): readonly RecordedStream[] {
  return [...ownStreams(wire), ...sharedStreams(wire)];
}

const weather = '{"city":"Köln","days":3}';
const call = (id: string, args = weather) =>
  ({ type: "call", kind: "function", id, name: "get_weather", arguments: args, complete: true }) as const;
const said = (words: string) =>
  ({ type: "message", role: "assistant", content: [{ type: "text", text: words }] }) as const;
const ok = { outcome: "ok", usage: { input: 12, output: 7 } } as const;

/** What models say most: text, thoughts, one call, several, long arguments, scripts of the world, an end too early. */
const answers: Readonly<Record<string, Answer>> = {
  text: { ...ok, finish: "stop", items: [said("Hello, world.")] },
  scripts: { ...ok, finish: "stop", items: [said("naïve 東京 👩‍👩‍👧 \u2028 العربية")] },
  call: { ...ok, finish: "tool_calls", items: [call("call_a")] },
  text_and_calls: { ...ok, finish: "tool_calls", items: [said("Let me look."), call("call_a"), call("call_b", "{}")] },
  thought: { ...ok, finish: "stop", items: [{ type: "reasoning", text: "First I think." }, said("Then I speak.")] },
  thought_and_call: { ...ok, finish: "tool_calls", items: [{ type: "reasoning", text: "I need it." }, call("call_a")] },
  long_arguments: {
    ...ok,
    finish: "tool_calls",
    items: [call("call_a", JSON.stringify({ text: 'a "quoted" \n'.repeat(300) }))],
  },
  cut_by_length: { outcome: "incomplete", finish: "length", items: [said("This goes on and")] },
};

function ownStreams(wire: WireName): readonly RecordedStream[] {
  return Object.entries(answers).map(([name, answer]) => {
    const encoder = codecs[wire].createEncoder({ model: "m", id: "answer_1", createdAt: 1 });
    const body = answerToEvents(answer)
      .flatMap((event) => encoder.push(event))
      .map(encodeFrame)
      .join("");
    const { outcome, calls, text } = reportAnswer(answer);
    const expected = { outcome: outcome ?? null, text: text ?? null, calls: calls ?? [] };
    return { name: `own ${name}`, body: new TextEncoder().encode(body), tools: ["get_weather"], expect: expected };
  });
}

function sharedStreams(wire: WireName): readonly RecordedStream[] {
  return sharedFiles(`streams/${wire}`, ".sse").map(([name, path]) => {
    const { tools, expect } = JSON.parse(readFileSync(path.replace(/\.sse$/, ".json"), "utf8"));
    return { name, body: readFileSync(path), tools, expect };
  });
}

/** Feeds the body in chunks that end at the given places. */
export function decodeBody(
  codec: Codec,
  body: Uint8Array | string,
  cuts: readonly number[] = [],
  options: DecodeOptions = {},
): JsonObject {
  const reader = createSseReader();
  const decoder = codec.createDecoder(options);
  const bounds = [0, ...[...cuts].filter((cut) => cut > 0 && cut < body.length).toSorted((a, b) => a - b), body.length];
  const events = bounds.slice(1).flatMap((end, at) => {
    const chunk = body.slice(bounds[at], end);
    return reader.push(chunk).flatMap((frame) => decoder.push(frame));
  });
  const last = reader.end().flatMap((frame) => decoder.push(frame));
  return reportAnswer(collect([...events, ...last, ...decoder.end()]));
}

/** Where the file has a null id, any unique one is right; an error may say more than is asked. */
export function expectReport(report: JsonObject, expected: JsonObject): void {
  const ids = (report["calls"] as readonly { id: string }[]).map((call) => call.id);
  expect(new Set(ids).size).toBe(ids.length);
  expect(ids.every((id) => id !== "")).toBe(true);
  const calls = (expected["calls"] as readonly JsonObject[]).map((call, at) =>
    call["id"] === null ? { ...call, id: ids[at] } : call,
  );
  const { error, ...rest } = expected;
  expect(report).toMatchObject({ ...rest, calls });
  expect((report["calls"] as readonly unknown[]).length).toBe(calls.length);
  if (isObject(error)) expect(report["error"]).toMatchObject(error);
  else expect(report["error"]).toBeNull();
}

/** Deterministic cuts, so that a failure can be run again. */
export function randomCuts(length: number, count: number, seed: number): readonly number[] {
  let state = seed * 2_654_435_761 + 1;
  return Array.from({ length: count }, () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state % length;
  });
}
