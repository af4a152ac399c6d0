/** Runs one turn from its prompt, or from where it was left, and always ends it with `turn.ended` or `turn.waiting`. */
import { partsToText } from "../base/content.ts";
import { defined } from "../base/json.ts";
import type { Item, MessageItem } from "../spec/model.ts";
import type { Rebuilt } from "./history.ts";
import type { Spent } from "./limits.ts";
import { createHost, type Shared } from "./turn-host.ts";
import { ownMessage, runTurn, userMessage, type TurnEnd, type TurnSoFar } from "./turn.ts";

/** A turn that was left open: by a question that is answered later, or by the end of its process. */
export interface Parked {
  readonly turn: number;
  readonly soFar: TurnSoFar;
  readonly spent: Spent;
  /** The history to continue with, if another process left the turn. */
  readonly items?: readonly Item[];
  /** What the user had said, if it did not join the history in time. */
  readonly prompt?: string;
}

/** A turn as its records tell it. */
export function fromOpenTurn({ open, resumable }: Rebuilt): Parked | undefined {
  if (open === undefined || resumable === undefined) return undefined;
  const { turn, calls, refused, text, isStopped, settled, spent } = open;
  return {
    turn,
    items: resumable.items,
    soFar: {
      calls,
      refused,
      text,
      isStopped,
      settled,
      results: resumable.results,
      isAnswered: !open.isBroken && open.answerItems > 0,
      ...defined({ finish: open.finish }),
    },
    spent,
    ...defined({ prompt: open.prompt }),
  };
}

export type Begin =
  | { readonly turn: number; readonly prompt: string | MessageItem["content"] }
  | { readonly turn: number; readonly parked: Parked };

/**
 * Resolves with the turn if it waits. Throws only if the journal accepts no more records, because then
 * nobody may continue.
 */
export async function playTurn(shared: Shared, begin: Begin, signal: AbortSignal): Promise<Parked | undefined> {
  const { emit, now, recorder } = shared;
  const { turn } = begin;
  const parked = "parked" in begin ? begin.parked : undefined;
  const startedAt = now() - (parked?.spent.ms ?? 0);
  const host = createHost(shared, turn, signal, parked?.spent);
  if ("prompt" in begin) {
    const { prompt } = begin;
    emit({ type: "turn.started", turn, prompt: typeof prompt === "string" ? prompt : partsToText(prompt) });
    host.add(userMessage(prompt));
  } else {
    emit({ type: "turn.resumed", turn });
    if (parked?.items !== undefined) shared.history.replace(parked.items);
    if (parked?.prompt !== undefined) host.add(userMessage(parked.prompt));
  }
  const end = await runTurn(host, parked?.soFar).catch((error: unknown): TurnEnd => {
    const detail = error instanceof Error ? error.message : String(error);
    return { reason: signal.aborted ? "interrupted" : "error", detail, text: "", refused: 0 };
  });
  if (recorder.failure !== undefined) throw recorder.failure;
  const { waiting, ...ended } = end;
  if (waiting === undefined && end.reason === "interrupted")
    host.add(ownMessage("[The user interrupted the turn here.]"));
  const { diff, warning } = shared.options.changes?.endTurn(`${shared.options.id}:${turn}`, now()) ?? {};
  if (diff) emit({ type: "diff.updated", diff: diff.diff, files: diff.files, notes: diff.notes });
  if (warning !== undefined) emit({ type: "warning", message: warning });
  const spent = host.spent();
  if (waiting !== undefined) {
    emit({ type: "turn.waiting", turn, calls: waiting.ids });
    await recorder.commit();
    return { turn, soFar: waiting.soFar, spent: { ...spent, calls: spent.calls - waiting.ids.length } };
  }
  if (end.reason === "error") emit({ type: "error", message: end.detail ?? "The turn ended in an error." });
  const { usage, requests, calls } = spent;
  emit({ type: "turn.ended", turn, ...ended, usage, requests, calls, durationMs: now() - startedAt });
  await recorder.commit();
  return undefined;
}
