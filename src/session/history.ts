/**
 * The conversation as the model sees it. Rebuilt from a journal, it is the same list that was built
 * live, so that a resumed session sends the same bytes.
 */
import { text } from "../base/content.ts";
import type { Ended } from "../spec/call.ts";
import { defined, type Json } from "../base/json.ts";
import type { Answer, CallItem, Item, ResultItem, Usage } from "../spec/model.ts";
import { addUsage, noUsage } from "./limits.ts";
import { costOf, type Price } from "./price.ts";
import { findOpenTurn, isHeldQuestion, type OpenTurn } from "./open-turn.ts";
import { createTokenCount } from "./tokens.ts";

/** The ending of a call, as it goes back to the model. */
export function toResultItem(ended: Ended, call: Pick<CallItem, "name" | "namespace"> = ended): ResultItem {
  return {
    type: "result",
    callId: ended.id,
    kind: ended.kind,
    // The name that the model used, because it may stand for another tool, and some wires pair calls and results by
    // name.
    name: call.name,
    ...defined({ namespace: call.namespace }),
    content: ended.content,
    ...defined({ structured: ended.structured }),
    // The output of a command that failed already states its exit code. If it were marked as an error too, a wire
    // would add a prefix of its own.
    ok: ended.ok || typeof ended.exitCode === "number",
  };
}

/** A record as `history` needs it. Only these types matter; all other records are for showing and are not sent. */
export interface HistoryRecord {
  readonly type: string;
  readonly [field: string]: unknown;
}

/** A conversation read back from its journal. */
export interface Rebuilt {
  readonly items: readonly Item[];
  /** Calls that had started and not ended when the journal stops. They are reported once and never run again. */
  readonly interrupted: readonly string[];
  readonly turns: number;
  /** The plan as the last plan update had it. */
  readonly plan?: Json;
  readonly usage?: Usage;
  readonly costUsd?: number;
  /** What a person agreed to for the whole session, in the gate's form. */
  readonly approvals: readonly string[];
  /** The files that were read, each with the version that was seen last. */
  readonly filesRead: ReadonlyMap<string, string>;
  /** Programs left running by a process that is gone, if nobody has been told about them yet. */
  readonly terminals: readonly string[];
  /** The last turn, if it has not ended. */
  readonly open?: OpenTurn;
  /** For continuing the open turn: the history up to its last answer, and the results that its calls already have. */
  readonly resumable?: { readonly items: readonly Item[]; readonly results: ReadonlyMap<string, ResultItem> };
  /** The ids of all calls. */
  readonly callIds: readonly string[];
}

/**
 * Turns records into a history. A call that started and never ended gets a result that says so. A short
 * form sealed for another wire than `wire` is skipped: what it replaced is still in the records.
 */
export function rebuildHistory(records: readonly HistoryRecord[], wire?: string): Rebuilt {
  let items: Item[] = [];
  let turns = 0;
  let told: ReadonlySet<string> = new Set();
  const last = new Map<string, HistoryRecord>();
  const results = new Map<string, ResultItem>();
  const callIds = new Set<string>();
  /** The positions at which answers begin. */
  const asked = new Set<number>();
  const open = new Set<string>();
  const approvals: string[] = [];
  const filesRead = new Map<string, string>();
  let terminals: readonly string[] = [];
  const undone = new Set<string>();
  const held = new Set<string>();
  for (const record of records) {
    last.set(record.type, record);
    // Field types are trusted here: each line matched its checksum, so we wrote it ourselves.
    if (record.type === "session.started") told = new Set(open); // reported when the session was opened at that time
    if (record.type === "request.sent") asked.add(items.length);
    if (record.type === "item.added") items.push(record["item"] as Item);
    if (record.type === "turn.started") turns = Number(record["turn"]);
    if (record.type === "call.started") open.add(String(record["id"]));
    if (isHeldQuestion(record)) {
      // The run was held: nothing of it is kept yet and nothing left the sandbox, so until somebody decides, it has
      // not happened.
      held.add(String(record["id"]));
      open.delete(String(record["id"]));
    }
    if (record.type === "effects.decided" && held.delete(String(record["id"]))) open.add(String(record["id"]));
    if (record.type === "history.compacted" && isReadable(record["items"] as Item[], wire)) {
      items = [...(record["items"] as Item[])];
      asked.clear();
    }
    if (record.type === "call.ended") {
      const call = record["call"] as Ended;
      callIds.add(call.id);
      open.delete(call.id);
      results.set(call.id, toResultItem(call));
      for (const [path, version] of (record["files"] ?? []) as readonly [string, string][])
        filesRead.set(path, version);
      terminals = (record["terminals"] as readonly string[] | undefined) ?? terminals;
    }
    if (record.type === "approval.remembered") approvals.push(...(record["keys"] as readonly string[]));
    if (record.type === "terminals.gone") terminals = [];
    if (record.type === "workspace.restored") for (const id of record["undone"] as readonly string[]) undone.add(id);
  }
  const turn = findOpenTurn(records);
  const fateOf = (id: string): Fate =>
    undone.has(id) ? "undone" : held.has(id) ? "held" : open.has(id) ? "cut off" : "not started";
  const known = new Map([...results, ...cutOff(items, open, results, fateOf)]);
  const resumable = turn === undefined ? undefined : toResumable(items, known, asked, turn);
  for (const item of items) {
    if (item.type !== "call" || results.has(item.id)) continue;
    results.set(item.id, interruptedResult(item, fateOf(item.id)));
  }
  return {
    items: placeResults(items, results, asked),
    callIds: [...callIds],
    interrupted: [...open].filter((id) => !told.has(id)),
    turns,
    approvals,
    filesRead,
    terminals,
    ...defined({ open: turn, resumable }),
    ...totals(last),
  };
}

/** Results for calls that were started and never ended. */
function cutOff(
  items: readonly Item[],
  open: ReadonlySet<string>,
  results: ReadonlyMap<string, ResultItem>,
  fateOf: (id: string) => Fate,
): readonly (readonly [string, ResultItem])[] {
  return items.flatMap((item) =>
    item.type === "call" && open.has(item.id) && !results.has(item.id)
      ? [[item.id, interruptedResult(item, fateOf(item.id))] as const]
      : [],
  );
}

type Fate = "not started" | "cut off" | "undone" | "held";

const fates: Readonly<Record<Fate, string>> = {
  "not started": "Error: the session ended before this call was started. It did not run.",
  "cut off":
    "Error: this call was started and the session ended before it did. It was not run again; look at what it may have done before repeating it.",
  held: "Error: this command ran with its writes held back, and the session ended before anybody said whether to keep them. Nothing was kept: it did not happen. Call it again if it is still wanted.",
  undone:
    "Error: this call was cut off. It could change nothing but the workspace, and that was set back to what it was before the call: it did not happen. Call it again if it is still wanted.",
};

/** The calls of the last answer stay at the end without results. Those are added when all of them are there. */
function toResumable(
  items: readonly Item[],
  results: ReadonlyMap<string, ResultItem>,
  asked: ReadonlySet<number>,
  turn: OpenTurn,
) {
  const before = items.slice(0, items.length - turn.answerItems);
  const answer = turn.isBroken ? [] : items.slice(before.length);
  return { items: [...placeResults(before, results, asked), ...answer], results };
}

function totals(last: ReadonlyMap<string, HistoryRecord>): Pick<Rebuilt, "plan" | "usage" | "costUsd"> {
  const plan = last.get("plan.updated")?.["plan"] as Json | undefined;
  const used = last.get("usage.updated");
  return {
    ...defined({ plan }),
    ...(used === undefined ? {} : { usage: used["total"] as Usage }),
    ...(used?.["costUsd"] === undefined ? {} : { costUsd: Number(used["costUsd"]) }),
  };
}

function isReadable(items: readonly Item[], wire: string | undefined): boolean {
  return (
    wire === undefined ||
    items.every((item) => item.type !== "compaction" || item.text !== undefined || item.opaque?.wire === wire)
  );
}

/** Puts each result after the calls it belongs to, in the order of the calls, as the live loop does. */
function placeResults(
  items: readonly Item[],
  results: ReadonlyMap<string, ResultItem>,
  asked: ReadonlySet<number>,
): Item[] {
  const present = new Set(items.flatMap((item) => (item.type === "result" ? [item.callId] : [])));
  const placed: Item[] = [];
  let waiting: ResultItem[] = [];
  const isModelItem = (item: Item) =>
    item.type === "call" || item.type === "reasoning" || (item.type === "message" && item.role === "assistant");
  for (const [index, item] of items.entries()) {
    if (waiting.length > 0 && (asked.has(index) || !(isModelItem(item) && sameAnswer(placed, item)))) {
      placed.push(...waiting);
      waiting = [];
    }
    placed.push(item);
    const result = item.type === "call" && !present.has(item.id) ? results.get(item.id) : undefined;
    if (result && item.type === "call") waiting.push({ ...result, name: item.name });
  }
  return [...placed, ...waiting];
}

/** Calls without a result between them came in one answer. */
function sameAnswer(placed: readonly Item[], next: Item): boolean {
  return placed.at(-1)?.type === "call" && next.type === "call";
}

function interruptedResult(call: CallItem, fate: Fate): ResultItem {
  return {
    type: "result",
    callId: call.id,
    kind: call.kind,
    name: call.name,
    ...defined({ namespace: call.namespace }),
    content: [text(fates[fate])],
    ok: false,
  };
}

/** The history, with its size in tokens and its cost so far. */
export interface History {
  readonly items: readonly Item[];
  readonly usage: Usage;
  readonly costUsd: number;
  /** The ids of all calls so far, including those of a history that was shortened. */
  readonly callIds: ReadonlySet<string>;
  add(item: Item): void;
  /** After a compaction: a new, shorter history. */
  replace(items: readonly Item[]): void;
  /** Records what an answer used. Its items are expected to be added next. */
  book(answer: Answer): void;
  /** Records what was used outside the answers. */
  spend(usage: Usage): void;
  contextTokens(): number;
}

export interface Earlier {
  readonly items: readonly Item[];
  readonly callIds?: readonly string[];
  readonly usage?: Usage;
  readonly costUsd?: number;
}

export function createHistory(earlier: Earlier, price: Price | undefined): History {
  let history = [...earlier.items];
  let usage = earlier.usage ?? noUsage;
  let costUsd = earlier.costUsd ?? 0;
  const callIds = new Set(earlier.callIds);
  for (const item of earlier.items) if (item.type === "call") callIds.add(item.id);
  const spend = (used: Usage) => {
    usage = addUsage(usage, used);
    if (price) costUsd += costOf(used, price);
  };
  const tokens = createTokenCount();
  return {
    get items() {
      return history;
    },
    get usage() {
      return usage;
    },
    get costUsd() {
      return costUsd;
    },
    callIds,
    add(item) {
      history.push(item);
      if (item.type === "call") callIds.add(item.id);
    },
    spend,
    replace(next) {
      history = [...next];
      tokens.reset();
    },
    book(answer) {
      if (answer.usage === undefined) return;
      spend(answer.usage);
      tokens.counted(answer.usage, history.length + answer.items.length);
    },
    contextTokens: () => tokens.total(history),
  };
}
