import * as fc from "fast-check";
import { expect, test } from "vitest";
import { messages } from "../../src/wire/messages/index.ts";
import { responses } from "../../src/wire/responses/index.ts";
import { cpuMs } from "../work.ts";
import { decodeBody, recordedStreams } from "./streams.ts";

const cases = [responses, messages].flatMap((codec) =>
  recordedStreams(codec.name).map(({ name, body }) => ({ codec, name, text: new TextDecoder().decode(body) })),
);

const junk = fc.oneof(
  fc.string({ maxLength: 20 }),
  fc.constantFrom(
    "null",
    "[]",
    "{}",
    '""',
    "\\",
    '"',
    "data: ",
    "\n\n",
    "1e999",
    "-1",
    "true",
    '"index":99999999999',
    '"output_index":-3',
    '"type":null',
    '"delta":{}',
    '"item":[]',
    "\u0000",
  ),
);

/** Cuts out a piece, puts junk in its place, moves frames about. */
const mutation = fc.record({
  at: fc.nat(),
  length: fc.nat(60),
  junk,
  swap: fc.option(fc.tuple(fc.nat(), fc.nat()), { nil: undefined }),
});

function mutate(
  text: string,
  { at, length, junk: put, swap }: { at: number; length: number; junk: string; swap: [number, number] | undefined },
): string {
  const place = at % text.length;
  const cut = text.slice(0, place) + put + text.slice(place + length);
  if (swap === undefined) return cut;
  const frames = cut.split("\n\n");
  const [left, right] = [swap[0] % frames.length, swap[1] % frames.length];
  [frames[left], frames[right]] = [frames[right]!, frames[left]!];
  return frames.join("\n\n");
}

test("a mutated stream is read without a throw, ends, and keeps its promises", () => {
  fc.assert(
    fc.property(
      fc.constantFrom(...cases),
      fc.array(mutation, { minLength: 1, maxLength: 4 }),
      ({ codec, text }, mutations) => {
        const report = decodeBody(codec, mutations.reduce(mutate, text));
        const calls = report["calls"] as readonly {
          id: string;
          complete: boolean;
          kind: string;
          input: unknown;
          name: string;
        }[];
        expect(["ok", "incomplete", "truncated", "error"]).toContain(report["outcome"]);
        expect(new Set(calls.map((call) => call.id)).size).toBe(calls.length);
        for (const call of calls)
          if (call.complete)
            expect([report["outcome"], call.name === "", call.input === undefined]).toEqual(["ok", false, false]);
      },
    ),
    { numRuns: Number(process.env["FUZZ_RUNS"] ?? 4000) },
  );
});

test("a mutated whole body or request is read without a throw", () => {
  const value = fc.jsonValue({ maxDepth: 5 });
  const keys = fc.constantFrom(
    "output",
    "content",
    "input",
    "messages",
    "tools",
    "system",
    "type",
    "usage",
    "status",
    "error",
    "tool_choice",
    "text",
    "reasoning",
    "item",
    "role",
    "thinking",
  );
  const body = fc.dictionary(
    keys,
    fc.oneof(
      value,
      fc.array(
        fc.dictionary(
          keys,
          fc.oneof(
            value,
            fc.constantFrom(
              "message",
              "function_call",
              "tool_use",
              "tool_result",
              "text",
              "user",
              "assistant",
              "namespace",
            ),
          ),
        ),
      ),
    ),
  );
  fc.assert(
    fc.property(body, (one) => {
      for (const codec of [responses, messages]) {
        expect(codec.decodeAnswer(one).items).toBeInstanceOf(Array);
        const request = codec.decodeRequest(one);
        expect(codec.encodeRequest(request).body["model"]).toBe(request.model);
      }
    }),
    { numRuns: Number(process.env["FUZZ_RUNS"] ?? 500) },
  );
});

test("a long answer costs the same per byte as a short one", () => {
  const piece = {
    type: "content_block_delta",
    index: 0,
    delta: { type: "input_json_delta", partial_json: "x".repeat(40) },
  };
  const grow = {
    type: "response.function_call_arguments.delta",
    item_id: "fc_1",
    output_index: 0,
    delta: "x".repeat(40),
  };
  for (const [codec, event] of [
    [messages, piece],
    [responses, grow],
  ] as const) {
    const frame = { data: JSON.stringify(event) };
    const decode = () => {
      const decoder = codec.createDecoder();
      for (let at = 0; at < 100_000; at++) decoder.push(frame);
      decoder.end();
    };
    // A second's work; copying what has come already, once per piece, would be minutes'.
    expect(cpuMs(decode)).toBeLessThan(15_000);
  }
});

test("values nested beyond the stack never run, and never throw", () => {
  const deep = `${"[".repeat(50_000)}${"]".repeat(50_000)}`;
  const call = `{"type":"function_call","call_id":"c","name":"f","arguments":${deep}}`;
  const block = `{"type":"tool_use","id":"t","name":"f","input":${deep}}`;
  const streams = [
    [
      responses,
      `{"type":"response.output_item.done","output_index":0,"item":${call}}`,
      '{"type":"response.completed","response":{"output":[]}}',
    ],
    [messages, `{"type":"content_block_start","index":0,"content_block":${block}}`, '{"type":"message_stop"}'],
  ] as const;
  for (const [codec, ...frames] of streams) {
    const decoder = codec.createDecoder();
    const events = frames.flatMap((data) => [...decoder.push({ data })]);
    expect(events.findLast((event) => event.type === "item.done")).toMatchObject({ item: { complete: false } });
  }
});
