/**
 * Applies the user's policy to the calls that models ask of other clients. The gateway refuses
 * requests; the client runs tools. A refused call is replaced by text if other calls remain. Otherwise
 * the model is asked again with the refusal as the result, so that it can choose another way in the
 * same turn.
 */
import { text } from "../base/content.ts";
import type { AnswerEnd, CallItem, Item, ModelEvent, ModelRequest, Usage } from "../spec/model.ts";

/** Undefined if the call may go to the client; otherwise why not. */
export type Judge = (call: CallItem) => Promise<Refusal | undefined>;

/** Why a call that a model asked of a foreign client is refused. */
export interface Refusal {
  readonly reason: string;
  readonly rule?: string;
}

export interface GovernOptions {
  readonly judge: Judge;
  /** Called for each call that the policy would refuse, even if nothing is enforced. */
  readonly onRefusal: (call: CallItem, refusal: Refusal) => void;
  /** False: calls pass, and what would have been refused is only reported. */
  readonly enforce: boolean;
}

/** How often the model may choose again before its refused calls end the answer as text. */
const maxRounds = 3;

type Ask = (request: ModelRequest) => AsyncIterable<ModelEvent>;

export async function* govern(request: ModelRequest, ask: Ask, options: GovernOptions): AsyncGenerator<ModelEvent> {
  let asked = request;
  let spent: Usage | undefined;
  let offset = 0;
  for (let round = 1; ; round++) {
    const answer = createHeldAnswer(offset);
    for await (const event of ask(asked)) yield* answer.pass(event);
    const end = answer.end();
    spent = addUsage(spent, end?.usage);
    // Encoders withhold every call of an answer that did not end well.
    const refused = end?.outcome === "ok" ? await judgeAll(answer.calls(), options) : new Map<CallItem, Refusal>();
    const isOnlyRefused = refused.size > 0 && refused.size === answer.calls().length;
    if (isOnlyRefused && round < maxRounds) {
      asked = { ...asked, input: [...asked.input, ...answer.items(), ...resultsOf(refused)] };
      offset = answer.nextIndex();
      continue;
    }
    yield* answer.release(refused);
    if (end !== undefined)
      yield { type: "answer.ended", answer: finished(end, spent, answer.calls().length - refused.size) };
    return;
  }
}

const broken: Refusal = { reason: "its arguments are not whole JSON, so it cannot be run" };

async function judgeAll(calls: readonly CallItem[], options: GovernOptions): Promise<ReadonlyMap<CallItem, Refusal>> {
  const refused = new Map<CallItem, Refusal>();
  for (const call of calls) {
    // Some clients run a call whatever its arguments are, so a broken one goes back to the model, enforced or not.
    if (!call.complete) refused.set(call, broken);
    const refusal = call.complete ? await options.judge(call) : broken;
    if (refusal === undefined) continue;
    options.onRefusal(call, refusal);
    if (options.enforce) refused.set(call, refusal);
  }
  return refused;
}

/** Lets text through as it comes, and holds calls back until they are judged. */
function createHeldAnswer(offset: number) {
  const held: ModelEvent[] = [];
  const callIndexes = new Set<number>();
  const items: { readonly index: number; readonly item: Item }[] = [];
  let end: AnswerEnd | undefined;
  let next = offset;
  let isFirst = offset === 0;

  const isCallEvent = (event: ModelEvent) => "index" in event && callIndexes.has(event.index);
  return {
    *pass(event: ModelEvent): Generator<ModelEvent> {
      if (event.type === "answer.started") {
        if (isFirst) yield event;
        isFirst = false;
        return;
      }
      if (event.type === "answer.ended") {
        end = event.answer;
        return;
      }
      const moved = "index" in event ? { ...event, index: event.index + offset } : event;
      if (moved.type === "item.started") {
        next = Math.max(next, moved.index + 1);
        if (moved.item.type === "call") callIndexes.add(moved.index);
      }
      if (moved.type === "item.done") items.push({ index: moved.index, item: moved.item });
      if (isCallEvent(moved)) held.push(moved);
      else yield moved;
    },
    *release(refused: ReadonlyMap<CallItem, Refusal>): Generator<ModelEvent> {
      const words = new Map<number, string>();
      for (const { index, item } of items) {
        const refusal = item.type === "call" ? refused.get(item) : undefined;
        if (item.type === "call" && refusal !== undefined) words.set(index, describeRefusal(item, refusal));
      }
      for (const event of held) if (!("index" in event) || !words.has(event.index)) yield event;
      for (const [index, said] of words) yield* asMessage(index, said);
    },
    calls: () => items.flatMap(({ item }) => (item.type === "call" ? [item] : [])),
    items: () => items.toSorted((a, b) => a.index - b.index).map(({ item }) => item),
    end: () => end,
    nextIndex: () => next,
  };
}

function* asMessage(index: number, words: string): Generator<ModelEvent> {
  yield { type: "item.started", index, item: { type: "message", role: "assistant", content: [] } };
  yield { type: "item.delta", index, field: "text", delta: words };
  yield { type: "item.done", index, item: { type: "message", role: "assistant", content: [text(words)] } };
}

function describeRefusal(call: CallItem, { reason, rule }: Refusal): string {
  return `[callgate] ${call.name} was refused${call.complete ? " by policy" : ""}: ${reason}${rule === undefined ? "" : ` (rule: ${rule})`}.`;
}

function resultsOf(refused: ReadonlyMap<CallItem, Refusal>): readonly Item[] {
  return [...refused].map(([call, refusal]) => ({
    type: "result",
    callId: call.id,
    kind: call.kind,
    name: call.name,
    ok: false,
    content: [text(`${describeRefusal(call, refusal)} Do it in another way, or say that you cannot.`)],
  }));
}

/** An answer that lost all of its calls has stopped, whatever the model's server said. */
function finished(end: AnswerEnd, usage: Usage | undefined, calls: number): AnswerEnd {
  const finish = end.finish === "tool_calls" && calls === 0 ? "stop" : end.finish;
  return { ...end, ...(finish === undefined ? {} : { finish }), ...(usage === undefined ? {} : { usage }) };
}

function addUsage(a: Usage | undefined, b: Usage | undefined): Usage | undefined {
  if (a === undefined || b === undefined) return a ?? b;
  return {
    input: a.input + b.input,
    output: a.output + b.output,
    cached: (a.cached ?? 0) + (b.cached ?? 0),
    reasoning: (a.reasoning ?? 0) + (b.reasoning ?? 0),
  };
}
