import { expect, test } from "vitest";
import { text } from "../../../src/base/content.ts";
import type { JsonObject } from "../../../src/base/json.ts";
import type { Item } from "../../../src/spec/model.ts";
import { gemini } from "../../../src/wire/gemini/index.ts";
import { decodeRecording } from "../../../src/wire/stream.ts";
import { reportAnswer } from "../../../src/wire/report.ts";

function report(...chunks: readonly JsonObject[]): JsonObject {
  return reportAnswer(
    decodeRecording(
      gemini,
      chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\r\n\r\n`),
    ),
  );
}
const parts = (list: readonly JsonObject[], finishReason?: string): JsonObject => ({
  candidates: [
    { content: { role: "model", parts: list }, index: 0, ...(finishReason === undefined ? {} : { finishReason }) },
  ],
});
const weather = { functionCall: { name: "get_weather", args: { city: "Oslo" } } };

test("calls without ids get different ones, and ids that are there are kept", () => {
  const { calls } = report(parts([weather, weather, { functionCall: { ...weather.functionCall, id: "x" } }], "STOP"));
  const ids = (calls as readonly { id: string }[]).map((call) => call.id);
  expect(new Set(ids).size).toBe(3);
  expect(ids[2]).toBe("x");
});

test("a call without arguments has an empty object", () => {
  expect(report(parts([{ functionCall: { name: "list_dir" } }], "STOP"))).toMatchObject({
    finish: "tool_calls",
    calls: [{ input: {}, complete: true }],
  });
});

test("a call of a turn that was too long or never ended may not run", () => {
  expect(report(parts([weather], "MAX_TOKENS"))).toMatchObject({
    outcome: "incomplete",
    finish: "length",
    calls: [{ complete: false }],
  });
  expect(report(parts([weather]))).toMatchObject({ outcome: "truncated", finish: null, calls: [{ complete: false }] });
});

test("a malformed call, an error chunk and a filtered answer are told", () => {
  expect(report({ candidates: [{ finishReason: "MALFORMED_FUNCTION_CALL", index: 0 }] })).toMatchObject({
    outcome: "error",
    finish: "error",
    error: { code: "MALFORMED_FUNCTION_CALL" },
  });
  expect(
    report(parts([{ text: "par" }]), { error: { code: 503, message: "busy", status: "UNAVAILABLE" } }),
  ).toMatchObject({ outcome: "error", text: "par", error: { message: "busy", code: "UNAVAILABLE", status: 503 } });
  expect(report(parts([{ text: "par" }], "SAFETY"))).toMatchObject({
    outcome: "incomplete",
    finish: "content_filter",
    text: "par",
  });
});

test("a body that is a list of chunks is read like a stream", () => {
  const chunks = [parts([{ text: "Hel" }]), parts([{ text: "lo" }], "STOP")];
  expect(reportAnswer(decodeRecording(gemini, [JSON.stringify(chunks)]))).toMatchObject({
    outcome: "ok",
    text: "Hello",
  });
});

test("signatures go back on the part they came with; calls of other models get the documented bypass", () => {
  const answer = decodeRecording(gemini, [
    `data: ${JSON.stringify(
      parts(
        [
          { text: "hm", thought: true, thoughtSignature: "T" },
          { text: "So", thoughtSignature: "W" },
          { ...weather, thoughtSignature: "C" },
        ],
        "STOP",
      ),
    )}\n\n`,
  ]);
  const foreign: Item = { type: "call", kind: "function", id: "y", name: "search", arguments: "{}", complete: true };
  const { body } = gemini.encodeRequest({
    model: "m",
    input: [...answer.items, { type: "result", callId: "z", kind: "function", content: [], ok: true }, foreign],
    tools: [],
  });
  const [own, , other] = body["contents"] as readonly { parts: readonly JsonObject[] }[]; // as encoded
  expect(own!.parts.map((part) => part["thoughtSignature"])).toEqual(["T", "W", "C"]);
  expect(other!.parts).toMatchObject([
    { functionCall: { name: "search" }, thoughtSignature: "skip_thought_signature_validator" },
  ]);
});

test("results go back by name and id, errors as errors, images behind them", () => {
  const call: Item = {
    type: "call",
    kind: "function",
    id: "c",
    name: "view",
    namespace: "srv",
    arguments: "{}",
    complete: true,
  };
  const result: Item = {
    type: "result",
    callId: "c",
    kind: "function",
    ok: false,
    content: [text("no"), { type: "image", mediaType: "image/png", data: "AAAA" }],
  };
  const { body } = gemini.encodeRequest({ model: "m", input: [call, result], tools: [] });
  expect(body["contents"]).toMatchObject([
    { role: "model", parts: [{ functionCall: { name: "srv__view" } }] },
    {
      role: "user",
      parts: [
        { functionResponse: { id: "c", name: "srv__view", response: { error: "no" } } },
        { inlineData: { mimeType: "image/png", data: "AAAA" } },
      ],
    },
  ]);
});

test("arguments that Vertex streams value by value make one call", () => {
  const piece = (jsonPath: string, value: JsonObject, willContinue = false) => ({
    functionCall: {
      partialArgs: [{ jsonPath, ...value, ...(willContinue ? { willContinue } : {}) }],
      willContinue: true,
    },
  });
  const { calls } = report(
    parts([{ functionCall: { name: "book", willContinue: true }, thoughtSignature: "s1" }]),
    parts([piece("$.city", { stringValue: "Os" }, true)]),
    parts([piece("$.city", { stringValue: "lo" })]),
    parts([piece("$.guests[0].name", { stringValue: "Ada" }), piece("$.guests[0]['is child']", { boolValue: false })]),
    parts([piece("$.guests[1].age", { numberValue: 7 }), piece("$.note", { nullValue: "NULL_VALUE" })]),
    parts([piece("$['__proto__'].x", { numberValue: 1 })]),
    parts([{ functionCall: {} }]),
    parts([{ text: "" }], "STOP"),
  );
  expect(calls).toHaveLength(1);
  expect(calls).toMatchObject([{ name: "book", complete: true, extra: { thoughtSignature: "s1" } }]);
  const text = String((calls as readonly JsonObject[])[0]!["arguments"]);
  expect(text).toBe(
    '{"city":"Oslo","guests":[{"name":"Ada","is child":false},{"age":7}],"note":null,"__proto__":{"x":1}}',
  );
});

test("a streamed call that never ends, or whose paths make no sense, may not run", () => {
  const begin = { functionCall: { name: "book", willContinue: true } };
  const last = (jsonPath: string) => ({ functionCall: { partialArgs: [{ jsonPath, numberValue: 1 }] } });
  for (const list of [
    [begin],
    [begin, { text: "never mind" }],
    [begin, weather],
    [begin, last("$.a[4000000000]")],
    [begin, last("city")],
    [begin, last("$..*")],
    [begin, last("$.a"), begin, { functionCall: { partialArgs: [{ jsonPath: "$" }] } }],
  ])
    expect(report(parts(list, "STOP"))["calls"]).toContainEqual(
      expect.objectContaining({ name: "book", complete: false }),
    );
});

test("arguments of a client nested beyond all measure are no reason to crash", () => {
  const deep: unknown = JSON.parse(`${"[".repeat(200_000)}${"]".repeat(200_000)}`);
  const parts = [{ functionCall: { name: "search", args: { q: deep } } }];
  expect(gemini.decodeRequest({ contents: [{ role: "model", parts }] })).toMatchObject({
    input: [{ type: "call", name: "search" }],
  });
});

test("requests written by hand: either spelling, a part without its list, instructions as a string", () => {
  const request = gemini.decodeRequest({
    system_instruction: "be brief",
    contents: [{ parts: { text: "hi" } }, { role: "model", parts: [{ function_call: { name: "search", args: {} } }] }],
    generation_config: { temperature: 0.5 },
  });
  expect(request).toMatchObject({
    instructions: "be brief",
    temperature: 0.5,
    input: [
      { type: "message", role: "user", content: [{ text: "hi" }] },
      { type: "call", name: "search", arguments: "{}" },
    ],
  });
  expect(request.extra).toBeUndefined();
});
