import * as otel from "@opentelemetry/api";
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-base";
import { expect, test } from "vitest";
import { createTelemetry } from "../../src/result/telemetry.ts";
import type { Ended } from "../../src/spec/call.ts";

const ended: Ended = {
  id: "c1",
  name: "read",
  tool: "read",
  kind: "function",
  arguments: "{}",
  askedAt: 1000,
  ok: false,
  code: "denied",
  content: [{ type: "text", text: "no" }],
  endedAt: 1010,
  durationMs: 10,
  ruling: { decision: "deny", reason: "r", by: "rule" },
};

test("a call is one execute_tool span and three measurements in the host's OpenTelemetry", async () => {
  const spans: unknown[] = [];
  const measured: unknown[] = [];
  const tracer = {
    startSpan: (name: string, options: otel.SpanOptions) => {
      const span = { name, ...options, status: undefined as unknown, endTime: undefined as unknown };
      spans.push(span);
      return { setStatus: (status: unknown) => (span.status = status), end: (time: unknown) => (span.endTime = time) };
    },
  };
  const instrument = (name: string) => ({
    add: (value: number, attributes: unknown) => measured.push([name, value, attributes]),
    record: (value: number, attributes: unknown) => measured.push([name, value, attributes]),
  });
  const api = {
    ...otel,
    trace: { getTracer: () => tracer },
    metrics: { getMeter: () => ({ createCounter: instrument, createHistogram: instrument }) },
  } as unknown as typeof otel;
  const telemetry = await createTelemetry({ api });
  telemetry!.record(ended);
  expect(spans).toEqual([
    {
      name: "execute_tool read",
      kind: otel.SpanKind.INTERNAL,
      startTime: 1000,
      endTime: 1010,
      status: { code: otel.SpanStatusCode.ERROR, message: "denied" },
      attributes: {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "read",
        "gen_ai.tool.call.id": "c1",
        "gen_ai.tool.type": "function",
        "error.type": "denied",
        "callgate.decision": "deny",
        "callgate.decided_by": "rule",
      },
    },
  ]);
  expect(measured).toEqual([
    ["callgate.calls", 1, { "gen_ai.tool.name": "read", code: "denied" }],
    ["callgate.call.duration", 10, { "gen_ai.tool.name": "read" }],
    ["callgate.call.bytes", 2, { "gen_ai.tool.name": "read", direction: "in" }],
    ["callgate.call.bytes", 2, { "gen_ai.tool.name": "read", direction: "out" }],
  ]);
});

test("with the API installed and no SDK, recording does nothing and harms nothing", async () => {
  const telemetry = await createTelemetry();
  expect(telemetry).toBeDefined();
  expect(() => telemetry!.record(ended)).not.toThrow();
});

/** The real SDK in memory, and what it was given. */
async function recording() {
  const exporter = new InMemorySpanExporter();
  const tracers = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
  const tokens: [number, unknown][] = [];
  const instrument = () => ({
    add: () => {},
    record: (value: number, told: unknown) => void tokens.push([value, told]),
  });
  const api = {
    ...otel,
    trace: Object.assign(Object.create(otel.trace) as object, { getTracer: (name: string) => tracers.getTracer(name) }),
    metrics: { getMeter: () => ({ createCounter: instrument, createHistogram: instrument }) },
  } as unknown as typeof otel;
  const telemetry = (await createTelemetry({ api }))!;
  let tell: (event: { readonly type: string; readonly [field: string]: unknown }) => void = () => {};
  const session = { id: "s1", on: (listener: typeof tell) => ((tell = listener), () => {}) };
  telemetry.follow(session as never, { model: "m", provider: "openai" } as never);
  const spans = () => exporter.getFinishedSpans();
  return { telemetry, tokens, spans, tell: (type: string, fields: object = {}) => tell({ type, ...fields }) };
}

test("a turn that waits for a person is ended as waiting, and what comes later is a turn of its own", async () => {
  const { spans, tell } = await recording();
  tell("turn.started", { turn: 1 });
  tell("request.sent");
  tell("call.asked");
  tell("turn.waiting");
  tell("request.sent", { turn: 2 });
  tell("turn.ended", { reason: "done" });
  tell("turn.ended", { reason: "done" }); // of nothing that began
  expect(
    spans().map(({ name, attributes }) => [name, attributes["callgate.turn.end"], attributes["callgate.turn"]]),
  ).toEqual([
    ["chat m", undefined, undefined],
    [expect.stringContaining("invoke_agent"), "waiting", 1],
    ["chat m", undefined, undefined],
    [expect.stringContaining("invoke_agent"), "done", 2],
  ]);
  const [first, turn, second] = spans();
  expect(first?.parentSpanContext?.spanId).toBe(turn?.spanContext().spanId);
  expect(second?.parentSpanContext?.spanId).not.toBe(turn?.spanContext().spanId);
});

test("what a request used is on its span and counted by kind; what a turn cost is what was added in it", async () => {
  const { spans, tell, tokens } = await recording();
  for (const costUsd of [1, 3]) {
    tell("turn.started");
    tell("request.sent");
    tell("usage.updated", { usage: { input: 10, output: 2, cached: 4 }, costUsd });
    tell("turn.ended", { reason: "done", usage: { input: 10, output: 2 } });
  }
  tell("turn.started");
  tell("turn.ended", { reason: "done" });
  const chats = spans().filter(({ name }) => name === "chat m");
  expect(chats.map(({ attributes }) => attributes["gen_ai.usage.cache_read.input_tokens"])).toEqual([4, 4]);
  const turns = spans().filter(({ name }) => name !== "chat m");
  expect(turns.map(({ attributes }) => attributes["callgate.cost_usd"])).toEqual([1, 2, undefined]);
  expect(turns.map(({ attributes }) => attributes["gen_ai.usage.cache_read.input_tokens"])).toEqual(Array(3));
  expect(tokens.map(([value, told]) => [value, (told as Record<string, unknown>)["gen_ai.token.type"]])).toEqual([
    [10, "input"],
    [2, "output"],
    [10, "input"],
    [2, "output"],
  ]);
});

test("a call is written once, whoever tells of it, and a good one carries no error", async () => {
  const { spans, tell, telemetry } = await recording();
  const good: Ended = { ...ended, ok: true };
  tell("turn.started");
  tell("call.ended", { call: good });
  telemetry.record(good);
  telemetry.record({ ...ended, id: "c2" });
  tell("turn.ended", { reason: "error", detail: "it broke" });
  const [call, other, turn] = spans();
  expect(spans()).toHaveLength(3);
  expect(call?.attributes).not.toHaveProperty("error.type");
  expect(call?.status.code).toBe(otel.SpanStatusCode.UNSET);
  expect(call?.parentSpanContext?.spanId).toBe(turn?.spanContext().spanId);
  expect(other?.parentSpanContext).toBeUndefined();
  expect(turn?.status).toEqual({ code: otel.SpanStatusCode.ERROR, message: "it broke" });
});

test("an exchange with a model through the gateway is a span with its times, cost and error", async () => {
  const { spans, telemetry, tokens } = await recording();
  const exchange = { model: "m", conversation: "c", startedAt: 1_700_000_001_000, endedAt: 1_700_000_003_000 };
  telemetry.exchanged({ ...exchange, usage: { input: 7, output: 3 }, costUsd: 0.5 } as never);
  telemetry.exchanged({ ...exchange, error: "timeout" } as never);
  const [good, bad] = spans();
  expect(good?.attributes).toMatchObject({ "gen_ai.usage.input_tokens": 7, "callgate.cost_usd": 0.5 });
  expect(good?.attributes).not.toHaveProperty("error.type");
  expect([good?.startTime[0], good?.endTime[0]]).toEqual([1_700_000_001, 1_700_000_003]);
  expect(good?.status.code).toBe(otel.SpanStatusCode.UNSET);
  expect(bad?.attributes).toMatchObject({ "error.type": "timeout" });
  expect(bad?.attributes).not.toHaveProperty("callgate.cost_usd");
  expect(bad?.status).toEqual({ code: otel.SpanStatusCode.ERROR, message: "timeout" });
  expect(tokens.map(([value]) => value)).toEqual([7, 3]);
});
