/**
 * Calls as OpenTelemetry metrics and GenAI spans, where the host has OpenTelemetry. Only its API is
 * used, and only if it is there: without `@opentelemetry/api` nothing happens and nothing is needed.
 */
import type * as api from "@opentelemetry/api";
import type { Ended } from "../spec/call.ts";
import { sizeOf } from "./metrics.ts";

export interface Telemetry {
  record(ended: Ended): void;
}

type Api = typeof api;

export interface TelemetryOptions {
  /** The host's own copy of `@opentelemetry/api`; looked for by name when left out. Not named as a type: nobody must have it. */
  readonly api?: object;
  readonly version?: string;
}

/** Undefined when the host has no OpenTelemetry. */
export async function createTelemetry(options: TelemetryOptions = {}): Promise<Telemetry | undefined> {
  const found = (options.api as Api | undefined) ?? (await findApi()); // the option says what it must be
  if (!found) return undefined;
  const tracer = found.trace.getTracer("callgate", options.version);
  const count = createCounters(found.metrics.getMeter("callgate", options.version));
  return {
    record(ended) {
      writeSpan(found, tracer, ended);
      count(ended);
    },
  };
}

async function findApi(): Promise<Api | undefined> {
  try {
    // A name the bundler cannot see: the package is the host's, never ours.
    const name = "@opentelemetry/api";
    return (await import(/* @vite-ignore */ name)) as Api;
  } catch {
    return undefined; // Not installed: the host wants none.
  }
}

/** GenAI semantic conventions: one `execute_tool` span per call, from asked to ended. */
function writeSpan(found: Api, tracer: api.Tracer, ended: Ended): void {
  const name = ended.tool ?? ended.name;
  const span = tracer.startSpan(`execute_tool ${name}`, {
    kind: found.SpanKind.INTERNAL,
    startTime: ended.askedAt,
    attributes: attributesOf(ended),
  });
  if (!ended.ok) span.setStatus({ code: found.SpanStatusCode.ERROR, message: ended.code ?? "failed" });
  span.end(ended.endedAt);
}

function attributesOf(ended: Ended): api.Attributes {
  return {
    "gen_ai.operation.name": "execute_tool",
    "gen_ai.tool.name": ended.tool ?? ended.name,
    "gen_ai.tool.call.id": ended.id,
    "gen_ai.tool.type": ended.kind === "custom" ? "extension" : "function",
    ...(ended.ok ? {} : { "error.type": ended.code ?? "failed" }),
    ...(ended.ruling === undefined
      ? {}
      : { "callgate.decision": ended.ruling.decision, "callgate.decided_by": ended.ruling.by }),
  };
}

function createCounters(meter: api.Meter): (ended: Ended) => void {
  const calls = meter.createCounter("callgate.calls", { description: "Tool calls by how they ended" });
  const duration = meter.createHistogram("callgate.call.duration", { unit: "ms", description: "From asked to ended" });
  const bytes = meter.createCounter("callgate.call.bytes", { unit: "By", description: "Arguments in, content out" });
  return (ended) => {
    // An unknown name is the model's invention; as an attribute it could grow without end.
    const tool = { "gen_ai.tool.name": ended.tool ?? "(unknown)" };
    const size = sizeOf(ended);
    calls.add(1, { ...tool, code: ended.ok ? "ok" : (ended.code ?? "failed") });
    duration.record(ended.durationMs, tool);
    bytes.add(size.bytesIn, { ...tool, direction: "in" });
    bytes.add(size.bytesOut, { ...tool, direction: "out" });
  };
}
