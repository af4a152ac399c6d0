/** Recorded streams and their expectations, and the ways to feed them. */
import { readdirSync, readFileSync } from "node:fs";
import { expect } from "vitest";
import { isObject, type JsonObject } from "../../src/base/json.ts";
import { collect } from "../../src/wire/answer.ts";
import type { Codec, DecodeOptions } from "../../src/wire/codec.ts";
import { reportAnswer } from "../../src/wire/report.ts";
import { createSseReader } from "../../src/wire/sse.ts";

export interface RecordedStream {
  readonly name: string;
  readonly body: Uint8Array;
  readonly tools: readonly string[];
  readonly expect: JsonObject;
}

export function recordedStreams(wire: string): readonly RecordedStream[] {
  const folder = new URL(`../../../shared/data/streams/${wire}/`, import.meta.url);
  return readdirSync(folder)
    .filter((name) => name.endsWith(".sse"))
    .map((name) => {
      const { tools, expect } = JSON.parse(readFileSync(new URL(name.replace(".sse", ".json"), folder), "utf8"));
      return { name: name.replace(".sse", ""), body: readFileSync(new URL(name, folder)), tools, expect };
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
