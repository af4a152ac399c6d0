import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Answer, Item, ModelRequest } from "../../../src/spec/model.ts";
import { answerToEvents } from "../../../src/wire/answer.ts";
import { gemini } from "../../../src/wire/gemini/index.ts";
import { encodeSse } from "../../../src/wire/sse.ts";
import { decodeRecording } from "../../../src/wire/stream.ts";
import { asHandedOut, brokenAnswer, endedAnswer, request } from "../arbitrary.ts";

function streamed(answer: Parameters<typeof answerToEvents>[0]): string {
  const encoder = gemini.createEncoder();
  return encodeSse(answerToEvents(answer).flatMap((event) => [...encoder.push(event)]));
}

/** This wire has whole JSON objects for arguments and no place for unsigned thoughts of a history. */
function asSpoken(items: readonly Item[]): readonly Item[] {
  return items.flatMap((item): readonly Item[] => {
    if (item.type === "call") return [{ ...item, arguments: JSON.stringify(JSON.parse(item.arguments)) }];
    return item.type === "reasoning" ? [] : [item];
  });
}

/** Without the thoughts that a call carries for clients that drop them. */
function withoutState(answer: Answer): Answer {
  const items = answer.items.map((item) => {
    if (item.type !== "call") return item;
    const { extra: _state, ...call } = item;
    return call;
  });
  return { ...answer, items };
}

describe("Gemini generateContent", () => {
  test("an answer written as a stream or whole is read back the same", () => {
    const whole = endedAnswer.filter((answer) => answer.outcome === "ok");
    fc.assert(
      fc.property(whole, (answer) => {
        expect(withoutState(decodeRecording(gemini, [streamed(answer)]))).toEqual(answer);
        expect(withoutState(gemini.decodeAnswer(JSON.parse(JSON.stringify(gemini.encodeAnswer(answer)))))).toEqual(
          answer,
        );
      }),
      { numRuns: 200 },
    );
  });

  test("an answer that was cut short or failed never gives a call that may run", () => {
    fc.assert(
      fc.property(fc.oneof(brokenAnswer, endedAnswer), (answer) => {
        const back = decodeRecording(gemini, [streamed(answer)]);
        expect(back.outcome).toBe(asHandedOut(answer).outcome);
        expect(back.items.some((item) => item.type === "call" && item.complete)).toBe(
          answer.items.some((item) => item.type === "call" && item.complete),
        );
      }),
      { numRuns: 300 },
    );
  });

  test("a request is read back as it was", () => {
    fc.assert(
      fc.property(request, (asked) => {
        const { parallel: _parallel, ...said }: ModelRequest = asked;
        const { body } = gemini.encodeRequest(said);
        const back = gemini.decodeRequest({ model: "m", ...body });
        expect({ ...back, input: asSpoken(back.input) }).toEqual({ ...said, input: asSpoken(said.input) });
      }),
      { numRuns: 200 },
    );
  });
});
