import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { text } from "../../../src/base/content.ts";
import type { Answer, Item, ModelRequest } from "../../../src/spec/model.ts";
import { answerToEvents } from "../../../src/wire/answer.ts";
import { messages } from "../../../src/wire/messages/index.ts";
import { encodeSse } from "../../../src/wire/sse.ts";
import { decodeRecording } from "../../../src/wire/stream.ts";
import { asHandedOut, brokenAnswer, callArbitrary, endedAnswer, request, words } from "../arbitrary.ts";

function streamed(answer: Answer): string {
  const encoder = messages.createEncoder();
  return encodeSse(answerToEvents(answer).flatMap((event) => [...encoder.push(event)]));
}

/** Counts of nothing are no difference; a filter's stop and a refusal are one here. */
function plain(answer: Answer): Answer {
  const { usage, ...rest } = answer;
  const counted =
    usage && Object.fromEntries(Object.entries(usage).filter(([key, value]) => value !== 0 || key === "input"));
  const isFiltered = answer.finish === "content_filter";
  return {
    ...rest,
    ...(isFiltered ? { outcome: "ok", finish: "refusal" } : {}),
    ...(counted === undefined
      ? {}
      : { usage: { ...counted, input: Math.max(usage!.input, usage!.cached ?? 0) } as Answer["usage"] & object }),
  };
}

const rich: fc.Arbitrary<Item> = fc.oneof(
  fc.tuple(words, words).map(([thought, value]): Item => ({
    type: "reasoning",
    text: thought,
    opaque: { wire: "messages", kind: "signature", value },
  })),
  words.map((value): Item => ({ type: "reasoning", opaque: { wire: "messages", kind: "redacted_thinking", value } })),
  words.map((value): Item => ({
    type: "message",
    role: "assistant",
    content: [text(value)],
    extra: { wire: "messages", fields: { citations: [{ type: "x", cited_text: value }] } },
  })),
  fc.tuple(callArbitrary(true), fc.uuid()).map(([call, id]): Item => ({
    ...call,
    id,
    caller: { type: "code_execution_20250825", tool_id: "srv" },
    extra: { wire: "messages", fields: { toolset_name: "t" } },
  })),
  fc.uuid().map((id): Item => ({
    type: "server_call",
    name: "web_search",
    id,
    wire: "messages",
    raw: { type: "server_tool_use", id, name: "web_search", input: { q: id } },
  })),
  fc.uuid().map((id): Item => ({
    type: "other",
    wire: "messages",
    raw: { type: "web_search_tool_result", tool_use_id: id, content: [] },
  })),
);

const richAnswer: fc.Arbitrary<Answer> = fc.array(rich, { maxLength: 6 }).map((items) => ({
  id: "msg_1",
  model: "m",
  items,
  outcome: "ok",
  finish: items.some((item) => item.type === "call") ? "tool_calls" : "stop",
}));

describe("Messages", () => {
  test("an answer written as a stream is read back the same, however it is cut", () => {
    const answers = fc.oneof(endedAnswer, richAnswer);
    fc.assert(
      fc.property(answers, fc.array(fc.nat(9000), { maxLength: 5 }), (answer, cuts) => {
        const body = streamed(answer);
        const bounds = [0, ...cuts.map((cut) => cut % (body.length + 1)).toSorted((a, b) => a - b), body.length];
        const chunks = bounds.slice(1).map((end, at) => body.slice(bounds[at], end));
        expect(plain(decodeRecording(messages, chunks))).toEqual(plain(asHandedOut(answer)));
      }),
      { numRuns: 1000 },
    );
  });

  test("an answer written whole is read back the same, and the same as its stream", () => {
    fc.assert(
      fc.property(
        fc.oneof(
          endedAnswer.filter((answer) => answer.outcome === "ok"),
          richAnswer,
        ),
        (answer) => {
          const whole = messages.decodeAnswer(JSON.parse(JSON.stringify(messages.encodeAnswer(answer))));
          expect(plain(whole)).toEqual(plain(answer));
          expect(decodeRecording(messages, [streamed(answer)])).toEqual(whole);
        },
      ),
      { numRuns: 1000 },
    );
  });

  test("an answer that broke off is an error and has no calls", () => {
    fc.assert(
      fc.property(brokenAnswer, (answer) => {
        const back = decodeRecording(messages, [streamed(answer)]);
        expect(back.outcome).toBe("error");
        expect(back.items.map((item) => item.type)).toEqual(asHandedOut(answer).items.map((item) => item.type));
      }),
    );
  });

  test("blocks are numbered from 0 and never interleave", () => {
    fc.assert(
      fc.property(
        fc.oneof(
          endedAnswer.filter((answer) => answer.outcome === "ok"),
          richAnswer,
        ),
        (answer) => {
          const events = streamed(answer)
            .split("\n\n")
            .filter(Boolean)
            .map((frame) => JSON.parse(frame.slice(frame.indexOf("data: ") + 6)));
          let open = -1;
          let next = 0;
          for (const event of events) {
            if (event.type === "content_block_start") {
              expect([open, event.index]).toEqual([-1, next++]);
              open = event.index;
            } else if (event.type === "content_block_delta") expect(event.index).toBe(open);
            else if (event.type === "content_block_stop") open = -1;
          }
          expect(open).toBe(-1);
        },
      ),
    );
  });

  test("a request is read back as it was", () => {
    // A limit is always sent; thoughts this API did not sign are not; results are found by their id.
    const asked = request.map((one): ModelRequest => ({
      ...one,
      maxOutputTokens: one.maxOutputTokens ?? 5,
      input: one.input
        .filter((item) => item.type !== "reasoning")
        .map((item) => {
          if (item.type !== "result") return item;
          const { name: _name, ...result } = item;
          return result;
        }),
    }));
    fc.assert(
      fc.property(asked, (one) => {
        const { parallel, ...rest } = one;
        // 'None' has no flag beside it.
        const sent = one.toolChoice === "none" ? rest : one;
        const { body, dropped } = messages.encodeRequest(sent);
        expect(dropped).toEqual([]);
        const back = messages.decodeRequest(JSON.parse(JSON.stringify(body)));
        expect(merged(back)).toEqual(
          merged(
            parallel !== undefined && sent.toolChoice === undefined && "parallel" in sent
              ? { ...sent, toolChoice: "auto" }
              : sent,
          ),
        );
      }),
      { numRuns: 500 },
    );
  });

  test("its own items go back in a request as they came, in their order", () => {
    fc.assert(
      fc.property(fc.array(rich, { maxLength: 6 }), (items) => {
        const said = items.filter((item) => item.type !== "call");
        const { body } = messages.encodeRequest({ model: "m", tools: [], input: said });
        expect(messages.decodeRequest(body).input).toEqual(said);
      }),
    );
  });
});

/** Neighbours of one speaker are one message on this wire. */
function merged(one: ModelRequest): ModelRequest {
  const input: Item[] = [];
  for (const item of one.input) {
    const last = input.at(-1);
    if (item.type === "message" && item.role === "user" && last?.type === "message" && last.role === "user")
      input[input.length - 1] = { ...last, content: [...last.content, ...item.content] };
    else input.push(item);
  }
  return { ...one, input };
}
