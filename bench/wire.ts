/** Reading streamed answers: each codec against the SSE splitter alone and the released SDKs, on the same bytes. */
import { ReadableStream } from "node:stream/web";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import Anthropic from "@anthropic-ai/sdk";
import { createParser } from "eventsource-parser";
import OpenAI from "openai";
import { text } from "../src/base/content.ts";
import type { Answer, Item, ModelEvent, ModelRequest } from "../src/spec/model.ts";
import type { BenchRow } from "./measure.ts";
import { answerToEvents, codecs, collect, decodeStream, encodeSse, type WireName } from "../src/wire/index.ts";

/** A long answer in small deltas, as models write: words, then a call with a big argument. */
function longAnswer(): readonly ModelEvent[] {
  const words = "The quick brown fox jumps over the lazy dog, then reads “wires” and carries on. ".repeat(250);
  const call: Item = {
    type: "call",
    kind: "function",
    id: "call_a",
    name: "apply_patch",
    arguments: JSON.stringify({ input: words }),
    complete: true,
  };
  const answer: Answer = {
    id: "x",
    model: "m",
    items: [{ type: "message", role: "assistant", content: [text(words)] }, call],
    outcome: "ok",
    finish: "tool_calls",
    usage: { input: 10, output: 10 },
  };
  return answerToEvents(answer).flatMap((event): readonly ModelEvent[] => {
    if (event.type !== "item.delta" || event.field !== "text") return [event];
    const pieces = event.delta.match(/.{1,4}/gsu) ?? [];
    return pieces.map((delta) => ({ ...event, delta }));
  });
}

function bodyOf(wire: WireName): Uint8Array {
  const encoder = codecs[wire].createEncoder({ model: "m", id: "x" });
  return new TextEncoder().encode(encodeSse(longAnswer().flatMap((event) => [...encoder.push(event)])));
}

async function* chunked(body: Uint8Array): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < body.length; at += 4096) yield body.subarray(at, at + 4096);
}

type Reader = (body: Uint8Array) => Promise<unknown>;

/** MB/s of each reader: in turns, and the best of several rounds, so that the machine's other work hits all alike. */
async function speeds(body: Uint8Array, readers: readonly Reader[], rounds = 25): Promise<readonly number[]> {
  const best = readers.map(() => Infinity);
  for (let round = 0; round < rounds; round++) {
    for (const [at, read] of readers.entries()) {
      const started = performance.now();
      await read(body);
      best[at] = Math.min(best[at]!, performance.now() - started);
    }
  }
  return best.map((ms) => Number((body.length / 1e6 / (ms / 1000)).toFixed(1)));
}

const asResponse = (body: Uint8Array) => async (): Promise<Response> =>
  // The same class under both names; the two type declarations do not know each other.
  new Response(ReadableStream.from(chunked(body)) as unknown as BodyInit, {
    headers: { "content-type": "text/event-stream" },
  });

async function readWithOpenAI(body: Uint8Array): Promise<unknown> {
  const client = new OpenAI({ apiKey: "none", fetch: asResponse(body) });
  return client.chat.completions.stream({ model: "m", messages: [] }).finalChatCompletion();
}

async function readWithOpenAIResponses(body: Uint8Array): Promise<unknown> {
  const client = new OpenAI({ apiKey: "none", fetch: asResponse(body) });
  return client.responses.stream({ model: "m", input: "x" }).finalResponse();
}

async function readWithAnthropic(body: Uint8Array): Promise<unknown> {
  const client = new Anthropic({ apiKey: "none", fetch: asResponse(body) });
  return client.messages.stream({ model: "m", max_tokens: 9, messages: [] }).finalMessage();
}

async function readWithAiSdk(body: Uint8Array): Promise<unknown> {
  const provider = createOpenAICompatible({ name: "x", baseURL: "http://127.0.0.1:9", fetch: asResponse(body) });
  const { stream } = await provider("m").doStream({
    prompt: [{ role: "user", content: [{ type: "text", text: "x" }] }],
  });
  const parts: unknown[] = [];
  for await (const part of stream) parts.push(part);
  return parts;
}

async function splitOnly(body: Uint8Array): Promise<void> {
  const decoder = new TextDecoder();
  const parser = createParser({ onEvent: () => {} });
  for await (const chunk of chunked(body)) parser.feed(decoder.decode(chunk, { stream: true }));
}

async function splitAndParse(body: Uint8Array): Promise<void> {
  const decoder = new TextDecoder();
  const parser = createParser({ onEvent: ({ data }) => void (data === "[DONE]" || JSON.parse(data)) });
  for await (const chunk of chunked(body)) parser.feed(decoder.decode(chunk, { stream: true }));
}

const peers: Readonly<Record<WireName, readonly (readonly [name: string, read: Reader])[]>> = {
  chat: [
    ["openai SDK", readWithOpenAI],
    ["AI SDK compatible", readWithAiSdk],
  ],
  responses: [["openai SDK", readWithOpenAIResponses]],
  messages: [["Anthropic SDK", readWithAnthropic]],
  gemini: [],
};

export async function run(): Promise<BenchRow[]> {
  const rows: BenchRow[] = [];
  for (const wire of ["chat", "responses", "messages", "gemini"] as const) {
    const own: Reader = (body) => collect(decodeStream(codecs[wire], chunked(body)));
    const [ours = 0, split = 0, parsed = 0, ...theirs] = await speeds(bodyOf(wire), [
      own,
      splitOnly,
      splitAndParse,
      ...peers[wire].map(([, read]) => read),
    ]);
    const name = `${wire}: bytes to answer`;
    rows.push({
      name,
      value: ours,
      unit: "MB/s",
      baseline: `eventsource-parser alone (${split} MB/s)`,
      ratio: ratio(ours, split),
    });
    rows.push({
      name,
      value: ours,
      unit: "MB/s",
      baseline: `eventsource-parser + JSON.parse (${parsed} MB/s)`,
      ratio: ratio(ours, parsed),
    });
    for (const [at, [peer]] of peers[wire].entries()) {
      rows.push({
        name,
        value: ours,
        unit: "MB/s",
        baseline: `${peer} (${theirs[at]} MB/s)`,
        ratio: ratio(ours, theirs[at]!),
        aim: "≥ 3×",
      });
    }
  }
  for (const wire of ["chat", "responses", "messages", "gemini"] as const) rows.push(encodeRow(wire));
  return rows;
}

function ratio(ours: number, theirs: number): number {
  return Number((ours / theirs).toFixed(2));
}

function encodeRow(wire: WireName): BenchRow {
  const request = longHistory();
  let best = Infinity;
  for (let round = 0; round < 20; round++) {
    const started = performance.now();
    JSON.stringify(codecs[wire].encodeRequest(request).body);
    best = Math.min(best, performance.now() - started);
  }
  return { name: `${wire}: encode a 1,000-item history`, value: Number(best.toFixed(2)), unit: "ms" };
}

function longHistory(): ModelRequest {
  const items = Array.from({ length: 250 }, (_, at): readonly Item[] => [
    { type: "message", role: "user", content: [text(`question ${at}`)] },
    { type: "message", role: "assistant", content: [text(`answer ${at} `.repeat(20))] },
    {
      type: "call",
      kind: "function",
      id: `call_${at}`,
      name: "read_file",
      arguments: JSON.stringify({ path: `src/${at}.ts` }),
      complete: true,
    },
    {
      type: "result",
      kind: "function",
      callId: `call_${at}`,
      name: "read_file",
      content: [text("line\n".repeat(100))],
      ok: true,
    },
  ]);
  const tools = ["read_file", "search", "shell"].map((name) => ({
    kind: "function" as const,
    name,
    description: name,
    parameters: { type: "object", properties: { path: { type: "string" } } },
  }));
  return { model: "m", instructions: "be brief", input: items.flat(), tools };
}
