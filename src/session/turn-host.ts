/** What a turn needs of its session: the history to send, the model to ask, the line to run calls on. */
import { defined } from "../base/json.ts";
import type { ModelRequest, MessageItem, ToolSpec } from "../spec/model.ts";
import type { Recorder } from "../spec/stages.ts";
import type { ChangeTracker } from "../workspace/changes.ts";
import { compactHistory } from "./compact.ts";
import type { Conversation } from "./conversation.ts";
import type { HistoryCompacted, SessionEvent } from "./events.ts";
import { toAsked } from "./history.ts";
import { addUsage, noLimits, noUsage } from "./limits.ts";
import type { SessionRecorder } from "./recorder.ts";
import type { SessionOptions } from "./session-options.ts";
import type { TurnHost } from "./turn.ts";

/** Share of the model's window at which the history is shortened. */
const compactAt = 0.9;

/** What the turns of a session share. */
export interface Shared {
  readonly options: SessionOptions;
  readonly tools: () => readonly ToolSpec[];
  readonly conversation: Conversation;
  readonly recorder: SessionRecorder;
  readonly now: () => number;
  emit(event: SessionEvent): void;
  steering: MessageItem[];
  plan: string | undefined;
  /** Calls of the turn: an engine may serve several sessions, and tells each of them everything. */
  readonly calls: Set<string>;
}

export function createHost(shared: Shared, turn: number, signal: AbortSignal): TurnHost {
  const { options, conversation, emit, now, recorder } = shared;
  const { engine, model, price } = options;
  const startedAt = now();
  const lanes = engine.lanes({ signal, recorder: watchChanges(recorder, options.changes) });
  const costBefore = conversation.costUsd;
  let usage = noUsage;
  let requests = 0;
  let calls = 0;
  return {
    limits: { ...noLimits, ...options.limits },
    signal,
    now,
    emit,
    add(item) {
      conversation.add(item);
      emit({ type: "item.added", item });
    },
    buildRequest: () => buildRequest(shared),
    ask(request) {
      emit({ type: "request.sent", turn, request: ++requests, items: request.input.length });
      return model.ask(request, signal);
    },
    call(item) {
      calls++;
      shared.calls.add(item.id);
      return lanes.add(toAsked(item, now()));
    },
    refuse(item, error) {
      shared.calls.add(item.id);
      const ended = engine.refuse(toAsked(item, now()), error);
      void recorder.ended(ended); // written before it returns; the promise is only its form
      return ended;
    },
    takeSteering: () => shared.steering.splice(0),
    async compactIfNeeded(overflow) {
      const limit = (options.contextWindow ?? Infinity) * compactAt;
      if (!overflow && (limit === Infinity || conversation.contextTokens() < limit)) return false;
      await compact(shared, overflow ? "overflow" : "limit", signal);
      return true;
    },
    spent: () => ({ requests, calls, usage, costUsd: conversation.costUsd - costBefore, ms: now() - startedAt }),
    answered(answer) {
      if (answer.usage === undefined) return;
      usage = addUsage(usage, answer.usage);
      conversation.book(answer);
      const cost = price ? { costUsd: conversation.costUsd } : {};
      emit({
        type: "usage.updated",
        usage: answer.usage,
        total: conversation.usage,
        contextTokens: conversation.contextTokens(),
        ...cost,
      });
    },
    isRetryable: options.isRetryable ?? (() => false),
    sleep: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
  };
}

/** A call that may change something runs only once the workspace has been remembered. */
function watchChanges(recorder: SessionRecorder, changes: ChangeTracker | undefined): Recorder {
  if (changes === undefined) return recorder;
  return {
    ended: recorder.ended,
    async started(permitted) {
      if (permitted.mutates) await changes.beforeChange();
      await recorder.started(permitted);
    },
  };
}

/** The one function that builds requests: nothing else ever reaches a model. */
function buildRequest({ options, tools, conversation }: Shared): ModelRequest {
  return {
    parallel: true,
    toolChoice: "auto",
    ...options.request,
    model: options.model.name,
    ...defined({ instructions: options.instructions }),
    input: conversation.items,
    tools: tools(),
    cacheKey: options.id,
  };
}

export async function compact(shared: Shared, reason: HistoryCompacted["reason"], signal: AbortSignal): Promise<void> {
  const { conversation, options, emit, plan } = shared;
  const tokensBefore = conversation.contextTokens();
  const kept = {
    ...defined({ plan, window: options.contextWindow }),
    openSessions: options.engine.openTerminals(),
  };
  const by = options.compaction ?? "model";
  const compacted = await compactHistory(options.model, buildRequest(shared), kept, by, signal);
  conversation.replace(compacted.items);
  emit({
    type: "history.compacted",
    by: compacted.by,
    reason,
    tokensBefore,
    tokensAfter: conversation.contextTokens(),
    items: conversation.items,
  });
}
