/**
 * Turns, requests to models and calls as OpenTelemetry metrics and GenAI spans, if the host has
 * OpenTelemetry. Only its API is used, and only if it is there: without `@opentelemetry/api` nothing
 * happens and nothing is needed.
 */
import { checkOptions, optionsShape } from "../base/shape.ts";
import type * as api from "@opentelemetry/api";
import type { Ended } from "../spec/call.ts";
import type { Usage } from "../spec/model.ts";
import { sizeOf } from "./metrics.ts";

/** Spans of calls, turns and model requests, for OpenTelemetry. */
export interface Telemetry {
  record(ended: Ended): void;
  /**
   * The turns of a session as spans, each with its model requests and its calls below it, and with
   * tokens and cost. Returns a function that stops it.
   */
  follow(session: FollowedSession, about: FollowOptions): () => void;
  /** One request that was passed on to a model, as a span from its beginning to its end. */
  exchanged(exchange: ModelExchange): void;
}

/** A request to a model made by somebody else's agent. */
export interface ModelExchange {
  /** The name that was asked for. */
  readonly model: string;
  readonly conversation: string;
  readonly startedAt: number;
  readonly endedAt: number;
  readonly usage?: { readonly input: number; readonly output: number };
  readonly costUsd?: number;
  /** Why it failed, in few words. */
  readonly error?: string;
  /** The client's headers, so that its own trace continues here. */
  readonly headers?: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly attributes?: Readonly<Record<string, string | number | boolean>>;
}

/** The part of a session that is used here. */
export interface FollowedSession {
  readonly id: string;
  on(listener: (event: FollowedEvent) => void): () => void;
}

interface FollowedEvent {
  readonly type: string;
}

/** What a session's spans say about its model. */
export interface FollowOptions {
  /** The model's name. */
  readonly model: string;
  /** Who runs it: `openai`, `anthropic`, … */
  readonly provider?: string;
  /** The agent's own name. */
  readonly agent?: string;
}

type Api = typeof api;

/** Options of `createTelemetry`. */
export interface TelemetryOptions {
  /**
   * The host's own copy of `@opentelemetry/api`. Left out: it is looked up by name. Its type is not
   * named here, because nobody has to have it installed.
   */
  readonly api?: object;
  /** The version that spans and metrics name as their source. */
  readonly version?: string;
}

const telemetryShape = optionsShape<TelemetryOptions>({ api: "any", version: "string" });

/** Spans and metrics of calls through OpenTelemetry. Undefined when the host does not have it installed. */
export async function createTelemetry(options: TelemetryOptions = {}): Promise<Telemetry | undefined> {
  checkOptions("createTelemetry", options, telemetryShape);
  const found = (options.api as Api | undefined) ?? (await findApi()); // the option says what it must be
  if (!found) return undefined;
  const tracer = found.trace.getTracer("callgate", options.version);
  const meter = found.metrics.getMeter("callgate", options.version);
  const count = createCounters(meter);
  const tokens = meter.createHistogram("gen_ai.client.token.usage", { unit: "{token}", description: "Tokens used" });
  /** Calls are reported by a session's events and by the engine, but each call is one span. */
  const written = new WeakSet<Ended>();
  const write = (ended: Ended, parent?: api.Context) => {
    if (written.has(ended)) return;
    written.add(ended);
    writeSpan(found, tracer, ended, parent);
  };
  return {
    record(ended) {
      write(ended);
      count(ended);
    },
    exchanged(exchange) {
      const told = { "gen_ai.operation.name": "chat", "gen_ai.request.model": exchange.model };
      for (const [type, count] of Object.entries(exchange.usage ?? {}))
        tokens.record(count, { ...told, "gen_ai.token.type": type });
      writeExchange(found, tracer, exchange, told);
    },
    follow: (session, about) => session.on(createTrace({ found, tracer, tokens, write }, session.id, about)),
  };
}

async function findApi(): Promise<Api | undefined> {
  try {
    // A name that the bundler cannot see, because the package is the host's and never ours.
    const name = "@opentelemetry/api";
    return (await import(/* @vite-ignore */ name)) as Api;
  } catch {
    return undefined; // Not installed: the host wants none.
  }
}

interface Tracing {
  readonly found: Api;
  readonly tracer: api.Tracer;
  readonly tokens: api.Histogram;
  write(ended: Ended, parent?: api.Context): void;
}

/** The fields of a session's events that end up in spans. This layer is below sessions and cannot name their types. */
interface KnownFields extends FollowedEvent {
  readonly turn?: number;
  readonly reason?: string;
  readonly detail?: string;
  readonly usage?: Usage;
  readonly costUsd?: number;
  readonly call?: Ended;
}

/**
 * `invoke_agent` for a turn, and `chat` for each request in it. A turn that waits for an answer ends,
 * and begins again.
 */
function createTrace(
  { found, tracer, tokens, write }: Tracing,
  session: string,
  { model, provider, agent = "callgate" }: FollowOptions,
): (event: FollowedEvent) => void {
  let turn: { readonly span: api.Span; readonly context: api.Context; readonly costBefore: number } | undefined;
  let request: api.Span | undefined;
  let costUsd = 0;
  const common: api.Attributes = {
    "gen_ai.request.model": model,
    "gen_ai.conversation.id": session,
    ...(provider === undefined ? {} : { "gen_ai.provider.name": provider }),
  };
  const begin = (number?: number) => {
    const span = tracer.startSpan(`invoke_agent ${agent}`, {
      kind: found.SpanKind.INTERNAL,
      attributes: {
        ...common,
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": agent,
        ...(number === undefined ? {} : { "callgate.turn": number }),
      },
    });
    turn = { span, context: found.trace.setSpan(found.context.active(), span), costBefore: costUsd };
    return turn;
  };
  const endRequest = () => {
    request?.end();
    request = undefined;
  };
  const endTurn = (reason: string, { usage, detail }: KnownFields) => {
    endRequest();
    if (turn === undefined) return;
    turn.span.setAttributes({
      "callgate.turn.end": reason,
      ...usageAttributes(usage),
      ...(costUsd > turn.costBefore ? { "callgate.cost_usd": costUsd - turn.costBefore } : {}),
    });
    if (reason === "error") {
      turn.span.setAttribute("error.type", "turn");
      turn.span.setStatus({ code: found.SpanStatusCode.ERROR, ...(detail === undefined ? {} : { message: detail }) });
    }
    turn.span.end();
    turn = undefined;
  };

  return (event) => {
    const known = event as KnownFields;
    switch (event.type) {
      case "turn.started":
        begin(known.turn);
        break;
      case "request.sent": {
        endRequest();
        const parent = (turn ?? begin(known.turn)).context;
        const attributes = { ...common, "gen_ai.operation.name": "chat" };
        request = tracer.startSpan(`chat ${model}`, { kind: found.SpanKind.CLIENT, attributes }, parent);
        break;
      }
      case "usage.updated": {
        costUsd = known.costUsd ?? costUsd;
        request?.setAttributes(usageAttributes(known.usage));
        const { input = 0, output = 0 } = known.usage ?? {};
        const told = { ...common, "gen_ai.operation.name": "chat" };
        tokens.record(input, { ...told, "gen_ai.token.type": "input", "gen_ai.conversation.id": undefined });
        tokens.record(output, { ...told, "gen_ai.token.type": "output", "gen_ai.conversation.id": undefined });
        endRequest();
        break;
      }
      case "call.asked":
        endRequest();
        break;
      case "call.ended":
        if (known.call !== undefined) write(known.call, turn?.context);
        break;
      case "turn.waiting":
        endTurn("waiting", known);
        break;
      case "turn.ended":
        endTurn(known.reason ?? "", known);
        break;
      default:
        break;
    }
  };
}

function usageAttributes(usage: Usage | undefined): api.Attributes {
  if (usage === undefined) return {};
  return {
    "gen_ai.usage.input_tokens": usage.input,
    "gen_ai.usage.output_tokens": usage.output,
    ...(usage.cached === undefined ? {} : { "gen_ai.usage.cache_read.input_tokens": usage.cached }),
  };
}

function writeExchange(found: Api, tracer: api.Tracer, exchange: ModelExchange, told: api.Attributes): void {
  const parent = found.propagation.extract(found.context.active(), exchange.headers ?? {});
  const attributes = {
    ...told,
    ...exchange.attributes,
    "gen_ai.conversation.id": exchange.conversation,
    ...usageAttributes(exchange.usage),
    ...(exchange.costUsd === undefined ? {} : { "callgate.cost_usd": exchange.costUsd }),
    ...(exchange.error === undefined ? {} : { "error.type": exchange.error }),
  };
  const options = { kind: found.SpanKind.CLIENT, startTime: exchange.startedAt, attributes };
  const span = tracer.startSpan(`chat ${exchange.model}`, options, parent);
  if (exchange.error !== undefined) span.setStatus({ code: found.SpanStatusCode.ERROR, message: exchange.error });
  span.end(exchange.endedAt);
}

/** GenAI semantic conventions: one `execute_tool` span per call, from asked to ended. */
function writeSpan(found: Api, tracer: api.Tracer, ended: Ended, parent?: api.Context): void {
  const name = ended.tool ?? ended.name;
  const options = { kind: found.SpanKind.INTERNAL, startTime: ended.askedAt, attributes: attributesOf(ended) };
  const span = tracer.startSpan(`execute_tool ${name}`, options, parent ?? found.context.active());
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
    // An unknown name is the model's invention. As an attribute it could take any number of values.
    const tool = { "gen_ai.tool.name": ended.tool ?? "(unknown)" };
    const size = sizeOf(ended);
    calls.add(1, { ...tool, code: ended.ok ? "ok" : (ended.code ?? "failed") });
    duration.record(ended.durationMs, tool);
    bytes.add(size.bytesIn, { ...tool, direction: "in" });
    bytes.add(size.bytesOut, { ...tool, direction: "out" });
  };
}
