/**
 * Plays a recorded session again: the model's part is read from the journal, and everything else
 * really happens again.
 */
import type { Item, Model } from "../spec/model.ts";
import { answerToEvents } from "../wire/answer.ts";
import type { HistoryRecord } from "./history.ts";

export interface RecordedTurn {
  readonly prompt: string;
  /** What the model said to each request of the turn. */
  readonly answers: readonly (readonly Item[])[];
}

/** The turns of a journal, with the model's answers in the order they were given. */
export function readTurns(records: readonly HistoryRecord[]): readonly RecordedTurn[] {
  const turns: { prompt: string; answers: Item[][] }[] = [];
  for (const record of records) {
    if (record.type === "turn.started") turns.push({ prompt: String(record["prompt"]), answers: [] });
    const turn = turns.at(-1);
    if (record.type === "request.sent") turn?.answers.push([]);
    // Trusted: the line matched its checksum.
    const item = record.type === "item.added" ? (record["item"] as Item) : undefined;
    if (item !== undefined && isModelItem(item)) turn?.answers.at(-1)?.push(item);
  }
  return turns;
}

/** A model that gives the recorded answers again, one per request. */
export function createRecordedModel(turn: RecordedTurn, name: string): Model {
  let next = 0;
  return {
    name,
    async *ask(_request, signal) {
      signal.throwIfAborted();
      const items = turn.answers[next++] ?? [];
      const finish = items.some(({ type }) => type === "call") ? "tool_calls" : "stop";
      yield* answerToEvents({ items, outcome: "ok", finish });
    },
  };
}

function isModelItem(item: Item): boolean {
  if (item.type === "message") return item.role === "assistant";
  return item.type === "call" || item.type === "reasoning" || item.type === "server_call" || item.type === "other";
}
