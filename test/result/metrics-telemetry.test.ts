import * as otel from "@opentelemetry/api";
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
