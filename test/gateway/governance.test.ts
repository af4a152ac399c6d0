/** What the gateway does to calls that the policy refuses, and what it writes down. */
import * as otel from "@opentelemetry/api";
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-base";
import { describe, expect, test } from "vitest";
import { isObject, type Json } from "../../src/base/json.ts";
import type { Judge, RequestRecord } from "../../src/gateway/index.ts";
import { createTelemetry } from "../../src/result/telemetry.ts";
import { listSessions, readJournal } from "../../src/store/index.ts";
import { tempFolder } from "../cli/run.ts";
import { ask, type Body, gateway, goOn, openGateway, question, rawUpstream, scripted } from "./gateways.ts";

const noRain: Judge = async (call) =>
  call.arguments.includes("rm") ? { reason: "it removes files", rule: "no-rm" } : undefined;
const remove = { name: "weather", input: { city: "rm -rf /" } };
const look = { name: "weather", input: { city: "Bonn" } };
const target = (baseUrl: string) => [{ match: "*", targets: [{ baseUrl, wire: "chat", model: "x" }] }];
const callsOf = (items: readonly { readonly type: string }[]) => items.filter(({ type }) => type === "call");

describe.each(["responses", "chat", "messages", "gemini"] as const)("for a %s client", (client) => {
  test("a refused call among others is replaced by words", async () => {
    const model = await scripted([{ text: "Two things.", calls: [remove, look] }]);
    const url = await gateway({ routes: target(model.baseUrl), judge: noRain, enforce: true });
    const { answer, text } = await ask(url, client);
    expect(callsOf(answer.items)).toMatchObject([{ arguments: JSON.stringify(look.input) }]);
    expect(text).toContain("refused by policy: it removes files");
  });

  test("when every call is refused the model is asked again, and the client sees only what it may", async () => {
    const model = await scripted([
      { text: "Removing.", calls: [remove] },
      { text: "Then I only look.", calls: [look] },
    ]);
    const url = await gateway({ routes: target(model.baseUrl), judge: noRain, enforce: true });
    const { answer, text } = await ask(url, client);
    expect(callsOf(answer.items)).toMatchObject([{ arguments: JSON.stringify(look.input) }]);
    expect(text).toContain("Removing.");
    expect(model.requests[1]?.input.slice(-2)).toMatchObject([{ type: "call" }, { type: "result", ok: false }]);
  });

  test("without --enforce the call passes, and the operator is told", async () => {
    const records: RequestRecord[] = [];
    const model = await scripted([{ calls: [remove] }]);
    const url = await gateway({
      routes: target(model.baseUrl),
      judge: noRain,
      onRequest: (record) => records.push(record),
    });
    const { answer } = await ask(url, client);
    expect(callsOf(answer.items)).toHaveLength(1);
    await expect.poll(() => records).toMatchObject([{ refused: [{ call: "weather", reason: "it removes files" }] }]);
  });
});

test.each(["responses", "chat", "messages", "gemini"] as const)(
  "a call whose arguments are broken goes back to the model and not to a %s client",
  async (client) => {
    const doubled = { name: "weather", arguments: '{"city":"a"}{"city":"a"}' };
    const model = await scripted([{ calls: [doubled] }, { text: "Once more.", calls: [look] }]);
    const url = await gateway({ routes: target(model.baseUrl) });
    const { answer, text } = await ask(url, client);
    expect(callsOf(answer.items)).toMatchObject([{ arguments: JSON.stringify(look.input), complete: true }]);
    expect(text).not.toContain("__unparsed");
    expect(model.requests).toHaveLength(2);
  },
);

test("a model that insists is refused in words after three rounds", async () => {
  const model = await scripted([{ calls: [remove] }, { calls: [remove] }, { calls: [remove] }]);
  const url = await gateway({ routes: target(model.baseUrl), judge: noRain, enforce: true });
  const { answer, text } = await ask(url, "chat");
  expect(callsOf(answer.items)).toEqual([]);
  expect(answer.finish).toBe("stop");
  expect(text).toContain("refused by policy");
  expect(model.requests).toHaveLength(3);
});

test("a conversation is one journal: what is new is written, results of the client's tools too", async () => {
  const stateDir = tempFolder("gateway");
  const end = { usage: { input: 10, output: 5 } };
  const model = await scripted([
    { calls: [{ ...look, id: "c1" }], end },
    { text: "Rain.", end },
    { text: "Still rain." },
  ]);
  const options = { routes: target(model.baseUrl), stateDir };
  const url = await gateway(options);
  const headers = { "x-session-id": "one" };
  const first = [{ role: "user", content: "hi" }];
  const made = {
    role: "assistant",
    content: null,
    tool_calls: [{ id: "c1", type: "function", function: { name: "weather", arguments: JSON.stringify(look.input) } }],
  };
  const second = [...first, made, { role: "tool", tool_call_id: "c1", content: "rain" }];
  await ask(url, "chat", question("chat", true), headers);
  await ask(url, "chat", { ...question("chat", true), messages: second }, headers);
  const [session] = listSessions(stateDir);
  const types = () => readJournal(session?.path ?? "").records.map(({ type }) => type);
  expect(types()).toEqual([
    "session.started",
    "item.added",
    "request.sent",
    "item.added",
    "usage.updated",
    "call.ended",
    "request.sent",
    "item.added",
    "usage.updated",
  ]);
});

test("two conversations at once are never mixed up", async () => {
  const echo = (request: { readonly input: readonly unknown[] }) => ({ text: JSON.stringify(request.input.at(0)) });
  const model = await scripted(Array.from({ length: 40 }, () => echo));
  const url = await gateway({ routes: target(model.baseUrl), stateDir: tempFolder("gateway") });
  const replies = await Promise.all(
    Array.from({ length: 40 }, async (_, at) => {
      const word = `word-${at}-`;
      const { text } = await ask(
        url,
        (["chat", "messages", "responses", "gemini"] as const)[at % 4]!,
        question((["chat", "messages", "responses", "gemini"] as const)[at % 4]!, true, word),
      );
      return (
        text.includes(word) &&
        !Array.from({ length: 40 }, (__, other) => other).some(
          (other) => other !== at && text.includes(`word-${other}-`),
        )
      );
    }),
  );
  expect(replies.every(Boolean)).toBe(true);
});

describe("the journal of a conversation", () => {
  const headers = { "x-session-id": "one" };
  const say = (content: string) => ({ role: "user", content });
  const said = (content: string) => ({ role: "assistant", content });
  const chat = (messages: Json, tools: Json = []) => ({ model: "m", stream: true, messages, tools });
  const records = (stateDir: string) => listSessions(stateDir).map(({ path }) => readJournal(path).records);
  const texts = (list: readonly { readonly type: string }[]) =>
    list.flatMap((record) =>
      [...JSON.stringify((record as { item?: unknown }).item ?? "").matchAll(/"text":"([^"]*)"/g)].map(
        ([, words]) => words,
      ),
    );

  test("holds words that were said twice, and goes on after a restart without repeating itself", async () => {
    const stateDir = tempFolder("gateway");
    const model = await scripted([{ text: "Done." }, { text: "Done." }, { text: "Done." }]);
    const options = { routes: target(model.baseUrl), stateDir };
    const { url, close } = await openGateway(options);
    const first = [say("yes")];
    const second = [...first, said("Done."), say("yes")];
    await ask(url, "chat", chat(first), headers);
    await ask(url, "chat", chat(second), headers);
    await close();
    const again = await gateway(options);
    await ask(again, "chat", chat([...second, said("Done."), say("and more")]), headers);
    const [journal] = records(stateDir);
    expect(records(stateDir)).toHaveLength(1);
    expect(texts(journal ?? [])).toEqual(["yes", "Done.", "yes", "Done.", "and more", "Done."]);
    expect(journal?.filter(({ type }) => type === "warning")).toEqual([]);
  });

  test("says where the client made its history shorter", async () => {
    const stateDir = tempFolder("gateway");
    const model = await scripted([{ text: "Done." }, { text: "Going on." }]);
    const url = await gateway({ routes: target(model.baseUrl), stateDir });
    await ask(url, "chat", chat([say("one"), said("ok"), say("two")]), headers);
    await ask(url, "chat", chat([say("In short: one, two."), say("three")]), headers);
    const [journal] = records(stateDir);
    expect(journal?.filter(({ type }) => type === "warning")).toMatchObject([
      { message: expect.stringContaining("new branch") },
    ]);
    expect(texts(journal ?? [])).toEqual(["one", "ok", "two", "Done.", "In short: one, two.", "three", "Going on."]);
  });

  test("of a sub-agent is its own, and names the one it belongs to", async () => {
    const stateDir = tempFolder("gateway");
    const model = await scripted([{ text: "Done." }, { text: "Found." }]);
    const url = await gateway({ routes: target(model.baseUrl), stateDir });
    const tool = (name: string): Json => [{ type: "function", function: { name, parameters: { type: "object" } } }];
    await ask(url, "chat", chat([say("one")], tool("Task")), headers);
    await ask(url, "chat", chat([say("look for it")], tool("Grep")), headers);
    const started = records(stateDir).map(
      (list) => list.find(({ type }) => type === "session.started") as { session_id?: string; parent?: string },
    );
    const main = started.find(({ parent }) => parent === undefined);
    expect(started.find(({ parent }) => parent !== undefined)?.parent).toBe(main?.session_id);
  });
});

describe("state that a client carries for us", () => {
  const ownState = "the model's own state";

  /** A thought of a Responses model, sealed for a Messages client. */
  async function sealed(secret?: string) {
    const output = [
      { type: "reasoning", id: "r1", summary: [{ type: "summary_text", text: "Hm." }], encrypted_content: ownState },
      { type: "function_call", id: "f1", call_id: "c1", name: "weather", arguments: '{"city":"Bonn"}' },
    ];
    const model = await rawUpstream((_request, response) => {
      response.writeHead(200, { "content-type": "application/json" });
      response.end(JSON.stringify({ id: "x", object: "response", status: "completed", output }));
    });
    const routes = [{ match: "*", targets: [{ baseUrl: model.baseUrl, wire: "responses", model: "x" }] }];
    const options = { routes, ...(secret === undefined ? {} : { secret }) };
    const url = await gateway(options);
    const first = { ...question("messages", false), stream: false };
    const { text } = await ask(url, "messages", first);
    const next = (change: (signature: string) => string) =>
      goOn("messages", first, JSON.parse(text) as Json, "rain", (item) =>
        isObject(item) && typeof item["signature"] === "string"
          ? { ...(item as Body), signature: change(item["signature"]) }
          : item,
      );
    return { model, url, next, options };
  }
  const came = (model: { readonly requests: readonly { readonly body: string }[] }) =>
    model.requests.at(-1)?.body.includes(ownState);

  test("comes back to the model, also after a restart with the same key", async () => {
    const { model, next, options } = await sealed("a key");
    await ask(
      await gateway(options),
      "messages",
      next((signature) => signature),
    );
    expect(came(model)).toBe(true);
  });

  test.each([
    ["cut", (signature: string) => signature.slice(0, -8)],
    [
      "changed",
      (signature: string) => `${signature.slice(0, 40)}${signature[40] === "A" ? "B" : "A"}${signature.slice(41)}`,
    ],
    [
      "made by somebody else",
      () =>
        `Y2FsbGdhdGUx${Buffer.from(JSON.stringify(["responses", "encrypted_content", ownState])).toString("base64")}`,
    ],
  ])("is left out when it was %s, and the conversation goes on", async (_how, change) => {
    const { model, url, next } = await sealed("a key");
    const { status, answer } = await ask(url, "messages", next(change));
    expect([status, answer.outcome]).toEqual([200, "ok"]);
    expect(came(model)).toBe(false);
  });

  test("is left out when it was sealed with another key", async () => {
    const { model, next, options } = await sealed("a key");
    await ask(
      await gateway({ ...options, secret: "another key" }),
      "messages",
      next((signature) => signature),
    );
    expect(came(model)).toBe(false);
  });
});

test("a response that was stored is still there after a restart, unless the client asked not to store it", async () => {
  const stateDir = tempFolder("gateway");
  const model = await scripted([{ text: "One." }, { text: "Two." }, { text: "Three." }]);
  const options = { routes: target(model.baseUrl), stateDir };
  const { url, close } = await openGateway(options);
  const kept = await ask(url, "responses", question("responses", false, "first words"));
  const passing = await ask(url, "responses", { ...question("responses", false), store: false });
  await close();
  const again = await gateway(options);
  const goesOn = (id: string | undefined) =>
    ask(again, "responses", { ...question("responses", false, "more"), previous_response_id: id ?? "" });
  expect((await goesOn(passing.answer.id)).status).toBe(404);
  expect((await goesOn(kept.answer.id)).status).toBe(200);
  expect(JSON.stringify(model.bodies.at(-1))).toContain("first words");
});

test("each request is a span with its model, tokens and outcome, in the client's own trace", async () => {
  const exporter = new InMemorySpanExporter();
  const tracers = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
  const extract = (context: otel.Context, carrier: Readonly<Record<string, unknown>>) => {
    const [, traceId, spanId] = /^00-(\w+)-(\w+)-/.exec(String(carrier["traceparent"] ?? "")) ?? [];
    return traceId === undefined || spanId === undefined
      ? context
      : otel.trace.setSpanContext(context, { traceId, spanId, traceFlags: 1 });
  };
  const api = {
    ...otel,
    trace: Object.assign(Object.create(otel.trace) as object, { getTracer: (name: string) => tracers.getTracer(name) }),
    propagation: { extract },
  };
  const telemetry = (await createTelemetry({ api }))!;
  const model = await scripted([
    { text: "Rain.", end: { usage: { input: 10, output: 5 } } },
    { end: { outcome: "error", error: { type: "overloaded", message: "busy" } } },
    { end: { outcome: "error", error: { type: "overloaded", message: "busy" } } },
  ]);
  const url = await gateway({ routes: target(model.baseUrl), telemetry });
  const traceId = "0af7651916cd43dd8448eb211c80319c";
  await ask(url, "messages", question("messages", true), { traceparent: `00-${traceId}-b7ad6b7169203331-01` });
  await ask(url, "chat");
  await expect.poll(() => exporter.getFinishedSpans().length).toBe(2);
  const [fine, failed] = exporter.getFinishedSpans();
  expect(fine?.name).toBe("chat m");
  expect(fine?.spanContext().traceId).toBe(traceId);
  expect(fine?.attributes).toMatchObject({
    "gen_ai.operation.name": "chat",
    "gen_ai.request.model": "m",
    "gen_ai.response.model": "x",
    "gen_ai.usage.input_tokens": 10,
    "gen_ai.usage.output_tokens": 5,
    "callgate.wire": "messages",
  });
  expect(failed?.attributes).toMatchObject({ "error.type": "error", "callgate.wire": "chat" });
  expect(failed?.status.code).toBe(otel.SpanStatusCode.ERROR);
});
