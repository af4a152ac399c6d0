import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { answerToEvents, collect } from "../../../src/wire/answer.ts";
import { chat } from "../../../src/wire/chat/index.ts";
import { encodeSse } from "../../../src/wire/sse.ts";
import { decodeRecording } from "../../../src/wire/stream.ts";
import { asHandedOut, brokenAnswer, endedAnswer, request } from "../arbitrary.ts";

function streamed(answer: Parameters<typeof answerToEvents>[0]): string {
  const encoder = chat.createEncoder();
  return encodeSse(answerToEvents(answer).flatMap((event) => [...encoder.push(event)]));
}

describe("Chat Completions", () => {
  test("an answer written as a stream is read back the same, however it is cut", () => {
    fc.assert(
      fc.property(fc.oneof(endedAnswer, brokenAnswer), fc.array(fc.nat(5000), { maxLength: 5 }), (answer, cuts) => {
        const body = streamed(answer);
        const bounds = [0, ...cuts.map((cut) => cut % (body.length + 1)).toSorted((a, b) => a - b), body.length];
        const chunks = bounds.slice(1).map((end, at) => body.slice(bounds[at], end));
        expect(decodeRecording(chat, chunks)).toEqual(asHandedOut(answer));
      }),
      { numRuns: 300 },
    );
  });

  test("an answer written whole is read back the same, and the same as its stream", () => {
    fc.assert(
      fc.property(endedAnswer, (answer) => {
        const body: unknown = JSON.parse(JSON.stringify(chat.encodeAnswer(answer)));
        expect(chat.decodeAnswer(body)).toEqual(asHandedOut(answer));
        expect(decodeRecording(chat, [streamed(answer)])).toEqual(asHandedOut(answer));
      }),
      { numRuns: 300 },
    );
  });

  test("a request is read back as it was", () => {
    const quirks = { echoReasoning: "reasoning_content" } as const;
    fc.assert(
      fc.property(request, (asked) => {
        const { body, dropped } = chat.encodeRequest(asked, { quirks });
        expect(dropped).toEqual([]);
        const back = chat.decodeRequest(JSON.parse(JSON.stringify(body)));
        // The field is sent beside every call, and empty where there were no thoughts.
        const input = back.input.filter((item) => item.type !== "reasoning" || item.text !== "");
        expect({ ...back, input }).toEqual(asked);
      }),
      { numRuns: 300 },
    );
  });

  test("every chunk that a decoder gives out early is confirmed by what it gives out last", () => {
    fc.assert(
      fc.property(endedAnswer, (answer) => {
        const events = answerToEvents(answer);
        const early = events.filter((event) => event.type !== "item.done");
        const grown = collect(early).items;
        expect(grown.map((item) => ({ ...item, complete: true }))).toEqual(
          answer.items.map((item) => ({ ...item, complete: true })),
        );
      }),
    );
  });
});
