/**
 * Calls on their way to a client. A client runs a call as soon as it sees a complete one, so calls
 * wait for the end of the answer. Calls that must not run are never written at all, because on every
 * wire some client runs whatever it finds.
 */
import { text } from "../base/content.ts";
import { parseJson } from "../base/json.ts";
import type { Answer, AnswerEnd, CallItem, Item, MessageItem, ModelEvent } from "../spec/model.ts";

export interface Hold {
  push(event: ModelEvent): void;
}

export interface HoldOptions {
  /** True: from the first call on everything waits, and is then written item by item. False: only calls wait. */
  readonly inOrder: boolean;
  /** Other events that must wait. */
  mustWait?(event: ModelEvent): boolean;
  /** The item that is being written while others wait. Its events are written before theirs. */
  openItem?(): number | undefined;
  write(event: ModelEvent): void;
}

export function createHold({ inOrder, mustWait, openItem, write }: HoldOptions): Hold {
  const calls = new Set<number>();
  let held: ModelEvent[] = [];
  let isHolding = false;

  function waits(event: ModelEvent): boolean {
    if ((event.type === "item.started" || event.type === "item.done") && event.item.type === "call")
      calls.add(event.index);
    if ("index" in event && calls.has(event.index)) return true;
    return mustWait?.(event) === true;
  }

  return {
    push(event) {
      if (event.type === "answer.ended") {
        const end = event.answer;
        const released = held.flatMap((earlier) => release(earlier, calls, end));
        for (const earlier of inOrder ? byItem(released, openItem?.()) : released) write(earlier);
        held = [];
        const isCalling = released.some((one) => one.type === "item.done" && one.item.type === "call");
        return write({ ...event, answer: withoutCalls(end, isCalling) });
      }
      if (waits(event) || (isHolding && inOrder)) {
        isHolding = true;
        held.push(event);
      } else write(event);
    },
  };
}

/** A held event in the form that the end of the answer gives it. Of a call only its final, complete form is written. */
function release(event: ModelEvent, calls: ReadonlySet<number>, end: AnswerEnd): readonly ModelEvent[] {
  if (!("index" in event) || !calls.has(event.index)) return [event];
  if (event.type !== "item.done" || event.item.type !== "call") return [];
  return handOut(event.item, end).map((item) => ({ ...event, item }));
}

/** The answer as a client may have it. */
export function handedOut(answer: Answer): Answer {
  const items = answer.items.flatMap((item) => (item.type === "call" ? handOut(item, answer) : [item]));
  const isCalling = items.some((item) => item.type === "call");
  return { ...answer, ...withoutCalls(answer, isCalling), items };
}

/**
 * Only an answer that ended well has calls. A call whose arguments are not JSON is passed on as such,
 * for the client to refuse and report to the model. Any other call that must not run is described in
 * words.
 */
function handOut(call: CallItem, end: AnswerEnd): readonly Item[] {
  if (end.outcome !== "ok" || end.finish === "refusal") return [];
  if (call.complete || isBroken(call)) return [call];
  const name = call.name === "" ? "a tool without a name" : `'${call.name}'`;
  const message: MessageItem = {
    type: "message",
    role: "assistant",
    content: [text(`[A call of ${name} was left out: its input is not whole.]`)],
  };
  return [message];
}

/** Text that every JSON reader refuses, with a name under which a client can refuse it. */
function isBroken(call: CallItem): boolean {
  return call.name !== "" && call.kind !== "custom" && call.arguments.trim() !== "" && !parseJson(call.arguments).ok;
}

/** An answer cannot end with `tool_calls` if no call is left. */
function withoutCalls(end: AnswerEnd, isCalling: boolean): AnswerEnd {
  return end.finish === "tool_calls" && !isCalling ? { ...end, finish: "stop" } : end;
}

/** Orders events by the index of their item, because items must neither interleave nor overtake each other. */
function byItem(events: readonly ModelEvent[], open: number | undefined): readonly ModelEvent[] {
  const place = (event: ModelEvent) => ("index" in event && event.index !== open ? event.index : -1);
  return events.toSorted((a, b) => place(a) - place(b));
}
