/**
 * One conversation of an engine: what its calls share, and no other conversation sees. Approvals given in it, the
 * files it has read, the processes it left running, the outputs kept for it, `ctx.session` and its call ids are its
 * own. The tools, the rules and the machine belong to the engine.
 */
import type { CallError } from "../base/error.ts";
import { defined, type Json, type JsonObject } from "../base/json.ts";
import { checkOptions, optionsShape } from "../base/shape.ts";
import { nearest } from "../base/text.ts";
import {
  approvalNames,
  sandboxNames,
  toSettings,
  type ApprovalName,
  type PolicyNames,
  type SandboxName,
} from "../gate/modes.ts";
import { checkPolicyChange, type Memory } from "../gate/options.ts";
import type { OfferSettings } from "../registry/profile.ts";
import type { Registry } from "../registry/registry.ts";
import type { ExecLayout } from "../result/cut.ts";
import type { Metrics } from "../result/metrics.ts";
import { createShaper } from "../result/shape.ts";
import type { Asked, Ended } from "../spec/call.ts";
import type { ToolSpec } from "../spec/model.ts";
import type { Approver, CallEvent, Decided, Gate } from "../spec/stages.ts";
import type { Situation } from "../spec/tool.ts";
import { isWireName, wireNames, type EncodedRequest, type EncodeOptions, type WireName } from "../wire/codec.ts";
import type { ConversationHost } from "./host.ts";
import { offerTo, specsFor, type Offered, type ToolsForOptions } from "./offered.ts";
import {
  checkOutput,
  createOwnGate,
  createOwnRuntime,
  howToAsk,
  toSituation,
  type EngineParts,
  type LazyGate,
} from "./own-stages.ts";
import { decide, type Stages } from "./route.ts";
import {
  createRunner,
  never,
  toAsked,
  withText,
  type CallResult,
  type Lanes,
  type LanesOptions,
  type RunOptions,
} from "./runner.ts";

/** Options of `engine.conversation`. */
export interface ConversationOptions {
  /** The host's name for it. Left out: a new one. */
  readonly id?: string;
  /** Asked when policy says so in this conversation. Left out: the engine's approver. */
  readonly approver?: Approver;
  /** Left out: the engine's mode, which may change while the conversation lasts. */
  readonly approval?: ApprovalName;
  /** Left out: the engine's sandbox. */
  readonly sandbox?: SandboxName;
  /** How the outcome of a command is laid out for this conversation's model, unless the engine says otherwise. */
  readonly layout?: ExecLayout;
  /** What a person has agreed to so far, if the host keeps that. Left out: nothing yet. */
  readonly memory?: Memory;
  /** The files this conversation has read so far, each with its version, if the host keeps them (`takeFilesRead`). */
  readonly filesRead?: Iterable<readonly [path: string, version: string]>;
}

/** The tools of a conversation, in the form that requests of one wire have. */
export interface WireTools extends Pick<EncodedRequest, "names" | "dropped"> {
  /** The `tools` field of a request. */
  readonly tools: readonly JsonObject[];
}

/**
 * What belongs to one conversation of an engine: approvals, terminals, file memory, kept outputs. Another one shares
 * none of it.
 */
export interface Conversation {
  readonly id: string;
  readonly workspace: string;
  readonly cwd: string;
  readonly registry: Registry;
  readonly gate: Gate;
  readonly metrics: Metrics;
  /** The person or program that is asked in this conversation, if there is one. */
  readonly approver: Approver | undefined;
  /** Where outputs of this conversation that are too long for a model are kept. */
  readonly spillDir: string;
  /** One call down the whole line, by name and input. */
  call(name: string, input?: Json | string, signal?: AbortSignal): Promise<CallResult>;
  /**
   * Runs a call that came over a wire. If another call with the same id is running, this one gets a new
   * id, which the result states.
   */
  run(asked: Asked, signal?: AbortSignal, options?: RunOptions): Promise<Ended>;
  /** What would happen to this call now, and the question that would be asked. Nothing runs and nothing is counted. */
  decide(asked: Asked, signal?: AbortSignal): Promise<Decided>;
  /**
   * Runs the calls of one turn: those that only read run together, and each one that changes something runs alone, in
   * its place.
   */
  lanes(options: LanesOptions): Lanes;
  /** A call that must not run still ends, is recorded and counted. */
  refuse(asked: Asked, error: CallError): Ended;
  /**
   * The tools a model of this name is offered: chosen by its family, or by the engine's `offer`, or by
   * these settings.
   */
  offer(model?: string, settings?: OfferSettings): Offered;
  /**
   * The tools as a request of that wire lists them: with names the provider accepts, schemas in the
   * provider's form, and freeform tools as functions where the wire has only functions. `run` and `call`
   * accept these names too.
   */
  toolsFor(wire: WireName, options?: ToolsForOptions): Promise<WireTools>;
  /** What a tool's description may depend on, as it is right now. */
  situation(): Situation;
  openTerminals(): readonly string[];
  /** The files read or written since this was last asked for, each with the version that was seen. */
  takeFilesRead(): readonly (readonly [path: string, version: string])[];
  /** Another approval mode or sandbox from the next call on. */
  setPolicy(change: PolicyNames): void;
  on(listener: (event: CallEvent) => void): () => void;
  /** Ends what the conversation left running. It takes no calls after that. */
  close(): Promise<void>;
}

export interface OpenConversation extends Conversation {
  /** The engine's settings have changed. */
  refresh(): void;
  readonly lazyGate: LazyGate;
}

const conversationShape = optionsShape<ConversationOptions>({
  id: "string",
  approver: { methods: ["ask"], words: "an approver: an object with a function 'ask'" },
  approval: { oneOf: approvalNames },
  sandbox: { oneOf: sandboxNames },
  layout: { oneOf: ["plain", "sections", "codex", "codex-json"] },
  memory: { methods: ["has", "add"], words: "what was agreed to: a Set of strings, or an object with 'has' and 'add'" },
  filesRead: "any",
});

// oxlint-disable-next-line max-lines-per-function -- everything that belongs to one conversation is held by one closure
export function createConversation(
  id: string,
  own: ConversationOptions,
  machine: ConversationHost,
  engine: EngineParts,
): OpenConversation {
  checkOptions("conversation", own, conversationShape);
  const { registry, host } = engine;
  const listeners = new Set<(event: CallEvent) => void>();
  const memory = own.memory ?? new Set<string>();
  let chosen: PolicyNames = defined({ approval: own.approval, sandbox: own.sandbox });
  let counter = 0;
  let closed = false;

  const emit = (event: CallEvent) => {
    runner.heard(event);
    for (const listener of listeners) listener(event);
    engine.heard(event, id);
  };
  const settings = () => {
    const { approval, sandbox } = { ...engine.policy(), ...chosen };
    return toSettings(approval, sandbox);
  };
  const approver = own.approver ?? engine.options.approver;
  const makeGate = () => createOwnGate(engine, machine, { settings: settings(), memory, emit, approver });
  let gate = makeGate();
  const stages: Omit<Stages, "gate" | "record"> = {
    registry,
    runtime: createOwnRuntime(engine, machine, emit, approver, id),
    result: createShaper({
      checkOutput,
      spill: machine.spill,
      elevation: (call) => (situation().canEscalate ? call.tool?.elevation : undefined),
      ...defined({ layout: own.layout }),
      ...engine.options.result,
    }),
    emit,
    howToAsk: (call, denied) => howToAsk(call, denied, situation()),
    ...defined({ defaults: engine.options.defaults }),
    at: {
      workspace: host.workspace,
      cwd: host.cwd,
      get terminals() {
        return machine.terminals();
      },
    },
  };

  const situation = () => toSituation(gate, host, settings(), approver !== undefined);
  let current: Omit<Stages, "record"> = { ...stages, gate };
  const runner = createRunner({
    id,
    registry,
    stages: () => {
      if (closed) throw new Error(`The conversation '${id}' is closed.`);
      engine.starting();
      if (current.gate !== gate) current = { ...stages, gate };
      return current;
    },
    count: engine.count,
  });

  return {
    id,
    workspace: host.workspace,
    cwd: host.cwd,
    registry,
    metrics: engine.metrics,
    approver,
    spillDir: machine.spillDir,
    get gate() {
      return gate;
    },
    get lazyGate() {
      return gate;
    },
    run: runner.run,
    lanes: runner.lanes,
    decide: (asked, signal = never) => decide(runner.meant(asked), { ...stages, gate }, signal),
    call: async (name, input = {}, signal = never) =>
      withText(await runner.run(toAsked(`call_${++counter}`, name, input, registry), signal)),
    refuse(asked, error) {
      const ended = stages.result.refuse(asked, error);
      engine.count(ended);
      emit({ type: "call.ended", call: ended });
      return ended;
    },
    offer: (model, more) => offerTo(engine, situation, model, more),
    toolsFor: async (wire, options = {}) => encodeTools(wire, specsFor(engine, situation, options), options),
    situation,
    openTerminals: () =>
      machine
        .terminals()
        .filter((terminal) => terminal.running)
        .map((terminal) => `${terminal.id}: ${terminal.command}`),
    takeFilesRead: machine.takeFilesRead,
    setPolicy(change) {
      checkPolicyChange(change);
      chosen = { ...chosen, ...change };
      gate = makeGate();
    },
    refresh: () => void (gate = makeGate()),
    on(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    async close() {
      closed = true;
      await machine.close();
      listeners.clear();
    },
  };
}

/** Wires are loaded on demand, because most programs leave them to a model. */
async function encodeTools(wire: WireName, tools: readonly ToolSpec[], options: EncodeOptions): Promise<WireTools> {
  if (!isWireName(wire)) {
    const [guess] = nearest(wire, wireNames, 1);
    throw new TypeError(
      `there is no wire '${String(wire)}'${guess ? `; did you mean '${guess}'?` : ""} (${wireNames.join(", ")})`,
    );
  }
  const { codecs } = await import("../wire/index.ts");
  const { body, names, dropped } = codecs[wire].encodeRequest({ model: "", input: [], tools }, options);
  // A wire's `tools` field is always a list of objects; it is left out when there are no tools.
  return { tools: (body["tools"] ?? []) as readonly JsonObject[], names, dropped };
}
