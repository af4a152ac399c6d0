import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { partsToText } from "../../src/base/content.ts";
import type { Answer, Item, ModelRequest } from "../../src/spec/model.ts";
import { answerToEvents, codecs, decodeRecording, encodeSse, type WireName } from "../../src/wire/index.ts";
import { endedAnswer, request } from "./arbitrary.ts";

const wires: readonly WireName[] = ["chat", "responses", "messages", "gemini"];
const pairs = wires.flatMap((from) => wires.filter((to) => to !== from).map((to) => [from, to] as const));

function through(wire: WireName, answer: Answer): Answer {
  const encoder = codecs[wire].createEncoder({ id: "id-1", model: "m" });
  const body = encodeSse(answerToEvents(answer).flatMap((event) => [...encoder.push(event)]));
  return decodeRecording(codecs[wire], [body]);
}

function asked(wire: WireName, input: ModelRequest): ModelRequest {
  const body: unknown = JSON.parse(
    JSON.stringify(codecs[wire].encodeRequest(input, { quirks: { echoReasoning: "reasoning_content" } }).body),
  );
  return codecs[wire].decodeRequest(wire === "gemini" ? { model: input.model, ...(body as object) } : body); // the model stands in its path
}

/**
 * What every wire has a place for: who said what, which call, which result. Ids of items and opaque state
 * stay on their own wire, and some wires join neighbouring messages of one speaker.
 */
function essence(items: readonly Item[]): readonly unknown[] {
  const said: unknown[][] = [];
  for (const item of items) {
    const before = said.at(-1);
    if (item.type === "call") said.push(["call", item.id, item.name, JSON.parse(item.arguments)]);
    else if (item.type === "result")
      said.push(["result", item.callId, partsToText(item.content).replace(/^Error: /, "")]);
    else if (item.type === "message" && before?.[0] === item.role) before.push(...item.content);
    else if (item.type === "message") said.push([item.role, ...item.content]);
  }
  return said;
}

const thoughts = (answer: Answer): string =>
  answer.items
    .flatMap((item) => (item.type === "reasoning" ? [...(item.summary ?? []), item.text ?? ""] : []))
    .join("");

const chosen = (input: ModelRequest): unknown =>
  typeof input.toolChoice === "object" ? Object.values(input.toolChoice)[0] : (input.toolChoice ?? "auto");

describe.each(pairs)("%s → neutral → %s → neutral", (from, to) => {
  test("keeps every answer", () => {
    const whole = endedAnswer.filter((answer) => answer.outcome === "ok");
    fc.assert(
      fc.property(whole, (answer) => {
        const there = through(to, through(from, answer));
        expect(essence(there.items)).toEqual(essence(answer.items));
        expect([there.outcome, there.finish]).toEqual([answer.outcome, answer.finish]);
        expect(thoughts(there)).toBe(thoughts(answer));
        if (answer.usage !== undefined)
          expect(there.usage).toMatchObject({ input: answer.usage.input, output: answer.usage.output });
      }),
      { numRuns: 40 },
    );
  });

  test("keeps every conversation, its tools and its settings", () => {
    fc.assert(
      fc.property(request, (input) => {
        const there = asked(to, asked(from, input));
        expect(essence(there.input)).toEqual(essence(input.input));
        expect(there.instructions).toBe(input.instructions);
        expect(there.tools.map((tool) => tool.name)).toEqual(input.tools.map((tool) => tool.name));
        expect([there.temperature, there.topP]).toEqual([input.temperature, input.topP]);
        expect(chosen(there)).toEqual(chosen(input));
      }),
      { numRuns: 40 },
    );
  });
});
