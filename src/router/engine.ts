/**
 * createEngine: the stages with their defaults, joined into the line. `router/` is the only folder
 * that knows all of them.
 */
import type { CallError } from "../base/error.ts";
import type { Json } from "../base/json.ts";
import { asksNobody, toSettings, type ApprovalName, type SandboxName } from "../gate/modes.ts";
import type { GateOptions } from "../gate/options.ts";
import { createRegistry, type Registry } from "../registry/registry.ts";
import { createMetrics, type Metrics } from "../result/metrics.ts";
import { createShaper, type ShapeOptions } from "../result/shape.ts";
import type { Telemetry } from "../result/telemetry.ts";
import { createRuntime } from "../runtime/runtime.ts";
import type { Asked, Ended } from "../spec/call.ts";
import { toSchema } from "../schema/schema.ts";
import { loadValidator } from "../schema/validate.ts";
import type { Approver, CallEvent, Confinement, Emit, Gate, Recorder } from "../spec/stages.ts";
import type { AnyTool, Logger, Situation } from "../spec/tool.ts";
import type { Sandbox } from "../runtime/sandbox/backend.ts";
import { checkEngineOptions, checkToolNames, type EngineOptions } from "./engine-options.ts";
import { createHost, type Host, type HostOptions } from "./host.ts";
import { createLanes, type Lanes } from "./lanes.ts";
import { createLazyGate, type LazyGate } from "./lazy-gate.ts";
import { route, type Stages } from "./route.ts";

export type { EngineOptions } from "./engine-options.ts";

export interface Engine {
  readonly workspace: string;
  readonly cwd: string;
  readonly registry: Registry;
  readonly gate: Gate;
  readonly metrics: Metrics;
  /** One call down the whole line: by name and input, or as a wire asked for it. */
  call(name: string, input?: Json | string, signal?: AbortSignal): Promise<Ended>;
  run(asked: Asked, signal: AbortSignal, recorder?: Recorder): Promise<Ended>;
  /** The calls of one turn: those that only look run together, those that change wait. */
  lanes(options: { readonly signal: AbortSignal; readonly recorder?: Recorder; readonly ready?: Promise<void> }): Lanes;
  /** A call that must not run still ends, is recorded and counted. */
  refuse(asked: Asked, error: CallError): Ended;
  /** What tool descriptions may depend on, right now. */
  situation(): Situation;
  openTerminals(): readonly string[];
  /** Gets ready for the first call while nobody waits for it; what goes wrong is told by that call. */
  warmUp(): Promise<void>;
  /** What confines commands here; probed when first asked for. */
  confinement(): Promise<Confinement>;
  /** The sandbox commands run in, for what must run beside them (MCP servers). */
  sandbox(): Sandbox;
  on(listener: (event: CallEvent) => void): () => void;
  close(): Promise<void>;
}

const silent: Logger = { debug() {}, info() {}, warn() {}, error() {} };
/** For calls that nobody will interrupt. */
const never = new AbortController().signal;
const nothing: Recorder = { async started() {}, async ended() {} };

export function createEngine(options: EngineOptions): Engine {
  checkEngineOptions(options);
  const listeners = new Set<(event: CallEvent) => void>();
  const emit = (event: CallEvent) => {
    for (const listener of listeners) listener(event);
  };
  const registry = options.registry ?? createRegistry(options.tools ?? []);
  const toolNames = checkToolNames(options, registry);
  const host = createHost(options);
  const stages = createStages(options, { registry, host, emit });
  const metrics = createMetrics();
  const log = options.log ?? silent;

  const book = (ended: Ended): Ended => {
    const { id, name, tool = name, ok, code, durationMs } = ended;
    metrics.count(ended);
    options.telemetry?.record(ended);
    log.info("call ended", { id, tool, ok, durationMs, ...(code === undefined ? {} : { code }) });
    return ended;
  };
  const run = async (asked: Asked, signal: AbortSignal, recorder: Recorder = nothing) => {
    toolNames.warn();
    return book(await route(asked, recorder === nothing ? stages : { ...stages, record: recorder }, signal));
  };

  return {
    workspace: host.workspace,
    cwd: host.cwd,
    registry,
    gate: stages.gate,
    metrics,
    run,
    call: (name, input = {}, signal = never) => run(toAsked(name, input), signal),
    lanes: ({ signal, recorder, ready }) =>
      createLanes({
        run: (asked) => run(asked, signal, recorder),
        isParallel: (asked) => registry.find(asked.name, asked.namespace)?.parallel ?? false,
        isMutating: (asked) => isMutating(registry.find(asked.name, asked.namespace)),
        ...(ready === undefined ? {} : { ready }),
      }),
    refuse(asked, error) {
      const ended = book(stages.result.refuse(asked, error));
      emit({ type: "call.ended", call: ended });
      return ended;
    },
    situation: () => toSituation(stages, options),
    openTerminals: host.openTerminals,
    async warmUp() {
      await Promise.allSettled([loadValidator(), stages.gate.load(), host.warmUp(stages.gate.baseGrant())]);
    },
    confinement: host.confinement,
    sandbox: host.sandbox,
    on(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    async close() {
      await stages.runtime.close();
      listeners.clear();
    },
  };
}

/** Every stage with its defaults; the options change what they say and nothing else. */
function createStages(
  options: EngineOptions,
  at: { readonly registry: Registry; readonly host: Host; readonly emit: Emit },
): Stages & { readonly gate: LazyGate } {
  const { registry, host, emit } = at;
  const { workspace, cwd, capabilities } = host;
  const { approver, service, model, timeoutMs, log = silent } = options;
  const gate = createLazyGate({
    settings: toSettings(options.approval, options.sandbox),
    workspace,
    confinement: host.confinement,
    emit,
    ...(approver === undefined ? {} : { approver }),
    ...options.gate,
    // What was cut can be read by the tools of the engine that cut it.
    readableRoots: [...(options.gate?.readableRoots ?? []), host.spillDir],
  });
  const runtime = createRuntime({
    workspace,
    cwd,
    capabilities,
    emit,
    log,
    session: new Map(),
    ...(approver?.answerer === undefined ? {} : { answerer: approver.answerer }),
    ...(service === undefined ? {} : { service }),
    ...(model === undefined ? {} : { model }),
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
  });
  const result = createShaper({ checkOutput, spill: host.spill, ...options.result });
  return { registry, gate, runtime, result, record: nothing, emit, at: { workspace, cwd } };
}

let counter = 0;

/** A program's own call, as a wire would have asked for it. */
function toAsked(name: string, input: Json | string): Asked {
  const isText = typeof input === "string";
  return {
    id: `call_${++counter}`,
    name,
    kind: isText ? "custom" : "function",
    arguments: isText ? input : JSON.stringify(input),
    askedAt: Date.now(),
  };
}

/** Before its input is known, a tool that might change something is taken to. */
function isMutating(tool: AnyTool | undefined): boolean {
  if (tool === undefined || tool.mutates === false) return false;
  return tool.mutates !== undefined || tool.access !== undefined;
}

async function checkOutput(ran: { readonly tool: AnyTool }, structured: Json | undefined): Promise<readonly string[]> {
  if (ran.tool.output === undefined) return [];
  const checked = await toSchema(ran.tool.output).validate(structured);
  return checked.ok ? [] : checked.issues.map(({ path, message }) => (path === "" ? message : `${path}: ${message}`));
}

function toSituation({ gate, at }: Stages, options: EngineOptions): Situation {
  const { approval, sandbox } = toSettings(options.approval, options.sandbox);
  const grant = gate.baseGrant();
  return {
    ...at,
    sandbox,
    writableRoots: grant.write,
    network: typeof grant.network === "string" ? grant.network : grant.network.join(", "),
    canEscalate: !asksNobody(approval),
    platform: process.platform,
  };
}
