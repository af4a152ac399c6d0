import { partsToText } from "../base/content.ts";
import { createQueue } from "../base/queue.ts";
import type { Engine } from "../router/engine.ts";
import type { Answer, Item, MessageItem, Model, ModelRequest, ToolSpec, Usage } from "../spec/model.ts";
import type { Recorder } from "../spec/stages.ts";
import type { Journal } from "../store/journal.ts";
import type { ChangeTracker } from "./changes.ts";
import { compactHistory, type CompactionBy } from "./compact.ts";
import { createConversation, type Conversation } from "./conversation.ts";
import type { HistoryCompacted, SessionEvent, SessionStarted } from "./events.ts";
import { rebuildHistory, toAsked, type HistoryRecord } from "./history.ts";
import { addUsage, noLimits, noUsage, type TurnLimits } from "./limits.ts";
import type { Price } from "./price.ts";
import { createSessionRecorder, type SessionRecorder } from "./recorder.ts";
import { runTurn, userMessage, type TurnEnd, type TurnHost } from "./turn.ts";

export interface SessionOptions {
  readonly id: string;
  readonly engine: Engine;
  readonly model: Model;
  /** Told to the model before everything else. The same bytes for the whole session. */
  readonly instructions?: string;
  /** Which tools the model is offered; asked for before each request, because MCP tools come and go. */
  readonly tools: () => readonly ToolSpec[];
  readonly journal?: Journal;
  /** What the journal holds already: the session goes on from there. */
  readonly records?: readonly HistoryRecord[];
  readonly started?: Partial<SessionStarted>;
  readonly limits?: Partial<TurnLimits>;
  readonly price?: Price;
  /** Tokens the model can take; the history is shortened before it gets there. */
  readonly contextWindow?: number;
  /** Who shortens it. `provider`: over Responses, where the provider can; it falls back to the model. */
  readonly compaction?: CompactionBy;
  readonly request?: Pick<
    ModelRequest,
    "maxOutputTokens" | "temperature" | "reasoning" | "outputSchema" | "toolChoice" | "parallel"
  >;
  readonly isRetryable?: (answer: Answer) => boolean;
  /** Sees what each turn changes on disk. */
  readonly changes?: ChangeTracker;
  /** Hears every event from the first one on, `session.started` included. */
  readonly onEvent?: (event: SessionEvent) => void;
  readonly now?: () => number;
}

export interface Session {
  readonly id: string;
  readonly history: readonly Item[];
  readonly usage: Usage;
  readonly costUsd: number;
  /** Calls that were running when an earlier process of this session died. They were not run again. */
  readonly interrupted: readonly string[];
  /** One turn. The last event is `turn.ended`; leaving the loop early interrupts the turn. */
  send(prompt: string | MessageItem["content"]): AsyncIterable<SessionEvent>;
  /** A message for the running turn: goes in at its next request. */
  steer(prompt: string | MessageItem["content"]): void;
  interrupt(): void;
  compact(): Promise<void>;
  /** Everything that happens, also between turns. Returns the way to stop listening. */
  on(listener: (event: SessionEvent) => void): () => void;
  close(): Promise<void>;
}

/** Share of the model's window at which the history is shortened. */
const compactAt = 0.9;

/** What the turns of a session share. */
interface Shared {
  readonly options: SessionOptions;
  readonly conversation: Conversation;
  readonly recorder: SessionRecorder;
  readonly now: () => number;
  emit(event: SessionEvent): void;
  steering: MessageItem[];
  plan: string | undefined;
  /** Calls of the turn: an engine may serve several sessions, and tells each of them everything. */
  readonly calls: Set<string>;
}

export function createSession(options: SessionOptions): Session {
  const rebuilt = rebuildHistory(options.records ?? [], options.started?.wire);
  const recorder = createSessionRecorder(options.journal);
  const listeners = new Set<(event: SessionEvent) => void>(options.onEvent ? [options.onEvent] : []);
  const emit = (event: SessionEvent) => {
    recorder.write(event);
    for (const listener of listeners) listener(event);
  };
  const conversation = createConversation(rebuilt, options.price);
  const shared: Shared = {
    options,
    conversation,
    recorder,
    now: options.now ?? Date.now,
    emit,
    steering: [],
    plan: rebuilt.plan === undefined ? undefined : JSON.stringify(rebuilt.plan),
    calls: new Set(),
  };
  const stopListening = options.engine.on((event) => {
    if (!shared.calls.has("call" in event ? event.call.id : event.id)) return;
    emit(event);
    if (event.type !== "call.ended" || event.call.tool !== "update_plan" || !event.call.ok) return;
    shared.plan = JSON.stringify(event.call.input);
    emit({ type: "plan.updated", plan: event.call.input ?? null });
  });
  let turns = rebuilt.turns;
  let stop: AbortController | undefined;
  let running: Promise<void> = Promise.resolve();

  async function* send(prompt: string | MessageItem["content"]): AsyncGenerator<SessionEvent> {
    if (stop) throw new Error("A turn is running already: steer it, or wait for it to end.");
    const controller = (stop = new AbortController());
    const queue = createQueue<SessionEvent>();
    listeners.add(queue.push);
    running = playTurn(shared, ++turns, prompt, controller.signal).then(queue.end, queue.fail);
    try {
      yield* queue;
    } finally {
      controller.abort();
      await running;
      listeners.delete(queue.push);
      stop = undefined;
    }
  }

  announce(shared, rebuilt.interrupted);
  return {
    id: options.id,
    get history() {
      return conversation.items;
    },
    get usage() {
      return conversation.usage;
    },
    get costUsd() {
      return conversation.costUsd;
    },
    interrupted: rebuilt.interrupted,
    send,
    steer: (prompt) => void shared.steering.push(userMessage(prompt)),
    interrupt: () => stop?.abort(),
    compact: () => compact(shared, "asked", new AbortController().signal),
    on(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    async close() {
      stop?.abort();
      await running; // what it still has to record belongs into the journal
      stopListening();
      recorder.flush();
      options.journal?.close();
    },
  };
}

function announce({ options, emit }: Shared, interrupted: readonly string[]): void {
  const isNew = options.records === undefined || options.records.length === 0;
  const { id, engine, model, started } = options;
  emit({
    type: "session.started",
    session_id: id,
    cwd: engine.cwd,
    model: model.name,
    ...(isNew ? {} : { resumed: true }),
    ...started,
  });
  for (const call of interrupted) {
    emit({
      type: "warning",
      message: `The call ${call} was running when the session was cut off. It was not run again.`,
    });
  }
}

/** One turn from its prompt to `turn.ended`, whatever happens in between. */
async function playTurn(
  shared: Shared,
  turn: number,
  prompt: string | MessageItem["content"],
  signal: AbortSignal,
): Promise<void> {
  const { emit, now } = shared;
  const startedAt = now();
  shared.calls.clear();
  emit({ type: "turn.started", turn, prompt: typeof prompt === "string" ? prompt : partsToText(prompt) });
  const host = createHost(shared, turn, signal);
  host.add(userMessage(prompt));
  const end = await runTurn(host).catch((error: unknown): TurnEnd => {
    const detail = error instanceof Error ? error.message : String(error);
    return { reason: signal.aborted ? "interrupted" : "error", detail, text: "", refused: 0 };
  });
  if (end.reason === "interrupted") host.add(userMessage("[The user interrupted the turn here.]"));
  const diff = shared.options.changes?.endTurn(`${shared.options.id}:${turn}`, now());
  if (diff) emit({ type: "diff.updated", diff: diff.diff, files: diff.files, notes: diff.notes });
  if (end.reason === "error") emit({ type: "error", message: end.detail ?? "The turn ended in an error." });
  const { usage, requests, calls } = host.spent();
  emit({ type: "turn.ended", turn, ...end, usage, requests, calls, durationMs: now() - startedAt });
}

function createHost(shared: Shared, turn: number, signal: AbortSignal): TurnHost {
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
function buildRequest({ options, conversation }: Shared): ModelRequest {
  return {
    parallel: true,
    toolChoice: "auto",
    ...options.request,
    model: options.model.name,
    ...(options.instructions === undefined ? {} : { instructions: options.instructions }),
    input: conversation.items,
    tools: options.tools(),
    cacheKey: options.id,
  };
}

async function compact(shared: Shared, reason: HistoryCompacted["reason"], signal: AbortSignal): Promise<void> {
  const { conversation, options, emit, plan } = shared;
  const tokensBefore = conversation.contextTokens();
  const kept = {
    ...(plan === undefined ? {} : { plan }),
    ...(options.contextWindow === undefined ? {} : { window: options.contextWindow }),
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
