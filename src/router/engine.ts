/**
 * `createEngine` joins the stages, with their defaults, into the line. `router/` is the only folder
 * that knows all of them.
 */
import type { PolicyNames } from "../gate/modes.ts";
import { checkPolicyChange } from "../gate/options.ts";
import { createRuleBook } from "../gate/rules.ts";
import { createRegistry } from "../registry/registry.ts";
import { createMetrics } from "../result/metrics.ts";
import type { Sandbox } from "../runtime/sandbox/backend.ts";
import { loadValidator } from "../schema/validate.ts";
import type { Ended } from "../spec/call.ts";
import type { CallEvent, Confinement } from "../spec/stages.ts";
import type { Logger } from "../spec/tool.ts";
import {
  createConversation,
  type Conversation,
  type ConversationOptions,
  type OpenConversation,
} from "./conversation.ts";
import type { EngineParts } from "./own-stages.ts";
import { createHost } from "./host.ts";
import { checkEngineOptions, checkToolNames, policyOf, type EngineOptions } from "./engine-options.ts";

export type { EngineOptions } from "./engine-options.ts";

/** The tools, the rules and the machine. The engine is also a conversation itself, for programs that need only one. */
export interface Engine extends Conversation {
  /** Opens another conversation, with its own approvals, files, processes, outputs and call ids. */
  conversation(options?: ConversationOptions): Conversation;
  /** Sets another approval mode or sandbox for this engine and for every conversation that has not set its own. */
  setPolicy(change: PolicyNames): void;
  /** Prepares the first call in the background. If that fails, the first call reports the error. */
  warmUp(): Promise<void>;
  /** What confines commands on this machine. It is found out when first asked for. */
  confinement(): Promise<Confinement>;
  /** The sandbox that commands run in, for programs that must run in the same one, such as MCP servers. */
  sandbox(): Sandbox;
  /** Receives the events of every conversation, with the conversation's id. */
  on(listener: (event: CallEvent, conversation: string) => void): () => void;
  /** Ends everything, in every conversation. */
  close(): Promise<void>;
}

const silent: Logger = { debug() {}, info() {}, warn() {}, error() {} };

/** An engine: tools, policy and sandbox as one value that takes calls. */
export function createEngine(options: EngineOptions): Engine {
  checkEngineOptions(options);
  const registry = options.registry ?? createRegistry(options.tools ?? []);
  const toolNames = checkToolNames(options, registry);
  const listeners = new Set<(event: CallEvent, conversation: string) => void>();
  const open = new Set<OpenConversation>();
  const host = createHost(options);
  const log = options.log ?? silent;
  const metrics = createMetrics();
  let policy = policyOf(options);
  let named = 0;
  const parts: EngineParts = {
    options,
    host,
    log,
    metrics,
    registry,
    starting: toolNames.warn,
    book: createRuleBook(options.gate?.rules ?? []),
    policy: () => policy,
    heard(event, conversation) {
      for (const listener of listeners) listener(event, conversation);
    },
    count(ended: Ended) {
      const { id, name, tool = name, ok, code, durationMs } = ended;
      metrics.count(ended);
      options.telemetry?.record(ended);
      log.info("call ended", { id, tool, ok, durationMs, ...(code === undefined ? {} : { code }) });
    },
  };
  const main = createConversation("main", {}, host.conversation(), parts);
  open.add(main);

  return {
    ...main,
    get gate() {
      return main.gate;
    },
    conversation(own = {}) {
      const id = own.id ?? `conversation-${++named}`;
      const made = createConversation(id, own, host.conversation(id, own.filesRead), parts);
      open.add(made);
      return {
        ...made,
        get gate() {
          return made.gate;
        },
        async close() {
          open.delete(made);
          await made.close();
        },
      };
    },
    setPolicy(change) {
      checkPolicyChange(change);
      policy = { ...policy, ...change };
      for (const conversation of open) conversation.refresh();
    },
    async warmUp() {
      const gates = [...open].map(({ lazyGate }) => lazyGate.warmUp());
      await Promise.allSettled([loadValidator(), ...gates, host.warmUp(main.gate.baseGrant())]);
    },
    confinement: host.confinement,
    sandbox: host.sandbox,
    on(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    async close() {
      await Promise.all([...open].map((conversation) => conversation.close()));
      await host.close();
      listeners.clear();
    },
  };
}
