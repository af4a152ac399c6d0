/**
 * The models behind the gateway are asked one after another until one answers, with everything of ours
 * done to the answer: secrets are hidden, calls are judged, and ids are kept apart.
 */
import { readRefusal } from "../model/failure.ts";
import type { CallItem, ModelError, ModelEvent, ModelRequest } from "../spec/model.ts";
import { createIdKeeper } from "./call-state.ts";
import { govern } from "./govern.ts";
import type { JournalEntry } from "./journal.ts";
import { stopAt } from "./stop-sequences.ts";
import type { Turn } from "./turn.ts";
import { isTargetsFault, type Target } from "./upstreams.ts";

/** Asks one target after another until one begins to answer. */
export async function* askTargets(
  turn: Turn,
  targets: readonly Target[],
  used: { target: Target },
  entry: JournalEntry | undefined,
): AsyncGenerator<ModelEvent> {
  const { services, who } = turn;
  for (const [index, target] of targets.entries()) {
    used.target = target;
    const events = askTarget(turn, target, entry);
    try {
      const { events: head, failure } = await readHead(events);
      services.upstreams.report(target, who.conversation, failure);
      const next = targets[index + 1];
      if (failure !== undefined && next !== undefined && isTargetsFault(failure)) {
        entry?.note({ type: "warning", message: `${target.name} failed (${failure.message}): asking ${next.name}` });
        continue;
      }
      yield* head;
      yield* events;
      return;
    } finally {
      await events.return(undefined); // whatever it still holds open is closed
    }
  }
}

/** The events up to the first that a client would see. */
async function readHead(
  events: AsyncIterator<ModelEvent>,
): Promise<{ readonly events: readonly ModelEvent[]; readonly failure?: ModelError }> {
  const head: ModelEvent[] = [];
  for (let next = await events.next(); !next.done; next = await events.next()) {
    const event = next.value;
    head.push(event);
    if (event.type === "item.started") break;
    if (event.type !== "answer.ended") continue;
    const { outcome, error } = event.answer;
    const failed = outcome === "error" || outcome === "truncated";
    if (!failed) break;
    return { events: head, failure: error ?? { type: "network", message: "The model's server sent no answer." } };
  }
  return { events: head };
}

const passAll = { judge: async () => undefined, enforce: false };

/** One target's events with everything of ours done to them: secrets hidden, calls judged, ids kept apart. */
async function* askTarget(turn: Turn, target: Target, entry: JournalEntry | undefined): AsyncGenerator<ModelEvent> {
  const { services, request, signal } = turn;
  const { secrets, governance } = services;
  const prepared = target.prepare(secrets === undefined ? request : secrets.hide(request));
  const ask = async function* (wanted: ModelRequest): AsyncGenerator<ModelEvent> {
    // The Responses API has no stop sequences.
    const stops = target.address.wire === "responses" ? (wanted.stop ?? []).filter((words) => words !== "") : [];
    const answered = target.ask(wanted, signal);
    for await (const event of stops.length === 0 ? answered : stopAt(answered, stops)) {
      if (event.type === "note") entry?.note({ type: "gateway.note", raw: { ...event.note } });
      if (event.type === "other") entry?.note({ type: "gateway.note", raw: event.raw });
      else {
        const shown = secrets === undefined ? event : secrets.reveal(event);
        if (shown !== undefined) yield shown;
      }
    }
  };
  const onRefusal = (call: CallItem, { reason }: { readonly reason: string }) => {
    turn.refusals.push({ call: call.name, reason });
    const what = governance?.enforce === true ? "refused" : "would be refused";
    entry?.note({ type: "warning", message: `${call.name} ${what} by policy: ${reason}` });
  };
  const keepId = createIdKeeper(request, turn.asked.wire);
  const events = govern(prepared, ask, { ...(governance ?? passAll), onRefusal });
  for await (const event of events) {
    const error = event.type === "answer.ended" ? event.answer.error : undefined;
    if (event.type === "answer.ended" && error !== undefined)
      yield { ...event, answer: { ...event.answer, error: toClientError(error) } };
    else yield keepId(event);
  }
}

/** Clients read the words of the API they know, and need not know where our upstreams are. */
export function toClientError(error: ModelError): ModelError {
  const isNoRefusal = error.status !== undefined && error.status < 300;
  if (isNoRefusal) return { ...error, message: "What is behind the gateway did not answer as a model does." };
  const said = error.raw === undefined ? undefined : readRefusal(error.raw).message;
  if (said !== undefined && said !== "") return { ...error, message: said };
  return error.type === "network" ? { ...error, message: "The model behind the gateway cannot be reached." } : error;
}
