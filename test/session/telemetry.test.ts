/** Turns, requests and calls in the real OpenTelemetry SDK: one trace for each turn. */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as otel from "@opentelemetry/api";
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from "@opentelemetry/sdk-metrics";
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
  type ReadableSpan,
} from "@opentelemetry/sdk-trace-base";
import { expect, test } from "vitest";
import { createEngine, createTelemetry, defineTool } from "../../src/index.ts";
import { createSession } from "../../src/session/index.ts";
import { createScriptedModel } from "../../src/testing/index.ts";

const look = defineTool({
  name: "look",
  description: "Looks.",
  input: { type: "object", properties: {} },
  run: () => "seen",
});

test("a turn is one trace: its requests with tokens, its calls once each, its cost", async () => {
  const exporter = new InMemorySpanExporter();
  const tracers = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
  const metrics = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  const reader = new PeriodicExportingMetricReader({ exporter: metrics });
  const meters = new MeterProvider({ readers: [reader] });
  const api = {
    ...otel,
    trace: Object.assign(Object.create(otel.trace) as object, { getTracer: (name: string) => tracers.getTracer(name) }),
    metrics: { getMeter: (name: string) => meters.getMeter(name) },
  };
  const telemetry = (await createTelemetry({ api }))!;
  const engine = createEngine({
    workspace: mkdtempSync(join(tmpdir(), "callgate-otel-")),
    tools: [look],
    telemetry,
  });
  const usage = { input: 1000, cached: 400, output: 50 };
  const session = createSession({
    id: "s1",
    engine,
    price: { input: 1, cached: 0.1, output: 10 },
    model: createScriptedModel([
      { calls: [{ name: "look" }, { name: "nothing_like_it" }], end: { usage } },
      { text: "done", end: { usage } },
    ]),
  });
  const stop = telemetry.follow(session, { model: "scripted", provider: "openai", agent: "helper" });
  for await (const _event of session.send("go"));
  stop();
  await session.close();
  await engine.close();

  const spans = exporter.getFinishedSpans();
  const named = (name: string): readonly ReadableSpan[] => spans.filter((span) => span.name === name);
  const [turn] = named("invoke_agent helper");
  expect(turn!.attributes).toMatchObject({
    "gen_ai.operation.name": "invoke_agent",
    "gen_ai.conversation.id": "s1",
    "gen_ai.provider.name": "openai",
    "gen_ai.usage.input_tokens": 2000,
    "gen_ai.usage.output_tokens": 100,
    "callgate.turn.end": "done",
  });
  expect(Number(turn!.attributes["callgate.cost_usd"])).toBeCloseTo(session.costUsd);
  const requests = named("chat scripted");
  expect(requests).toHaveLength(2);
  for (const request of requests) {
    expect(request.parentSpanContext?.spanId).toBe(turn!.spanContext().spanId);
    expect(request.kind).toBe(otel.SpanKind.CLIENT);
    expect(request.attributes).toMatchObject({
      "gen_ai.request.model": "scripted",
      "gen_ai.usage.input_tokens": 1000,
      "gen_ai.usage.cache_read.input_tokens": 400,
    });
  }
  const calls = [...named("execute_tool look"), ...named("execute_tool nothing_like_it")];
  expect(calls).toHaveLength(2);
  for (const call of calls) expect(call.spanContext().traceId).toBe(turn!.spanContext().traceId);
  expect(named("execute_tool nothing_like_it")[0]!.attributes).toMatchObject({ "error.type": "unknown_tool" });
  expect(spans).toHaveLength(5);

  await reader.forceFlush();
  const names = metrics.getMetrics().flatMap(({ scopeMetrics }) => scopeMetrics.flatMap((scope) => scope.metrics));
  expect(names.map(({ descriptor }) => descriptor.name)).toEqual(
    expect.arrayContaining(["gen_ai.client.token.usage", "callgate.calls"]),
  );
  await meters.shutdown();
});

test("a turn that fails is marked as failed with the reason; one that ends well is not", async () => {
  const exporter = new InMemorySpanExporter();
  const tracers = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
  const api = {
    ...otel,
    trace: Object.assign(Object.create(otel.trace) as object, { getTracer: (name: string) => tracers.getTracer(name) }),
  };
  const telemetry = (await createTelemetry({ api }))!;
  const engine = createEngine({ workspace: mkdtempSync(join(tmpdir(), "callgate-otel-")), tools: [look], telemetry });
  // The script ends before the second message: the model has no answer to that.
  const session = createSession({ id: "s2", engine, model: createScriptedModel([{ text: "done" }]) });
  const stop = telemetry.follow(session, { model: "scripted", provider: "openai", agent: "helper" });
  for await (const _event of session.send("go"));
  for await (const _event of session.send("again"));
  stop();
  await session.close();
  await engine.close();
  const turns = exporter.getFinishedSpans().filter(({ name }) => name === "invoke_agent helper");
  expect(turns.map(({ attributes }) => attributes["callgate.turn.end"])).toEqual(["done", "error"]);
  expect(turns.map(({ attributes }) => attributes["error.type"])).toEqual([undefined, "turn"]);
  expect(turns[0]?.status.code).toBe(otel.SpanStatusCode.UNSET);
  expect(turns[1]?.status).toMatchObject({ code: otel.SpanStatusCode.ERROR, message: expect.stringMatching(/./) });
});
