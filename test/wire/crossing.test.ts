import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { text } from "../../src/base/content.ts";
import type { Answer, Item, ModelRequest, ToolSpec } from "../../src/spec/model.ts";
import { answerToEvents } from "../../src/wire/answer.ts";
import { codecs, decodeRecording, encodeSse, type NameTable, type WireName } from "../../src/wire/index.ts";
import { endedAnswer, words } from "./arbitrary.ts";

/** One answer as a client of `wire` gets it, and as that client would report it back. */
function through(wire: WireName, answer: Answer, names?: NameTable): Answer {
  const options = names === undefined ? {} : { names };
  const encoder = codecs[wire].createEncoder(options);
  const body = encodeSse(answerToEvents(answer).flatMap((event) => [...encoder.push(event)]));
  return decodeRecording(codecs[wire], [body], options);
}

const wires = ["chat", "responses", "messages"] as const;
const pairs = wires.flatMap((from) => wires.filter((to) => to !== from).map((to) => [from, to] as const));

/** What a person and an engine see of an answer: words, thoughts, calls, how it ended. */
function seen(answer: Answer): object {
  const calls = answer.items.flatMap((item) =>
    item.type === "call" ? [[item.kind, item.id, item.namespace, item.name, item.arguments, item.complete]] : [],
  );
  const said = answer.items.flatMap((item) => (item.type === "message" ? item.content : []));
  const thoughts = answer.items.flatMap((item) =>
    item.type === "reasoning" ? [item.text ?? item.summary?.join("\n\n")] : [],
  );
  return { calls, said, thoughts, finish: answer.finish };
}

describe("from one wire to another and back", () => {
  test.each(pairs)("an answer of %s crosses %s with its words, thoughts and calls", (from, to) => {
    fc.assert(
      fc.property(
        endedAnswer.filter((answer) => answer.outcome === "ok"),
        (answer) => {
          const original = through(from, answer);
          const crossed = through(from, through(to, original));
          expect(seen(crossed)).toEqual(seen(original));
          expect(crossed.usage?.output).toEqual(original.usage?.output);
        },
      ),
      { numRuns: 200 },
    );
  });

  const tools: readonly ToolSpec[] = [
    { kind: "custom", name: "apply_patch", description: "p" },
    {
      kind: "namespace",
      name: "mcp__docs",
      description: "",
      tools: [{ kind: "function", name: "ask", description: "", parameters: { type: "object", properties: {} } }],
    },
  ];

  test.each(["chat", "messages"] as const)(
    "namespaces and freeform tools of a Responses client survive a model that speaks %s",
    (wire) => {
      fc.assert(
        fc.property(words, (patch) => {
          const { names } = codecs[wire].encodeRequest({ model: "m", tools, input: [] });
          const items: readonly Item[] = [
            { type: "call", kind: "custom", id: "call_1", name: "apply_patch", arguments: patch, complete: true },
            {
              type: "call",
              kind: "function",
              id: "call_2",
              name: "ask",
              namespace: "mcp__docs",
              arguments: '{"q":1}',
              complete: true,
            },
          ];
          const answer: Answer = { items, outcome: "ok", finish: "tool_calls" };
          const back = through("responses", through(wire, answer, names));
          expect(seen(back)).toEqual(seen(answer));
        }),
        { numRuns: 200 },
      );
    },
  );

  test.each(["chat", "messages", "gemini"] as const)(
    "tools that came as items are declared to a model that speaks %s",
    (wire) => {
      const found = {
        type: "namespace",
        name: "mcp__docs",
        description: "",
        tools: [{ type: "function", name: "ask", description: "" }],
      };
      const asked = codecs.responses.decodeRequest({
        model: "m",
        input: [{ type: "additional_tools", tools: [found] }],
      });
      const { body, names } = codecs[wire].encodeRequest(asked);
      expect(JSON.stringify(body)).toContain("mcp__docs__ask");
      expect(names.get("mcp__docs__ask")).toEqual({ kind: "function", name: "ask", namespace: "mcp__docs" });
    },
  );

  const opaque = fc.oneof(
    words.map((value) => ({ wire: "responses", kind: "encrypted_content", value })),
    words.map((value) => ({ wire: "messages", kind: "signature", value })),
    words.map((value) => ({ wire: "gemini", kind: "thoughtSignature", value })),
  );

  test.each(["responses", "messages"] as const)(
    "opaque state of any wire travels sealed through a client of %s",
    (wire) => {
      fc.assert(
        fc.property(opaque, fc.option(words, { nil: undefined }), (state, thought) => {
          const item: Item = { type: "reasoning", ...(thought === undefined ? {} : { text: thought }), opaque: state };
          const answer: Answer = { items: [item], outcome: "ok", finish: "stop" };
          // The client sends back what it was given, as part of its next request.
          const told = codecs[wire].encodeAnswer(answer);
          const request =
            wire === "responses"
              ? { input: told["output"] }
              : { messages: [{ role: "assistant", content: told["content"] }] };
          const back = codecs[wire].decodeRequest(JSON.parse(JSON.stringify({ model: "m", ...request })));
          expect(back.input[0]).toMatchObject(item);
          expect(through(wire, answer).items[0]).toMatchObject({ opaque: state });
        }),
        { numRuns: 200 },
      );
    },
  );

  test.each(["responses", "messages"] as const)(
    "what Gemini wants back with a call comes back from a client of %s",
    (wire) => {
      const call: Item = {
        type: "call",
        kind: "function",
        id: "call_1",
        name: "f",
        arguments: "{}",
        complete: true,
        extra: { wire: "gemini", fields: { thoughtSignature: "U0lH" } },
      };
      const encoder = codecs[wire].createEncoder();
      const answer: Answer = { items: [call], outcome: "ok", finish: "tool_calls" };
      const frames = answerToEvents(answer).flatMap((event) => [...encoder.push(event)]);
      const streamed = decodeRecording(codecs[wire], [encodeSse(frames)]);
      expect(streamed.items.map((item) => item.type)).toEqual(["reasoning", "call"]);
      const told = codecs[wire].encodeAnswer(answer);
      const request =
        wire === "responses"
          ? { input: told["output"] }
          : { messages: [{ role: "assistant", content: told["content"] }] };
      const { input } = codecs[wire].decodeRequest({ model: "m", ...request });
      expect(input).toMatchObject([call]);
      expect(JSON.stringify(codecs.gemini.encodeRequest({ model: "m", tools: [], input }).body)).toContain("U0lH");
    },
  );

  test("our own summary comes back from a client that keeps only opaque compaction", () => {
    const told = codecs.responses.encodeAnswer({ items: [{ type: "compaction", text: "So far: é" }], outcome: "ok" });
    expect(codecs.responses.decodeRequest({ model: "m", input: told["output"] }).input).toMatchObject([
      { type: "compaction", text: "So far: é" },
    ]);
  });

  test.each(pairs)("a conversation of %s written for %s keeps every call with its result", (from, to) => {
    const input: readonly Item[] = [
      { type: "message", role: "user", content: [text("go")] },
      { type: "message", role: "assistant", content: [text("ok")] },
      { type: "call", kind: "function", id: "call_1", name: "f", arguments: '{"a":1}', complete: true },
      { type: "call", kind: "function", id: "call_2", name: "f", arguments: "{}", complete: true },
      { type: "result", callId: "call_1", kind: "function", content: [text("one")], ok: true },
      { type: "result", callId: "call_2", kind: "function", content: [text("two")], ok: true },
      { type: "message", role: "user", content: [text("and?")] },
    ];
    const cross = (wire: WireName, request: ModelRequest) =>
      codecs[wire].decodeRequest(JSON.parse(JSON.stringify(codecs[wire].encodeRequest(request).body)));
    const back = cross(from, cross(to, cross(from, { model: "m", tools: [], input })));
    expect(back.input).toMatchObject(
      input.map((item) => (item.type === "message" && item.role === "assistant" ? { role: "assistant" } : item)),
    );
  });
});
