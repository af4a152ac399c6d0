/**
 * One turn: ask the model, run its calls down the line, give the results back, until it stops. It is
 * one loop over neutral items for every wire, and knows no wire's words and no tool's name.
 */
import { defined, type Json } from "../base/json.ts";
import { partsToText, text } from "../base/content.ts";
import { CallError, Fault, isRefusal } from "../base/error.ts";
import { describeMs } from "../base/text.ts";
import { Waiting, type Ended } from "../spec/call.ts";
import type { Answer, CallItem, Item, MessageItem, ModelEvent, ModelRequest, ResultItem } from "../spec/model.ts";
import { describeJsonError, locateJsonError } from "../check/json-error.ts";
import { createCollector } from "../wire/answer.ts";
import type { SessionEvent, TurnEndReason } from "./events.ts";
import { toResultItem } from "./history.ts";
import type { OpenTurn } from "./open-turn.ts";
import { describeDropped, describeNote, type DroppedNote } from "./notes.ts";
import { createLoopWatch, exceeded, maxRepeats, type Spent, type TurnLimits } from "./limits.ts";

/** What a turn needs of its session. */
export interface TurnHost {
  readonly limits: TurnLimits;
  readonly signal: AbortSignal;
  readonly now: () => number;
  emit(event: SessionEvent): void;
  /** Given once in a session, however often the reason occurs. */
  warnOnce(message: string): void;
  /** Adds an item to the history. The last item of an answer says how the answer ended. */
  add(item: Item, finish?: Answer["finish"]): void;
  buildRequest(): ModelRequest;
  ask(request: ModelRequest): Promise<AsyncIterable<ModelEvent>>;
  /** For the events of one answer: gives each call an id that no earlier call has. */
  ownIds(): (event: ModelEvent) => ModelEvent;
  /** Runs one call down the line; results of a turn come back in the order asked. */
  call(item: CallItem): Promise<Ended>;
  /** A call that must not run still gets an ending. */
  refuse(item: CallItem, error: CallError): Promise<Ended>;
  /** Whether the turn is to be left open, for another process to continue. */
  isPaused(): boolean;
  /** Messages typed while the turn runs, to be included in the next request. */
  takeSteering(): readonly MessageItem[];
  hasSteering(): boolean;
  /** Checks whether the model's final text is what was asked for. Left out: any text is. */
  checkAnswer?(text: string): Promise<CheckedAnswer>;
  /** Shortens the history if it is near the model's limit. `overflow`: the provider has already refused it. */
  compactIfNeeded(overflow: boolean): Promise<boolean>;
  spent(): Spent;
  answered(answer: Answer): void;
  isRetryable(answer: Answer): boolean;
  sleep(ms: number): Promise<void>;
}

/** The part of the turn that was done already: by an earlier process, or by this one before a question. */
export interface TurnSoFar extends Pick<OpenTurn, "calls" | "finish" | "refused" | "text" | "isStopped" | "settled"> {
  /** Results of these calls and of earlier ones, as far as they have ended. */
  readonly results: ReadonlyMap<string, ResultItem>;
  /** The model has answered, so its calls, or the end of the turn, come next. */
  readonly isAnswered: boolean;
}

/** The check of an answer that has to fit a schema. */
export interface CheckedAnswer {
  /** The value, if it fits. */
  readonly value?: Json;
  /** The message to the model, which may answer once more. */
  readonly again?: MessageItem;
  /** Why the turn fails, after the model had its chances. */
  readonly problem?: string;
}

/** How a turn ended. If it only waits, `waiting` says for which calls, and holds what is needed to continue it. */
export interface TurnEnd {
  readonly reason: TurnEndReason;
  readonly waiting?: { readonly ids: readonly string[]; readonly soFar: TurnSoFar };
  readonly detail?: string;
  readonly text: string;
  /** The value of the model's final text, if it had to fit a schema and does. */
  readonly output?: Json;
  readonly refused: number;
}

/** How often a broken stream is asked for again. None of its calls has run, so nothing is repeated. */
const maxStreamRetries = 4;

export async function runTurn(host: TurnHost, soFar?: TurnSoFar): Promise<TurnEnd> {
  const watch = createLoopWatch();
  let refused = soFar?.refused ?? 0;
  let lastText = soFar?.text ?? "";
  const end = (reason: TurnEndReason, detail?: string): TurnEnd => ({
    reason,
    text: lastText,
    refused,
    ...defined({ detail }),
  });
  for (const call of soFar?.settled ?? []) {
    const result = soFar?.results.get(call.id);
    if (result !== undefined) watch.seen(call, result);
  }
  const settled = [...(soFar?.settled ?? [])];
  const known = new Map(soFar?.results);
  /** Leaves the turn open: for the answers to these calls, or for another process. */
  const leave = (ids: readonly string[]): TurnEnd => {
    const isAnswered = ids.length > 0;
    const calls = isAnswered ? asked.calls : [];
    const left = { calls, refused, text: lastText, settled, results: known, isStopped: false, isAnswered };
    return { ...end("interrupted"), waiting: { ids, soFar: { ...left, ...defined({ finish: asked.finish }) } } };
  };
  let asked: Asking = { calls: soFar?.calls ?? [], finish: soFar?.finish };
  if (soFar?.isStopped) return end("stopped", "The user stopped the turn.");
  if (soFar?.isAnswered && asked.calls.length === 0 && asked.finish !== "pause")
    return asked.finish === "length" ? end("limit", "The model reached its output limit.") : end("done");

  for (;;) {
    if (asked.calls.length > 0) {
      const outcome = await runCalls(host, asked, known);
      refused += outcome.ended.filter(({ code }) => isRefusal(code)).length;
      if (outcome.waiting.length > 0) {
        for (const result of outcome.results.filter((one) => one !== undefined)) known.set(result.callId, result);
        return leave(outcome.waiting);
      }
      const results = outcome.results.filter((result) => result !== undefined);
      for (const result of results) host.add(result);
      settled.push(...asked.calls);
      if (outcome.fault !== undefined) throw outcome.fault;
      if (host.signal.aborted) return end("interrupted");
      if (outcome.ended.some((one) => one.stopsTurn)) return end("stopped", "The user stopped the turn.");
      const repeats = Math.max(...results.map((result, index) => watch.seen(asked.calls[index]!, result)));
      if (repeats >= maxRepeats)
        return end("loop", `The model made the same call ${repeats} times with the same result.`);
    }
    if (host.isPaused()) return leave([]);
    const limit = exceeded(host.limits, host.spent());
    if (limit !== undefined) return end("limit", `The turn reached its limit of ${limit}.`);
    for (const message of host.takeSteering()) host.add(message);
    await host.compactIfNeeded(false);

    const answer = await askUntilAnswered(host).catch((error: unknown) => {
      if (host.isPaused()) return undefined; // nothing of an answer that was cut off has run, so it is asked for again
      throw error;
    });
    if (answer === undefined || (host.isPaused() && answer.outcome !== "ok")) return leave([]);
    host.answered(answer);
    const items = keepable(answer);
    for (const [at, item] of items.entries()) host.add(item, at === items.length - 1 ? answer.finish : undefined);
    lastText = textOf(answer) || lastText;
    if (host.signal.aborted) return end("interrupted");
    if (answer.outcome === "error" || answer.outcome === "truncated")
      return end("error", answer.error?.message ?? "The answer broke off.");

    const calls = answer.items.filter((item): item is CallItem => item.type === "call");
    asked = { calls, finish: answer.finish };
    if (calls.length > 0) continue;
    if (answer.finish === "length") return end("limit", "The model reached its output limit.");
    const refusal = refusalOf(answer);
    if (refusal !== undefined) return end("error", refusal);
    if (answer.finish === "pause" || host.hasSteering()) continue;
    const checked = await host.checkAnswer?.(textOf(answer));
    if (checked?.again !== undefined) {
      host.add(checked.again);
      continue;
    }
    if (checked?.problem !== undefined) return end("error", checked.problem);
    if (textOf(answer) === "") host.emit({ type: "warning", message: "The model answered with nothing." });
    return { ...end("done"), ...defined({ output: checked?.value }) };
  }
}

/** One complete answer. A broken stream or a history that was too long is repaired, and the model asked again. */
async function askUntilAnswered(host: TurnHost): Promise<Answer> {
  let overflowed = false;
  for (let attempt = 0; ; attempt++) {
    const answer = await askOnce(host);
    if (host.signal.aborted || answer.outcome === "ok" || answer.outcome === "incomplete") return answer;
    if (answer.error?.type === "context_overflow" && !overflowed) {
      overflowed = true;
      if (await host.compactIfNeeded(true)) continue;
    }
    if (attempt >= maxStreamRetries || !host.isRetryable(answer)) return answer;
    const waitMs = answer.error?.retryAfterMs ?? 200 * 2 ** attempt;
    host.emit({
      type: "warning",
      message: `The answer broke off (${answer.error?.message ?? "no end"}); asking again in ${describeMs(waitMs)}.`,
    });
    await host.sleep(waitMs);
  }
}

async function askOnce(host: TurnHost): Promise<Answer> {
  const collector = createCollector();
  const dropped: DroppedNote[] = [];
  const withOwnId = host.ownIds();
  for await (const told of await host.ask(host.buildRequest())) {
    const event = withOwnId(told);
    collector.push(event);
    if (event.type === "item.started" || event.type === "item.delta" || event.type === "item.done") host.emit(event);
    if (event.type !== "note") continue;
    if (event.note.type === "tool.dropped") dropped.push(event.note);
    else host.emit({ type: "warning", message: describeNote(event.note) });
  }
  for (const message of describeDropped(dropped)) host.warnOnce(message);
  return collector.answer();
}

/** The calls of one answer, and how that answer ended. */
interface Asking {
  readonly calls: readonly CallItem[];
  readonly finish?: Answer["finish"];
}

interface Outcome {
  readonly ended: readonly Ended[];
  /** In the order of the calls; undefined for those that wait. */
  readonly results: readonly (ResultItem | undefined)[];
  /** Ids of the calls whose answer will come later. */
  readonly waiting: readonly string[];
  /** Ends the turn and is shown to the operator. Every call still has its result. */
  readonly fault?: Error;
}

/** Runs the calls in the order asked; those that may run together do. A call with a known result is not run again. */
async function runCalls(host: TurnHost, asked: Asking, known: ReadonlyMap<string, ResultItem>): Promise<Outcome> {
  const settled = await Promise.allSettled(
    asked.calls.map((call) => (known.has(call.id) ? undefined : runCall(host, call, asked.finish))),
  );
  const failed = settled.filter((outcome) => outcome.status === "rejected").map(({ reason }): unknown => reason);
  const fault = failed.find((reason) => !Waiting.is(reason));
  const stops = settled.some((outcome) => outcome.status === "fulfilled" && outcome.value?.stopsTurn);
  const parks = fault === undefined && !stops && !host.signal.aborted && failed.length > 0;
  const ended: Ended[] = [];
  const results: (ResultItem | undefined)[] = [];
  for (const [index, outcome] of settled.entries()) {
    const call = asked.calls[index]!;
    const isWaiting = outcome.status === "rejected" && Waiting.is(outcome.reason);
    const one =
      outcome.status === "fulfilled"
        ? outcome.value
        : isWaiting && parks
          ? undefined
          : await host.refuse(call, isWaiting ? unstarted : faulted);
    if (one !== undefined) ended.push(one);
    results.push(one === undefined ? known.get(call.id) : toResultItem(one, call));
  }
  const waiting = asked.calls.flatMap(({ id }, index) => (results[index] === undefined ? [id] : []));
  if (fault === undefined) return { ended, results, waiting };
  return { ended, results, waiting, fault: fault instanceof Error ? fault : new Fault(String(fault)) };
}

async function runCall(host: TurnHost, call: CallItem, finish: Answer["finish"]): Promise<Ended> {
  if (host.signal.aborted) return host.refuse(call, unstarted);
  return call.complete ? host.call(call) : host.refuse(call, incompleteCall(call, finish));
}

const unstarted = new CallError("aborted", "The turn was interrupted before this call was started.");

const faulted = new CallError(
  "failed",
  "The call failed in a way that only the operator can mend, and the turn was ended.",
);

function incompleteCall(call: CallItem, finish: Answer["finish"]): CallError {
  if (finish === "length") {
    const words = `The call to ${call.name} was cut off by the output limit and was not run.`;
    return new CallError("invalid_input", words, { hint: "Make it in smaller pieces." });
  }
  const fault = call.kind === "custom" ? undefined : locateJsonError(call.arguments);
  const where = fault === undefined ? "" : `: ${describeJsonError(call.arguments, fault)}`;
  const hint = "Send it again, complete.";
  return new CallError("invalid_input", `The call to ${call.name} is not whole and was not run${where}.`, { hint });
}

/** What joins the history. Of an answer that broke off, only its text does, and never half a call. */
function keepable(answer: Answer): readonly Item[] {
  if (answer.outcome === "ok" || answer.outcome === "incomplete") return answer.items;
  return answer.items.filter((item) => item.type === "message" && partsToText(item.content) !== "");
}

/** The reason if the model, or a filter in front of it, would not answer. */
function refusalOf(answer: Answer): string | undefined {
  const words = answer.items
    .flatMap((item) => (item.type === "message" && item.refusal ? [item.refusal] : []))
    .join("\n");
  if (words === "" && answer.finish !== "refusal" && answer.finish !== "content_filter") return undefined;
  if (words !== "") return `The model refused: ${words}`;
  return answer.finish === "content_filter"
    ? "The answer was stopped by the provider's filter."
    : "The model refused to answer.";
}

function textOf(answer: Answer): string {
  return answer.items.flatMap((item) => (item.type === "message" ? [partsToText(item.content)] : [])).join("\n");
}

/** A prompt as a history item. */
export function userMessage(prompt: string | MessageItem["content"]): MessageItem {
  return { type: "message", role: "user", content: typeof prompt === "string" ? [text(prompt)] : prompt };
}

/** A message from the session itself, in the place where a model expects the user's. */
export function ownMessage(words: string): MessageItem {
  return { ...userMessage(words), synthetic: true };
}
