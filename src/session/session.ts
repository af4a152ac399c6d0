import { defined } from "../base/json.ts";
import { createQueue } from "../base/queue.ts";
import { checkOptions } from "../base/shape.ts";
import type { Item, MessageItem, ToolSpec, Usage } from "../spec/model.ts";
import type { ApprovalAnswer } from "../spec/stages.ts";
import { createAnswerCheck } from "./answer-check.ts";
import type { SessionEvent, TakenBack } from "./events.ts";
import { createHistory, rebuildHistory, type HistoryRecord } from "./history.ts";
import { createLaterAnswers } from "./later.ts";
import { createSessionRecorder } from "./recorder.ts";
import { withOffer } from "./offered.ts";
import { fromOpenTurn, playTurn, type Parked } from "./play-turn.ts";
import { sessionShape, type SessionOptions } from "./session-options.ts";
import { compact, type Shared } from "./turn-host.ts";
import { userMessage } from "./turn.ts";

/** One conversation: a model, an engine, a journal. */
export interface Session {
  readonly id: string;
  readonly history: readonly Item[];
  readonly usage: Usage;
  readonly costUsd: number;
  /** Calls that were running when an earlier process of this session died. They were not run again. */
  readonly interrupted: readonly string[];
  /** A turn that has not ended: it was cut off with an earlier process, or waits for answers. `resume` continues it. */
  readonly openTurn: OpenTurnState | undefined;
  /** One turn. The last event is `turn.ended`, or `turn.waiting`; leaving the loop early interrupts the turn. */
  send(prompt: string | MessageItem["content"]): AsyncIterable<SessionEvent>;
  /**
   * Continues the open turn. Calls that were asked for and not started run now, those that were cut off
   * are reported as interrupted, and a call whose question was answered gets its answer. With
   * `interrupt` the turn is only brought to an end.
   */
  resume(options?: { readonly interrupt?: boolean }): AsyncIterable<SessionEvent>;
  /**
   * Answers a waiting question, bound to what was shown by its hash. `taken`: it is recorded, and
   * `resume` continues. `changed`: the question has changed in the meantime. `unknown`: nothing waits
   * under this id.
   */
  answer(callId: string, hash: string, answer: ApprovalAnswer): Promise<"taken" | "changed" | "unknown">;
  /** A message for the running turn. It is included in the next request. */
  steer(prompt: string | MessageItem["content"]): void;
  /** Takes back the messages for the running turn that were not included yet, oldest first. */
  unsteer(): readonly MessageItem["content"][];
  interrupt(): void;
  /**
   * Lets running calls end and leaves the turn open, for `resume` in this process or another. The last
   * event is `turn.waiting`.
   */
  pause(): void;
  /**
   * Somebody undid what the session did, or did it again. It is recorded, and the model is told with its
   * next request.
   */
  noteTakenBack(event: TakenBack): void;
  compact(): Promise<void>;
  /** What the model is offered now. */
  tools(): readonly ToolSpec[];
  /** Receives everything that happens, also between turns. Returns a function that stops listening. */
  on(listener: (event: SessionEvent) => void): () => void;
  close(): Promise<void>;
}

/** Where an unfinished turn stands. */
export interface OpenTurnState {
  readonly turn: number;
  /** Calls whose questions wait for an answer. If empty, the turn can continue. */
  readonly waiting: readonly string[];
}

/**
 * One conversation with a model: it asks the model, runs its calls, gives the results back, and
 * repeats that until the model is done.
 */
/* oxlint-disable-next-line max-lines-per-function -- one session: its functions share the turn that runs */
export function createSession(given: SessionOptions): Session {
  checkOptions("createSession", given, sessionShape);
  const { options, layout, offer } = withOffer(given);
  const rebuilt = rebuildHistory(options.records ?? [], options.started?.wire);
  const listeners = new Set<(event: SessionEvent) => void>(options.onEvent ? [options.onEvent] : []);
  const emit = (event: SessionEvent) => {
    recorder.write(event);
    for (const listener of listeners) listener(event);
  };
  const later = createLaterAnswers(options.approver ?? options.engine.approver, rebuilt.open);
  const calls = options.engine.conversation({
    id: options.id,
    ...defined({ approver: later.approver, layout }),
    memory: new Set(rebuilt.approvals),
    filesRead: rebuilt.filesRead,
  });
  const recorder = createSessionRecorder(options.journal, {
    remembered: calls,
    ...defined({ now: options.now, keepDiffs: options.keepDiffs, keepFolder: options.keepFolder }),
  });
  const history = createHistory(rebuilt, options.price);
  const tools = offer(calls);
  const shared: Shared = {
    options,
    calls,
    tools,
    history,
    recorder,
    now: options.now ?? Date.now,
    emit,
    steering: takenBackSinceAsked(options.records ?? []).map(tellTakenBack),
    ...defined({ answers: createAnswerCheck(options) }),
    warned: new Set(),
    paused: new AbortController(),
    plan: rebuilt.plan === undefined ? undefined : JSON.stringify(rebuilt.plan),
  };
  calls.on((event) => {
    if (later.isTold(event)) return;
    emit(event);
    if (event.type !== "call.ended" || event.call.tool !== "update_plan" || !event.call.ok) return;
    shared.plan = JSON.stringify(event.call.input);
    emit({ type: "plan.updated", plan: event.call.input ?? null });
  });
  let turns = rebuilt.turns;
  let open: Parked | undefined = fromOpenTurn(rebuilt);
  let gone = rebuilt.terminals;
  let stop: AbortController | undefined;
  let running: Promise<void> = Promise.resolve();

  async function* play(begin: (signal: AbortSignal) => Promise<Parked | undefined>): AsyncGenerator<SessionEvent> {
    if (stop) throw new Error("A turn is running already: steer it, or wait for it to end.");
    const controller = (stop = new AbortController());
    const queue = createQueue<SessionEvent>();
    listeners.add(queue.push);
    const turn = async () => {
      tellTerminals();
      open = await begin(controller.signal);
    };
    running = turn().then(queue.end, queue.fail);
    try {
      for await (const events of queue.batches()) for (const event of events) yield event;
    } finally {
      controller.abort();
      await running;
      listeners.delete(queue.push);
      stop = undefined;
    }
  }

  /** What an earlier process left running ended with it. The model is told with its next request. */
  const tellTerminals = () => {
    if (gone.length === 0) return;
    emit({ type: "terminals.gone", terminals: gone });
    shared.steering.unshift(
      userMessage(`[The session went on in another process. What was left running has ended: ${gone.join("; ")}]`),
    );
    gone = [];
  };

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
    get openTurn() {
      return open === undefined || stop !== undefined ? undefined : { turn: open.turn, waiting: later.waiting() };
    },
    send: (prompt) =>
      play((signal) => {
        open = undefined; // a turn that was left open ends when a new one begins: its calls are reported as not run
        later.forget();
        return playTurn(shared, { turn: ++turns, prompt }, signal);
      }),
    resume: ({ interrupt = false } = {}) =>
      play(async (signal) => {
        if (open === undefined) throw new Error("No turn is open: send a message to begin one.");
        const interrupted = AbortSignal.abort();
        return playTurn(shared, { turn: open.turn, parked: open }, interrupt ? interrupted : signal);
      }),
    async answer(callId, hash, answer) {
      const outcome = later.take(callId, hash, answer);
      if (outcome !== "taken") return outcome;
      emit({ type: "approval.answered", id: callId, answer, hash });
      await recorder.commit();
      return outcome;
    },
    steer: (prompt) => void shared.steering.push(userMessage(prompt)),
    unsteer: () => shared.steering.splice(0).map(({ content }) => content),
    interrupt: () => stop?.abort(),
    pause: () => shared.paused.abort(),
    noteTakenBack(event) {
      emit(event);
      shared.steering.unshift(tellTakenBack(event));
    },
    tools,
    compact: async () => {
      await compact(shared, "asked", new AbortController().signal);
      await recorder.commit();
    },
    on(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    async close() {
      stop?.abort();
      await running; // what it still has to record belongs in the journal
      await calls.close();
      // If the journal accepted no more, whoever ran the turn was told so.
      await recorder.commit().catch(() => undefined);
      await options.journal?.close();
    },
  };
}

/** What the model has not been told yet: what was undone after its last request. */
function takenBackSinceAsked(records: readonly HistoryRecord[]): readonly TakenBack[] {
  return records
    .slice(records.findLastIndex(({ type }) => type === "request.sent") + 1)
    .filter(({ type }) => type === "effects.undone" || type === "effects.redone")
    .map((record) => record as unknown as TakenBack); // each line matched its checksum, so we wrote it ourselves
}

function tellTakenBack({ type, run, what = run }: TakenBack): MessageItem {
  return userMessage(
    type === "effects.undone"
      ? `[The user took back what was done here: ${what}. Those files are as they were before it.]`
      : `[The user did again what had been taken back: ${what}.]`,
  );
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
