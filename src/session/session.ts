import { partsToText } from "../base/content.ts";
import { defined } from "../base/json.ts";
import { createQueue } from "../base/queue.ts";
import { checkOptions } from "../base/shape.ts";
import type { Item, MessageItem, ToolSpec, Usage } from "../spec/model.ts";
import type { SessionEvent } from "./events.ts";
import { createHistory, rebuildHistory } from "./history.ts";
import { createSessionRecorder } from "./recorder.ts";
import { offerAll } from "./offer-all.ts";
import { sessionShape, type SessionOptions } from "./session-options.ts";
import { compact, createHost, type Shared } from "./turn-host.ts";
import { runTurn, userMessage, type TurnEnd } from "./turn.ts";

/** One conversation: a model, an engine, a journal. */
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
  /** What the model is offered now. */
  tools(): readonly ToolSpec[];
  /** Everything that happens, also between turns. Returns the way to stop listening. */
  on(listener: (event: SessionEvent) => void): () => void;
  close(): Promise<void>;
}

export function createSession(options: SessionOptions): Session {
  checkOptions("createSession", options, sessionShape);
  const rebuilt = rebuildHistory(options.records ?? [], options.started?.wire);
  const recorder = createSessionRecorder(options.journal, options.now);
  const listeners = new Set<(event: SessionEvent) => void>(options.onEvent ? [options.onEvent] : []);
  const emit = (event: SessionEvent) => {
    recorder.write(event);
    for (const listener of listeners) listener(event);
  };
  const history = createHistory(rebuilt, options.price);
  const calls = options.engine.conversation({ id: options.id, ...defined({ approver: options.approver }) });
  const tools = options.tools ?? offerAll(calls);
  const shared: Shared = {
    options,
    calls,
    tools,
    history,
    recorder,
    now: options.now ?? Date.now,
    emit,
    steering: [],
    plan: rebuilt.plan === undefined ? undefined : JSON.stringify(rebuilt.plan),
  };
  calls.on((event) => {
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
      return history.items;
    },
    get usage() {
      return history.usage;
    },
    get costUsd() {
      return history.costUsd;
    },
    interrupted: rebuilt.interrupted,
    send,
    steer: (prompt) => void shared.steering.push(userMessage(prompt)),
    interrupt: () => stop?.abort(),
    tools,
    compact: () => compact(shared, "asked", new AbortController().signal),
    on(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    async close() {
      stop?.abort();
      await running; // what it still has to record belongs into the journal
      await calls.close();
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
