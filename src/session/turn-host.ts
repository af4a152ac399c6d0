/** What a turn needs from its session: the history to send, the model to ask, and the line that runs calls. */
import { setTimeout as sleep } from "node:timers/promises";
import { partsToText, text } from "../base/content.ts";
import { defined } from "../base/json.ts";
import type { Asked } from "../spec/call.ts";
import type {
  Answer,
  CallItem,
  Item,
  MessageItem,
  ModelEvent,
  ModelRequest,
  ResultItem,
  ToolSpec,
  Usage,
} from "../spec/model.ts";
import { loadedTools } from "../registry/search.ts";
import type { Conversation } from "../router/conversation.ts";
import type { AnswerCheck } from "./answer-check.ts";
import { compactHistory } from "./compact.ts";
import type { HistoryCompacted, SessionEvent } from "./events.ts";
import type { History } from "./history.ts";
import { addUsage, noLimits, noUsage, type Spent } from "./limits.ts";
import type { SessionRecorder } from "./recorder.ts";
import type { SessionOptions } from "./session-options.ts";
import type { TurnHost } from "./turn.ts";

/** Share of the model's window at which the history is shortened. */
const compactAt = 0.9;

/** What the turns of a session share. */
export interface Shared {
  readonly options: SessionOptions;
  readonly tools: () => readonly ToolSpec[];
  readonly history: History;
  readonly recorder: SessionRecorder;
  readonly now: () => number;
  emit(event: SessionEvent): void;
  steering: MessageItem[];
  /** Warnings that were given already. */
  readonly warned: Set<string>;
  /** When aborted, turns are left open as soon as no call runs. */
  readonly paused: AbortController;
  plan: string | undefined;
  /** Set if the final text of each turn has to fit a schema. */
  readonly answers?: AnswerCheck;
  /** The engine's line, with what belongs to this session alone. */
  readonly calls: Conversation;
}

const passing: ReadonlySet<string> = new Set(["rate_limit", "overloaded", "network"]);

/**
 * An answer whose stream broke off is asked for again. If it broke off before its first item, the model's adapter has
 * already tried again.
 */
function brokeOff({ outcome, items, error }: Answer): boolean {
  return outcome === "truncated" || (items.length > 0 && passing.has(error?.type ?? ""));
}

export function createHost(shared: Shared, turn: number, signal: AbortSignal, spent?: Spent): TurnHost {
  const { options, history, emit, now, recorder, calls: line } = shared;
  const { model, changes } = options;
  const startedAt = now() - (spent?.ms ?? 0);
  const warnOnce = (message: string) => {
    if (shared.warned.has(message)) return;
    shared.warned.add(message);
    emit({ type: "warning", message });
  };
  const warnOfNoUndo = (why: string | undefined) => {
    if (why !== undefined) warnOnce(`What commands that are not held do here cannot be taken back: ${why}.`);
  };
  const lookAfter = (id: string) => {
    const found = changes?.afterCall(id, `${options.id}:${turn}`, now());
    if (found === undefined) return;
    const { warning, ...changed } = found;
    emit({ type: "effects.snapshot", id, ...changed });
    if (warning !== undefined) emit({ type: "warning", message: warning });
  };
  const lanes = line.lanes({
    signal,
    recorder,
    scope: `${options.id}/${turn}`,
    // A call that may change something runs only after the state of the workspace was remembered.
    ...(changes ? { beforeRun: async (call) => warnOfNoUndo(await changes.beforeCall(call)) } : {}),
  });
  const costBefore = history.costUsd - (spent?.costUsd ?? 0);
  let usage = spent?.usage ?? noUsage;
  let requests = spent?.requests ?? 0;
  let calls = spent?.calls ?? 0;
  const asking = AbortSignal.any([signal, shared.paused.signal]);
  return {
    limits: { ...noLimits, ...options.limits },
    signal,
    now,
    emit,
    warnOnce,
    add(given, finish) {
      const item = given.type === "result" ? nameRepeated(given, history.items) : given;
      history.add(item);
      emit({ type: "item.added", item, ...defined({ finish }) });
    },
    buildRequest: () => buildRequest(shared),
    async ask(request) {
      emit({ type: "request.sent", turn, request: ++requests, items: request.input.length });
      await recorder.commit();
      return model.ask(request, asking);
    },
    ownIds: () => createOwnIds(history.callIds),
    async call(item) {
      calls++;
      const ended = await lanes.add(toAsked(item, now()));
      lookAfter(item.id);
      return ended;
    },
    async refuse(item, error) {
      const ended = line.refuse(toAsked(item, now()), error);
      await recorder.ended(ended);
      return ended;
    },
    isPaused: () => shared.paused.signal.aborted,
    takeSteering: () => shared.steering.splice(0),
    hasSteering: () => shared.steering.length > 0,
    ...(shared.answers === undefined ? {} : { checkAnswer: shared.answers.start() }),
    async compactIfNeeded(overflow) {
      const limit = (options.contextWindow ?? Infinity) * compactAt;
      if (!overflow && (limit === Infinity || history.contextTokens() < limit)) return false;
      usage = addUsage(usage, await compact(shared, overflow ? "overflow" : "limit", signal));
      return true;
    },
    spent: () => ({ requests, calls, usage, costUsd: history.costUsd - costBefore, ms: now() - startedAt }),
    answered(answer) {
      if (answer.usage === undefined) return;
      usage = addUsage(usage, answer.usage);
      history.book(answer);
      emit({ type: "usage.updated", usage: answer.usage, ...totals(shared) });
    },
    isRetryable: options.isRetryable ?? brokeOff,
    sleep: (ms) => sleep(ms, undefined, { signal }).catch(() => undefined), // whoever asked notices the interruption
  };
}

/** A model's call as the line takes it. */
export function toAsked(call: CallItem, askedAt: number): Asked {
  const { id, name, kind, namespace, untyped, markerless } = call;
  return { id, name, kind, arguments: call.arguments, askedAt, ...defined({ namespace, untyped, markerless }) };
}

/** The one function that builds requests. Nothing else ever reaches a model. */
function buildRequest({ options, tools, history, answers }: Shared): ModelRequest {
  const offered = tools();
  const loaded = loadedTools(history.items, offered);
  return {
    parallel: true,
    toolChoice: "auto",
    ...options.request,
    model: options.model.name,
    ...defined({ instructions: options.instructions }),
    ...defined({ outputSchema: answers?.wanted ?? options.request?.outputSchema }),
    input: history.items,
    tools: offered,
    ...(loaded.length === 0 ? {} : { loaded }),
    cacheKey: options.id,
  };
}

/** Returns what it used, because that is paid for like any answer. */
export async function compact(shared: Shared, reason: HistoryCompacted["reason"], signal: AbortSignal): Promise<Usage> {
  const { history, options, emit, plan } = shared;
  const tokensBefore = history.contextTokens();
  const kept = {
    ...defined({ plan, window: options.contextWindow }),
    openSessions: shared.calls.openTerminals(),
  };
  const by = options.compaction ?? "model";
  const compacted = await compactHistory(options.model, buildRequest(shared), kept, by, signal);
  history.spend(compacted.usage);
  history.replace(compacted.items);
  emit({
    type: "history.compacted",
    by: compacted.by,
    reason,
    tokensBefore,
    tokensAfter: history.contextTokens(),
    items: compacted.items,
  });
  emit({ type: "usage.updated", usage: compacted.usage, ...totals(shared) });
  return compacted.usage;
}

function totals({ history, options }: Shared) {
  const { usage: total, costUsd } = history;
  const { contextWindow } = options;
  return {
    total,
    contextTokens: history.contextTokens(),
    ...defined({ contextWindow }),
    ...(options.price ? { costUsd } : {}),
  };
}

/**
 * Gives calls ids that no earlier call has. Some servers count from zero in every answer, and two
 * calls with the same id would share a result when the session is read again.
 */
function createOwnIds(used: ReadonlySet<string>): (event: ModelEvent) => ModelEvent {
  const own = new Map<number, string>();
  const taken = new Set<string>();
  const idOf = (index: number, given: string): string => {
    const known = own.get(index);
    if (known !== undefined) return known;
    let id = given;
    for (let copy = 2; used.has(id) || taken.has(id); copy++) id = `${given}_${copy}`;
    own.set(index, id);
    taken.add(id);
    return id;
  };
  return (event) => {
    if ((event.type !== "item.started" && event.type !== "item.done") || event.item.type !== "call") return event;
    const id = idOf(event.index, event.item.id);
    return id === event.item.id ? event : { ...event, item: { ...event.item, id } };
  };
}

/** A shorter result is cheaper to send again than a reference that the model has to follow. */
const leastChars = 1_500;
/**
 * How many of the newest items are searched. A fixed number costs the same in a session of any length, and a model
 * hardly refers to anything older.
 */
const mostItems = 200;

/**
 * A long result that the model was sent before is named instead of being sent again: a file that was
 * read before and has not changed, or a test run with the same output. Earlier items stay as they are,
 * so that the previous request remains a prefix of this one for the provider's cache. Only results
 * that are still in the history are named.
 */
function nameRepeated(result: ResultItem, history: readonly Item[]): ResultItem {
  if (!isPlain(result)) return result;
  const words = partsToText(result.content);
  if (words.length < leastChars) return result;
  const calls = new Map<string, CallItem>();
  for (const item of history.slice(-mostItems)) {
    if (item.type === "call") calls.set(item.id, item);
    if (item.type !== "result" || item.name !== result.name || !isPlain(item)) continue;
    const call = calls.get(item.callId);
    if (call !== undefined && partsToText(item.content) === words)
      return { ...result, content: [text(`${sameAs(call)} (${words.split("\n").length} lines).`)] };
  }
  return result;
}

/** Only text: a picture, or a value for programs, is sent as it is. */
function isPlain({ ok, structured, content }: ResultItem): boolean {
  return ok && structured === undefined && content.every((part) => part.type === "text");
}

function sameAs({ name, arguments: given }: CallItem): string {
  const shown = given.length > 200 ? `${given.slice(0, 200)}…` : given;
  return `Unchanged: to the letter the same as the result of ${name} ${shown} above`;
}
