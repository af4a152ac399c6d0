import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { text } from "../../../src/base/content.ts";
import type { Answer, Item, ModelRequest, ToolSpec } from "../../../src/spec/model.ts";
import { answerToEvents } from "../../../src/wire/answer.ts";
import { responses } from "../../../src/wire/responses/index.ts";
import { encodeSse } from "../../../src/wire/sse.ts";
import { decodeRecording } from "../../../src/wire/stream.ts";
import { asHandedOut, brokenAnswer, callArbitrary, conversation, endedAnswer, request, words } from "../arbitrary.ts";

function streamed(answer: Answer): string {
  const encoder = responses.createEncoder();
  return encodeSse(answerToEvents(answer).flatMap((event) => [...encoder.push(event)]));
}

/** This wire names every item and counts in whole; ids that had to be made up and counts of nothing are no difference. */
function plain(answer: Answer): Answer {
  const { usage, ...rest } = answer;
  const counted =
    usage && Object.fromEntries(Object.entries(usage).filter(([key, value]) => value !== 0 || key === "input"));
  return {
    ...rest,
    items: answer.items.map((item) => {
      if (item.type === "call") {
        const { itemId: _itemId, ...call } = item;
        return call;
      }
      if (item.type !== "message" && item.type !== "reasoning") return item;
      const { id: _id, ...bare } = item;
      return bare;
    }),
    ...(counted === undefined ? {} : { usage: counted as Answer["usage"] & object }),
  };
}

const native = fc.constantFrom<readonly [kind: "local_shell" | "shell" | "apply_patch" | "tool_search", args: string]>(
  ["local_shell", '{"command":["ls"],"env":{}}'],
  ["shell", '{"commands":["ls"]}'],
  ["apply_patch", '{"type":"delete_file","path":"a"}'],
  ["tool_search", '{"query":"x"}'],
);

/** What only this wire can say. */
const rich: fc.Arbitrary<Item> = fc.oneof(
  fc.record({
    type: fc.constant("reasoning" as const),
    summary: fc.array(words, { minLength: 1, maxLength: 3 }),
    text: words,
    opaque: words.map((value) => ({ wire: "responses", kind: "encrypted_content", value })),
  }),
  fc.tuple(fc.array(words, { minLength: 1, maxLength: 3 }), words).map(([parts, refusal]): Item => ({
    type: "message",
    role: "assistant",
    content: parts.map(text),
    refusal,
    phase: "final_answer",
  })),
  fc.tuple(callArbitrary(true), words).map(([call, id]): Item => ({
    ...call,
    id: `c${id}`,
    namespace: "mcp__docs",
    caller: { type: "program", caller_id: id },
  })),
  fc.tuple(words, fc.uuid()).map(([input, id]): Item => ({
    type: "call",
    kind: "custom",
    id,
    name: "apply_patch",
    arguments: input,
    complete: true,
  })),
  fc
    .tuple(native, fc.uuid())
    .map(([[kind, args], id]): Item => ({ type: "call", kind, id, name: kind, arguments: args, complete: true })),
  fc.uuid().map((id): Item => ({
    type: "server_call",
    name: "web_search",
    id,
    wire: "responses",
    raw: { type: "web_search_call", id, status: "completed" },
  })),
  fc.uuid().map((id): Item => ({ type: "other", wire: "responses", raw: { type: "program", id, code: "x" } })),
  words.map((value): Item => ({
    type: "compaction",
    id: "cmp_1",
    opaque: { wire: "responses", kind: "encrypted_content", value },
  })),
);

const richAnswer: fc.Arbitrary<Answer> = fc
  .uniqueArray(rich, { maxLength: 5, selector: (item) => (item.type === "call" ? item.id : JSON.stringify(item)) })
  .map((items) => ({
    id: "resp_1",
    model: "m",
    items,
    outcome: "ok",
    finish: items.some((item) => item.type === "call") ? "tool_calls" : "stop",
  }));

describe("Responses", () => {
  test("an answer written as a stream is read back the same, however it is cut", () => {
    const answers = fc.oneof(
      endedAnswer,
      richAnswer,
      brokenAnswer.filter((answer) => answer.outcome === "error"),
    );
    fc.assert(
      fc.property(answers, fc.array(fc.nat(9000), { maxLength: 5 }), (answer, cuts) => {
        const body = streamed(answer);
        const bounds = [0, ...cuts.map((cut) => cut % (body.length + 1)).toSorted((a, b) => a - b), body.length];
        const chunks = bounds.slice(1).map((end, at) => body.slice(bounds[at], end));
        expect(plain(decodeRecording(responses, chunks))).toEqual(plain(asHandedOut(answer)));
      }),
      { numRuns: 1000 },
    );
  });

  test("an answer written whole is read back the same, and the same as its stream", () => {
    fc.assert(
      fc.property(fc.oneof(endedAnswer, richAnswer), (answer) => {
        const whole = responses.decodeAnswer(JSON.parse(JSON.stringify(responses.encodeAnswer(answer))));
        expect(plain(whole)).toEqual(plain(asHandedOut(answer)));
        expect(decodeRecording(responses, [streamed(answer)])).toEqual(whole);
      }),
      { numRuns: 1000 },
    );
  });

  test("an answer that broke off is never read as one that ended", () => {
    fc.assert(
      fc.property(brokenAnswer, (answer) => {
        const back = decodeRecording(responses, [streamed(answer)]);
        expect(back.outcome).toBe("error");
        expect(back.items.every((item) => item.type !== "call" || !item.complete)).toBe(true);
      }),
    );
  });

  test("a stream is numbered without gaps and says everything twice the same", () => {
    fc.assert(
      fc.property(fc.oneof(endedAnswer, richAnswer), (answer) => {
        const events = streamed(answer)
          .split("\n\n")
          .filter(Boolean)
          .map((frame) => JSON.parse(frame.slice(frame.indexOf("data: ") + 6)));
        expect(events.map((event) => event.sequence_number)).toEqual(events.map((_, at) => at));
        const announced = events.filter((event) => event.type === "response.output_item.added");
        expect(announced.map((event) => event.output_index)).toEqual(announced.map((_, at) => at));
        const done = events.filter((event) => event.type === "response.output_item.done").map((event) => event.item);
        const { output } = events.at(-1).response;
        expect(output.filter((item: { status?: string }) => item.status !== "incomplete")).toEqual(done);
      }),
    );
  });

  const tool = (name: string): ToolSpec => ({
    kind: "function",
    name,
    description: "d",
    parameters: { type: "object", properties: {} },
  });
  const tools: readonly ToolSpec[] = [
    {
      kind: "custom",
      name: "apply_patch",
      description: "p",
      format: { type: "grammar", syntax: "lark", definition: "start: /a/" },
    },
    {
      kind: "namespace",
      name: "mcp__docs",
      description: "n",
      tools: [
        { ...tool("ask"), kind: "function", extra: { wire: "responses", fields: { defer_loading: true } } } as never,
      ],
    },
    { kind: "native", type: "tool_search", name: "tool_search", wire: "responses", options: { execution: "client" } },
  ];

  test("a request is read back as it was", () => {
    // This wire has no stop words, no success flag, and thoughts without an id are not its own.
    const asked = fc.tuple(request, fc.subarray([...tools])).map(([{ stop: _stop, ...one }, more]): ModelRequest => ({
      ...one,
      tools: [...one.tools, ...more].toSorted((a, b) => (sortName(a) < sortName(b) ? -1 : 1)),
      input: one.input
        .filter((item) => item.type !== "reasoning")
        .map((item) => {
          if (item.type !== "result") return item;
          const { name: _name, ...result } = item;
          return { ...result, ok: true };
        }),
    }));
    fc.assert(
      fc.property(asked, (one) => {
        const { toolChoice: _choice, parallel: _parallel, ...rest } = one;
        const sent = one.tools.length === 0 ? rest : one;
        const { body, dropped } = responses.encodeRequest(sent);
        expect(dropped).toEqual([]);
        expect(responses.decodeRequest(JSON.parse(JSON.stringify(body)))).toEqual(withKind(sent));
      }),
      { numRuns: 500 },
    );
  });

  test("its own items go back in a request as they came", () => {
    fc.assert(
      fc.property(fc.array(rich, { maxLength: 6 }), (items) => {
        const unanswered = items.filter((item) => item.type !== "call" && item.type !== "message");
        const { body } = responses.encodeRequest({ model: "m", tools: [], input: unanswered });
        expect(responses.decodeRequest(body).input).toEqual(unanswered);
      }),
    );
  });

  test("a history sent twice is the same bytes, and one with more at its end begins with the same bytes", () => {
    fc.assert(
      fc.property(conversation, words, (items, more) => {
        const encode = (input: readonly Item[]) =>
          JSON.stringify(responses.encodeRequest({ model: "m", tools, input }).body["input"]);
        expect(encode(items)).toBe(encode(items));
        const longer = encode([...items, { type: "message", role: "user", content: [text(more)] }]);
        expect(longer.startsWith(encode(items).slice(0, -1))).toBe(true);
      }),
      { numRuns: 200 },
    );
  });

  /** Natives have no name on the wire and stand first. */
  function sortName(spec: ToolSpec): string {
    return spec.kind === "native" ? spec.type : spec.name;
  }

  function withKind(one: ModelRequest): ModelRequest {
    return typeof one.toolChoice === "object" && "name" in one.toolChoice
      ? { ...one, toolChoice: { ...one.toolChoice, kind: "function" } }
      : one;
  }
});
