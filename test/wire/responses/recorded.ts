/** The shared recorded streams, and an answer in the terms of their expectations (see data/README.md). */
import { readdirSync, readFileSync } from "node:fs";
import { isObject } from "../../../src/base/json.ts";
import type { Answer, CallItem, Item, ModelEvent } from "../../../src/spec/model.ts";
import { collect } from "../../../src/wire/answer.ts";
import type { AnswerDecoder } from "../../../src/wire/codec.ts";
import { createSseReader } from "../../../src/wire/sse.ts";

export interface Recorded {
  readonly name: string;
  readonly body: Uint8Array;
  readonly expect: Record<string, unknown>;
}

export function recordedStreams(wire: string): readonly Recorded[] {
  const folder = new URL(`../../../../shared/data/streams/${wire}/`, import.meta.url);
  return readdirSync(folder)
    .filter((file) => file.endsWith(".sse"))
    .map((file) => {
      const expected = JSON.parse(readFileSync(new URL(file.replace(/sse$/, "json"), folder), "utf8")) as { expect: Record<string, unknown> };
      return { name: file.slice(0, -4), body: readFileSync(new URL(file, folder)), expect: expected.expect };
    });
}

/** Feeds a body in pieces of the given sizes (the last size again and again). */
export function decodeBody(decoder: AnswerDecoder, body: string | Uint8Array, sizes: readonly number[] = []): readonly ModelEvent[] {
  const bytes = typeof body === "string" ? new TextEncoder().encode(body) : body;
  const reader = createSseReader();
  const events: ModelEvent[] = [];
  const feed = (frames: ReturnType<typeof reader.push>) => frames.forEach((frame) => events.push(...decoder.push(frame)));
  for (let at = 0, turn = 0; at < bytes.length; turn++) {
    const size = Math.max(1, sizes[Math.min(turn, sizes.length - 1)] ?? bytes.length);
    feed(reader.push(bytes.subarray(at, at + size)));
    at += size;
  }
  feed(reader.end());
  return [...events, ...decoder.end()];
}

export function readAnswer(decoder: AnswerDecoder, body: string | Uint8Array, sizes?: readonly number[]): Answer {
  return collect(decodeBody(decoder, body, sizes));
}

/** One frame per object, as a server without event lines would send it; with them where `named`. */
export function sse(events: readonly object[], named = true): string {
  return events.map((event) => `${named && "type" in event ? `event: ${String(event.type)}\n` : ""}data: ${JSON.stringify(event)}\n\n`).join("");
}

export function project(answer: Answer): Record<string, unknown> {
  const of = <T extends Item["type"]>(type: T) => answer.items.filter((item): item is Extract<Item, { type: T }> => item.type === type);
  const messages = of("message");
  const refusals = messages.flatMap((item) => (item.refusal === undefined ? [] : [item.refusal]));
  return {
    outcome: answer.outcome,
    text: messages.flatMap((item) => item.content.flatMap((part) => (part.type === "text" ? [part.text] : []))).join(""),
    reasoning: of("reasoning").map((item) => item.text ?? item.summary?.join("") ?? "").join(""),
    refusal: refusals.length === 0 ? null : refusals.join(""),
    calls: of("call").map(projectCall),
    finish: answer.finish ?? null,
    usage: answer.usage === undefined ? null : { ...answer.usage, total: answer.usage.input + answer.usage.output },
    error: answer.error ?? null,
    serverCalls: of("server_call").map((item) => ({ kind: String(item.raw["type"]).replace(/_call$/, ""), id: item.id, name: item.name, status: item.raw["status"] })),
    opaque: of("reasoning").flatMap((item) =>
      item.opaque?.kind === "signature" ? [{ type: "thinking", signature: item.opaque.value }] : [],
    ),
  };
}

function projectCall(item: CallItem): Record<string, unknown> {
  let input: unknown = item.arguments;
  if (item.kind !== "custom") {
    try {
      input = item.arguments === "" ? {} : JSON.parse(item.arguments);
    } catch {
      input = null;
    }
  }
  return { ...item, input };
}

/** Every field of `expected` is there and equal; objects may hold more. */
export function missing(expected: unknown, actual: unknown, path = ""): readonly string[] {
  if (Array.isArray(expected)) {
    if (!Array.isArray(actual) || actual.length !== expected.length) return [`${path}: ${JSON.stringify(actual)}`];
    return expected.flatMap((value, index) => missing(value, actual[index], `${path}[${index}]`));
  }
  if (isObject(expected)) {
    if (!isObject(actual)) return [`${path}: ${JSON.stringify(actual)}`];
    return Object.entries(expected).flatMap(([key, value]) => (key === "blockOrder" ? [] : missing(value, actual[key], `${path}.${key}`)));
  }
  return Object.is(expected, actual) ? [] : [`${path}: ${JSON.stringify(actual)}, not ${JSON.stringify(expected)}`];
}
