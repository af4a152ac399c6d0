/** Neutral answers and requests to check laws with. Only what every function-style wire can say. */
import * as fc from "fast-check";
import { text } from "../../src/base/content.ts";
import type {
  Answer,
  CallItem,
  Item,
  MessageItem,
  ModelRequest,
  ReasoningItem,
  ResultItem,
} from "../../src/spec/model.ts";

export const words = fc
  .string({ unit: "binary", minLength: 1, maxLength: 20 })
  .filter((value) => !/\p{Cs}/u.test(value));
const name = fc.constantFrom("get_weather", "search", "read_file", "a-b");
const object = fc.dictionary(fc.string({ maxLength: 5 }), fc.jsonValue({ maxDepth: 2 }), { maxKeys: 3 });

export function callArbitrary(complete: boolean): fc.Arbitrary<Omit<CallItem, "id">> {
  const args = complete
    ? object.map((value) => JSON.stringify(value))
    : fc.constantFrom('{"a', "{}", '{"city":"Oslo"}');
  return fc.record({
    type: fc.constant("call" as const),
    kind: fc.constant("function" as const),
    name,
    arguments: args,
    complete: fc.constant(complete),
  });
}

const reasoning: fc.Arbitrary<ReasoningItem> = words.map((value) => ({ type: "reasoning", text: value }));
const message: fc.Arbitrary<MessageItem> = words.map((value) => ({
  type: "message",
  role: "assistant",
  content: [text(value)],
}));

/** Thoughts, words, calls, each or not. */
function turn(complete: boolean): fc.Arbitrary<readonly Item[]> {
  return fc
    .tuple(
      fc.option(reasoning, { nil: undefined }),
      fc.option(message, { nil: undefined }),
      fc.array(callArbitrary(complete), { maxLength: 3 }),
    )
    .map(([thoughts, said, calls]) => [
      ...(thoughts === undefined ? [] : [thoughts]),
      ...(said === undefined ? [] : [said]),
      ...calls.map((call, at): CallItem => ({ ...call, id: `call_${at}` })),
    ]);
}

const usage = fc.record({
  input: fc.integer({ min: 10, max: 1000 }),
  output: fc.integer({ min: 50, max: 1000 }),
  cached: fc.nat(9),
  reasoning: fc.nat(50),
});

const ok: fc.Arbitrary<Answer> = fc.tuple(turn(true), fc.option(usage, { nil: undefined })).map(([items, counted]) => ({
  id: "id-1",
  model: "m",
  items,
  outcome: "ok",
  finish: items.some((item) => item.type === "call") ? "tool_calls" : "stop",
  ...(counted === undefined ? {} : { usage: counted }),
}));

const cutShort: fc.Arbitrary<Answer> = fc
  .tuple(turn(false), fc.constantFrom("length", "content_filter"))
  // The list holds finishes only.
  .map(([items, finish]) => ({ id: "id-1", model: "m", items, outcome: "incomplete", finish: finish as "length" }));

/** Answers that say so at their end; they have a whole form as well as a stream. */
export const endedAnswer: fc.Arbitrary<Answer> = fc.oneof(ok, cutShort);

export const brokenAnswer: fc.Arbitrary<Answer> = fc.oneof(
  turn(false).map((items): Answer => ({ id: "id-1", model: "m", items, outcome: "truncated" })),
  fc.tuple(turn(false), words).map(([items, message]): Answer => ({
    id: "id-1",
    model: "m",
    items,
    outcome: "error",
    error: { message, code: "c", type: "t" },
  })),
);

/** As a client gets it: an answer that did not end well has no calls, and one that was cut off is an error. */
export function asHandedOut(answer: Answer): Answer {
  const given = answer.outcome === "ok" ? answer.items : answer.items.filter((item) => item.type !== "call");
  if (answer.outcome !== "truncated") return { ...answer, items: given };
  const error = { message: "The model's answer ended before it was complete.", type: "server_error" };
  return { ...answer, items: given, outcome: "error", error };
}

/** A conversation: users speak, models think, speak and call, every call is answered. */
export const conversation: fc.Arbitrary<readonly Item[]> = fc
  .array(fc.tuple(words, turn(true), fc.array(fc.tuple(words, fc.boolean()), { minLength: 3, maxLength: 3 })), {
    maxLength: 4,
  })
  .map((turns) =>
    turns.flatMap(([asked, items, answers], round): readonly Item[] => {
      const said = items.map((item) => (item.type === "call" ? { ...item, id: `call_${round}_${item.id}` } : item));
      // A turn that is only thoughts says nothing to a server that has no place for them.
      const spoken = said.every((item) => item.type === "reasoning") ? [] : said;
      const results = spoken
        .filter((item) => item.type === "call")
        .map((call, at): ResultItem => {
          const [answer, succeeded] = answers[at]!;
          return {
            type: "result",
            callId: call.id,
            kind: "function",
            name: call.name,
            content: [text(`r${answer}`)],
            ok: succeeded,
          };
        });
      return [{ type: "message", role: "user", content: [text(asked)] }, ...spoken, ...results];
    }),
  );

const parameters = {
  type: "object",
  properties: { city: { type: "string", description: "where" } },
  required: ["city"],
};

export const request: fc.Arbitrary<ModelRequest> = fc
  .record(
    {
      instructions: words,
      input: conversation,
      toolNames: fc.uniqueArray(name),
      maxOutputTokens: fc.integer({ min: 1, max: 9999 }),
      temperature: fc.constantFrom(0, 0.5, 1),
      topP: fc.constantFrom(0.5, 1),
      stop: fc.array(words, { minLength: 1, maxLength: 2 }),
      toolChoice: fc.constantFrom("auto", "none", "required", { name: "search" }),
      parallel: fc.boolean(),
    },
    { requiredKeys: ["input", "toolNames"] },
  )
  .map(({ toolNames, toolChoice, parallel, ...rest }) => ({
    model: "m",
    ...rest,
    tools: toolNames
      .toSorted()
      .map((one) => ({ kind: "function" as const, name: one, description: `does ${one}`, parameters })),
    // Without tools there is nothing to choose, and the wire says nothing.
    ...(toolNames.length === 0 || toolChoice === undefined
      ? {}
      : { toolChoice: toolChoice as NonNullable<ModelRequest["toolChoice"]> }), // the four listed
    ...(toolNames.length === 0 || parallel === undefined ? {} : { parallel }),
  }));
