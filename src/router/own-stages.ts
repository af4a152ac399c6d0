/**
 * The stages of one conversation: its own gate, runtime and memory, on top of the engine's tools,
 * rules and machine.
 */
import type { Json } from "../base/json.ts";
import { asksNobody, type PolicyNames } from "../gate/modes.ts";
import { toBaseGrant } from "../gate/grant.ts";
import { createPolicy, type GateOptions, type Memory } from "../gate/options.ts";
import type { Policy } from "../gate/policy-type.ts";
import type { RuleBook } from "../gate/rules.ts";
import type { Registry } from "../registry/registry.ts";
import type { Metrics } from "../result/metrics.ts";
import { createRuntime } from "../runtime/runtime.ts";
import { toSchema } from "../schema/schema.ts";
import type { Denial } from "../spec/access.ts";
import type { Ended, Permitted } from "../spec/call.ts";
import type { Approver, CallEvent, Emit, Gate, PolicySettings, Runtime } from "../spec/stages.ts";
import type { AnyTool, Logger, Situation } from "../spec/tool.ts";
import type { ConversationHost, Host } from "./host.ts";
import type { EngineOptions } from "./engine-options.ts";
import { withCache } from "./result-cache.ts";

/** What an engine's conversations share. */
export interface EngineParts {
  readonly options: EngineOptions;
  readonly registry: Registry;
  readonly host: Host;
  readonly book: RuleBook;
  readonly metrics: Metrics;
  readonly log: Logger;
  /** Called before a call starts. */
  starting(): void;
  /** The engine's current approval mode and sandbox. */
  policy(): PolicyNames;
  /** Receives every event of every conversation. */
  heard(event: CallEvent, conversation: string): void;
  /** Receives every call that has ended. */
  count(ended: Ended): void;
}

interface GateParts {
  readonly settings: PolicySettings;
  readonly memory: Memory;
  readonly emit: Emit;
  readonly approver: Approver | undefined;
}

export function createOwnGate(
  { options, host, book }: EngineParts,
  machine: ConversationHost,
  parts: GateParts,
): LazyGate {
  const { approver, ...rest } = parts;
  return createLazyGate({
    workspace: host.workspace,
    confinement: host.confinement,
    whyNotHeld: (grant, folder) => host.sandbox().whyNotHeld(grant, folder),
    ...(approver === undefined ? {} : { approver }),
    ...options.gate,
    ...rest,
    book,
    rules: book.rules.rules,
    readableRoots: [...(options.gate?.readableRoots ?? []), machine.spillDir],
  });
}

export interface LazyGate extends Gate {
  /** Prepares the first call in the background. */
  warmUp(): Promise<void>;
}

/**
 * Loads the gate with the first call: understanding commands is a large part of the engine, and a
 * session that only talks does not need it. The default grant is available without loading it.
 */
function createLazyGate(options: GateOptions): LazyGate {
  let loading: Promise<Gate> | undefined;
  let loaded: Gate | undefined;
  let policy: Policy | undefined;
  const ownPolicy = () => (policy ??= createPolicy(options));
  const load = async (): Promise<Gate> => {
    const { createGate } = await import("../gate/gate.ts");
    return (loaded = createGate(options, ownPolicy()));
  };
  const gate = () => loaded ?? (loading ??= load());
  return {
    async warmUp() {
      await gate();
      const { warmUpGate } = await import("../gate/gate.ts");
      warmUpGate(ownPolicy());
    },
    pass: async (checked, signal, asking) => (await gate()).pass(checked, signal, asking),
    decide: async (checked, rehearse) => (await gate()).decide(checked, rehearse),
    widen: async (permitted, denied, signal) => (await gate()).widen(permitted, denied, signal),
    judge: async (ran, effects, signal) => (await gate()).judge(ran, effects, signal),
    after: async (ended, signal) => (await gate()).after(ended, signal),
    baseGrant: () => loaded?.baseGrant() ?? toBaseGrant(ownPolicy()),
  };
}

export function createOwnRuntime(
  { options, host, log }: EngineParts,
  machine: ConversationHost,
  emit: Emit,
  approver: Approver | undefined,
  conversation: string,
): Runtime {
  const { service, model, timeoutMs } = options;
  const runtime = createRuntime({
    workspace: host.workspace,
    cwd: host.cwd,
    conversation,
    capabilities: machine.capabilities,
    emit,
    log,
    session: new Map(),
    ...(approver?.answerer === undefined ? {} : { answerer: approver.answerer }),
    ...(service === undefined ? {} : { service }),
    ...(model === undefined ? {} : { model }),
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
  });
  return withCache(runtime);
}

export async function checkOutput(
  ran: { readonly tool: AnyTool },
  structured: Json | undefined,
): Promise<readonly string[]> {
  if (ran.tool.output === undefined) return [];
  const checked = await toSchema(ran.tool.output).validate(structured);
  return checked.ok ? [] : checked.issues.map(({ path, message }) => (path === "" ? message : `${path}: ${message}`));
}

export function toSituation(
  gate: Gate,
  { workspace, cwd }: Host,
  { approval, sandbox }: PolicySettings,
  isSomebodyThere: boolean,
): Situation {
  const grant = gate.baseGrant();
  return {
    workspace,
    cwd,
    sandbox,
    writableRoots: grant.write,
    network: typeof grant.network === "string" ? grant.network : grant.network.join(", "),
    // Asking for more helps only if a sandbox confines the call, the mode allows questions, and somebody can answer.
    canEscalate: isSomebodyThere && sandbox !== "full-access" && !asksNobody(approval),
    platform: process.platform,
  };
}

/** Tells the model how to ask for more, if the tool has a parameter for that and somebody can be asked. */
export function howToAsk(call: Permitted, denied: Denial, { canEscalate }: Situation): string | undefined {
  const { elevation } = call.tool;
  if (!canEscalate || elevation === undefined || denied.rule !== undefined || denied.what === "time") return undefined;
  return call.access.escalation === undefined ? `Permission denied. Use ${elevation} if needed` : undefined;
}
