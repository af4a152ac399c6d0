/**
 * One turn: ask the model, run its calls down the line, give the results back, until it stops. One
 * loop over neutral items for every wire. `session/` knows no wire's words and no tool's name.
 */
import { defined } from "../base/json.ts";
import { partsToText, text } from "../base/content.ts";
import { CallError, Fault, isRefusal } from "../base/error.ts";
import { describeMs } from "../base/text.ts";
import type { Ended } from "../spec/call.ts";
import type { Answer, CallItem, Item, MessageItem, ModelEvent, ModelRequest } from "../spec/model.ts";
import { describeJsonError, locateJsonError } from "../check/json-error.ts";
import { createCollector } from "../wire/answer.ts";
import type { SessionEvent, TurnEndReason } from "./events.ts";
import { toResultItem } from "./history.ts";
import { createLoopWatch, exceeded, maxRepeats, type Spent, type TurnLimits } from "./limits.ts";

/** What a turn needs of its session. */
export interface TurnHost {
  readonly limits: TurnLimits;
  readonly signal: AbortSignal;
  readonly now: () => number;
  emit(event: SessionEvent): void;
  /** Joins the history. */
  add(item: Item): void;
  buildRequest(): ModelRequest;
  ask(request: ModelRequest): AsyncIterable<ModelEvent>;
  /** Runs one call down the line; results of a turn come back in the order asked. */
  call(item: CallItem): Promise<Ended>;
  /** A call that must not run still gets an ending. */
  refuse(item: CallItem, error: CallError): Ended;
  /** Messages typed while the turn runs, to go in at the next request. */
  takeSteering(): readonly MessageItem[];
  /** Shortens the history if it is near the model's limit; `overflow` says the provider has refused it already. */
  compactIfNeeded(overflow: boolean): Promise<boolean>;
  spent(): Spent;
  answered(answer: Answer): void;
  isRetryable(answer: Answer): boolean;
  sleep(ms: number): Promise<void>;
}

export interface TurnEnd {
  readonly reason: TurnEndReason;
  readonly detail?: string;
  readonly text: string;
  readonly refused: number;
}

/** A broken stream is asked for again this often: none of its calls has run, so nothing is repeated. */
const maxStreamRetries = 4;

export async function runTurn(host: TurnHost): Promise<TurnEnd> {
  const watch = createLoopWatch();
  let refused = 0;
  let lastText = "";
  const end = (reason: TurnEndReason, detail?: string): TurnEnd => ({
    reason,
    text: lastText,
    refused,
    ...defined({ detail }),
  });

  for (;;) {
    const limit = exceeded(host.limits, host.spent());
    if (limit !== undefined) return end("limit", `The turn reached its limit of ${limit}.`);
    for (const message of host.takeSteering()) host.add(message);
    await host.compactIfNeeded(false);

    const answer = await askUntilAnswered(host);
    host.answered(answer);
    for (const item of keepable(answer)) host.add(item);
    lastText = textOf(answer) || lastText;
    if (host.signal.aborted) return end("interrupted");
    if (answer.outcome === "error" || answer.outcome === "truncated")
      return end("error", answer.error?.message ?? "The answer broke off.");

    const calls = answer.items.filter((item): item is CallItem => item.type === "call");
    if (calls.length === 0) {
      if (answer.finish === "length") return end("limit", "The model reached its output limit.");
      const refusal = refusalOf(answer);
      if (refusal !== undefined) return end("error", refusal);
      if (answer.finish === "pause" || hasSteering(host)) continue;
      if (textOf(answer) === "") host.emit({ type: "warning", message: "The model answered with nothing." });
      return end("done");
    }
    const outcome = await runCalls(host, calls, answer);
    refused += outcome.filter(({ code }) => isRefusal(code)).length;
    if (host.signal.aborted) return end("interrupted");
    if (outcome.some((ended) => ended.stopsTurn)) return end("stopped", "The user stopped the turn.");
    const repeats = Math.max(...outcome.map((ended, index) => watch.seen(calls[index]!, toResultItem(ended))));
    if (repeats >= maxRepeats)
      return end("loop", `The model made the same call ${repeats} times with the same result.`);
  }
}

/** One whole answer. A stream that broke, or a history that was too long, is mended and asked for again. */
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
  for await (const event of host.ask(host.buildRequest())) {
    collector.push(event);
    if (event.type === "item.started" || event.type === "item.delta" || event.type === "item.done") host.emit(event);
    if (event.type === "other" && event.wire === "callgate")
      host.emit({ type: "warning", message: describeNote(event.raw) });
  }
  return collector.answer();
}

/** Calls in the order asked; those that may run together do. The order of the results is the order of the calls. */
async function runCalls(host: TurnHost, calls: readonly CallItem[], answer: Answer): Promise<readonly Ended[]> {
  const running = calls.map((call) =>
    call.complete ? host.call(call) : Promise.resolve(host.refuse(call, incompleteCall(call, answer))),
  );
  const settled = await Promise.allSettled(running);
  const ended = settled.map((outcome, index) =>
    outcome.status === "fulfilled" ? outcome.value : host.refuse(calls[index]!, faulted),
  );
  for (const one of ended) host.add(toResultItem(one));
  // Every call has its ending in the history; a fault itself ends the turn and is the operator's to see.
  const fault = settled.find((outcome) => outcome.status === "rejected");
  if (fault) throw fault.reason instanceof Error ? fault.reason : new Fault(String(fault.reason));
  return ended;
}

const faulted = new CallError(
  "failed",
  "The call failed in a way that only the operator can mend, and the turn was ended.",
);

function incompleteCall(call: CallItem, answer: Answer): CallError {
  if (answer.finish === "length") {
    const words = `The call to ${call.name} was cut off by the output limit and was not run.`;
    return new CallError("invalid_input", words, { hint: "Make it in smaller pieces." });
  }
  const fault = call.kind === "custom" ? undefined : locateJsonError(call.arguments);
  const where = fault === undefined ? "" : `: ${describeJsonError(call.arguments, fault)}`;
  const words = `The call to ${call.name} is not whole and was not run${where}.`;
  return new CallError("invalid_input", words, { hint: "Send it again, complete." });
}

/** What of an answer joins the history. Of one that broke off, only what was said: never a half call. */
function keepable(answer: Answer): readonly Item[] {
  if (answer.outcome === "ok" || answer.outcome === "incomplete") return answer.items;
  return answer.items.filter((item) => item.type === "message" && partsToText(item.content) !== "");
}

/** The model, or a filter in front of it, would not answer. */
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

function hasSteering(host: TurnHost): boolean {
  const messages = host.takeSteering();
  for (const message of messages) host.add(message);
  return messages.length > 0;
}

function describeNote(raw: unknown): string {
  const note = raw as {
    readonly type?: string;
    readonly name?: string;
    readonly reason?: string;
    readonly waitMs?: number;
  };
  if (note.type === "tool.dropped") return `The tool ${note.name} is not offered: ${note.reason}`;
  if (note.type === "request.retried")
    return `${(note.reason ?? "").replace(/[^.]$/, "$&.")} Asking again in ${describeMs(note.waitMs ?? 0)}.`;
  return JSON.stringify(raw);
}

/** A prompt as a history item. */
export function userMessage(prompt: string | MessageItem["content"]): MessageItem {
  return { type: "message", role: "user", content: typeof prompt === "string" ? [text(prompt)] : prompt };
}
