/**
 * One journal per conversation, in the form of our own sessions, so that `show`, `export` and the page
 * read both. A request repeats the whole history, but only what is new in it is written. A sub-agent
 * has its own journal, which names its parent.
 */
import { existsSync } from "node:fs";
import { crc32 } from "node:zlib";
import { isObject } from "../base/json.ts";
import type { Item, ModelRequest } from "../spec/model.ts";
import {
  createSessionId,
  type Journal,
  type JournalRecord,
  openJournal,
  readJournal,
  sessionPath,
} from "../store/index.ts";
import type { Answer, Usage } from "../spec/model.ts";
import type { ClientInfo } from "./clients.ts";
import type { StateStore } from "./state.ts";

export interface GatewayJournal {
  /** Writes what is new in the request. The returned value writes the answer. */
  begin(who: ClientInfo, request: ModelRequest, about: RequestFacts): JournalEntry;
  close(): void;
}

export interface RequestFacts {
  readonly wire: string;
  readonly target: string;
}

export interface JournalEntry {
  /** The session's id, for `callgate show`. */
  readonly id: string;
  note(record: JournalRecord): void;
  /** To be called once, whatever comes of the request: until then the journal is kept open. */
  end(answer: Pick<Answer, "items" | "usage" | "outcome" | "error">, costUsd: number): void;
}

export interface GatewayJournalOptions {
  readonly stateDir: string;
  /** Stores which conversation has which journal, so that it continues after a restart. */
  readonly state: StateStore;
  readonly now?: () => number;
}

interface Open {
  readonly id: string;
  readonly journal: Journal;
  /** Checksums of the items of the last request, in order. Undefined before the first one since the start. */
  asked?: readonly number[];
  /** The last request was answered. Its answer is written, and will come back with the next request. */
  isAnswered: boolean;
  /** Checksums of everything that is written. */
  readonly ever: Set<number>;
  readonly calls: Map<string, { readonly name: string; readonly at: number }>;
  total: Usage;
  /** Requests that are being answered. */
  asking: number;
}

/** Journals that nobody is writing to are closed beyond this number, the one that was used first before the others. */
const maxOpen = 64;

export function createGatewayJournal(options: GatewayJournalOptions): GatewayJournal {
  const { stateDir, state, now = Date.now } = options;
  const open = new Map<string, Open>();

  const find = (who: ClientInfo, request: ModelRequest, about: RequestFacts): Open => {
    const main = state.get(`journal ${who.conversation}`);
    const isMain = typeof main !== "string" || main === who.branch;
    if (typeof main !== "string") state.put(`journal ${who.conversation}`, who.branch);
    const key = `${who.conversation} ${who.branch}`;
    const known = open.get(key);
    if (known !== undefined) {
      open.delete(key);
      open.set(key, known);
      return known;
    }
    const kept = state.get(`session ${key}`);
    const id = typeof kept === "string" ? kept : createSessionId(new Date(now()));
    if (typeof kept !== "string") state.put(`session ${key}`, id);
    const parent = isMain ? undefined : state.get(`session ${who.conversation} ${String(main)}`);
    const opened: Open = {
      id,
      journal: openJournal(sessionPath(stateDir, id), now),
      isAnswered: false,
      ever: typeof kept === "string" ? readChecksums(sessionPath(stateDir, id)) : new Set(),
      calls: new Map(),
      total: { input: 0, output: 0 },
      asking: 0,
    };
    opened.journal.append({
      type: "session.started",
      session_id: id,
      cwd: "",
      model: request.model,
      wire: about.wire,
      client: who.client,
      ...(typeof kept === "string" ? { resumed: true } : {}),
      ...(typeof parent === "string" ? { parent } : {}),
    });
    open.set(key, opened);
    return opened;
  };
  const closeUnused = () => {
    for (const [oldest, { journal, asking }] of open) {
      if (open.size <= maxOpen) break;
      if (asking > 0) continue;
      journal.close();
      open.delete(oldest);
    }
  };

  return {
    begin(who, request, about) {
      const to = find(who, request, about);
      to.asking++;
      closeUnused();
      to.journal.append(...recordsOf(to, newItems(to, request.input), now()), {
        type: "request.sent",
        turn: 0,
        request: 0,
        items: request.input.length,
        target: about.target,
      });
      return {
        id: to.id,
        note: (record) => to.journal.append(record),
        end(answer, costUsd) {
          const { items, usage, outcome, error } = answer;
          const records = [...recordsOf(to, items, now())];
          to.isAnswered = outcome === "ok" || outcome === "incomplete";
          if (outcome !== "ok")
            records.push({ type: "error", message: error?.message ?? `the answer ended as ${outcome}` });
          if (usage !== undefined) {
            to.total = { input: to.total.input + usage.input, output: to.total.output + usage.output };
            records.push({ type: "usage.updated", usage, total: to.total, contextTokens: usage.input, costUsd });
          }
          to.asking--;
          to.journal.append(...records);
        },
      };
    },
    close() {
      for (const { journal } of open.values()) journal.close();
      open.clear();
    },
  };
}

/** The items of a request that are not written yet. A client repeats its whole history, including the last answer. */
function newItems(to: Open, input: readonly Item[]): readonly Item[] {
  // Thoughts come back changed, or not at all.
  const said = input.filter((item) => item.type !== "reasoning");
  const sums = said.map(checksum);
  const { asked, isAnswered } = to;
  to.asked = sums;
  to.isAnswered = false;
  const isGoingOn = asked !== undefined && asked.every((sum, index) => sums[index] === sum);
  if (isGoingOn) {
    const added = said.slice(asked.length);
    const end = isAnswered ? added.findIndex((item) => !isAnswerItem(item)) : 0;
    return end < 0 ? [] : added.slice(end);
  }
  if (asked !== undefined)
    to.journal.append({
      type: "warning",
      message: "the client rewrote its history here (compaction or rewind): a new branch begins",
    });
  return said.filter((_item, index) => !to.ever.has(sums[index] ?? 0));
}

function isAnswerItem(item: Item): boolean {
  return item.type === "call" || (item.type === "message" && item.role === "assistant");
}

/** Of a journal that was written before a restart. */
function readChecksums(path: string): Set<number> {
  const sums = new Set<number>();
  for (const record of existsSync(path) ? readJournal(path).records : []) {
    const item = record["item"];
    const call = record["call"];
    // Records are what `recordsOf` below made.
    if (record.type === "item.added" && isObject(item)) sums.add(checksum(item as unknown as Item));
    if (record.type === "call.ended" && isObject(call)) sums.add(resultSum(String(call["id"]), call["content"]));
  }
  return sums;
}

function recordsOf(to: Open, items: readonly Item[], now: number): readonly JournalRecord[] {
  return items.map((item) => {
    to.ever.add(checksum(item));
    if (item.type === "call") to.calls.set(item.id, { name: item.name, at: now });
    return item.type === "result" ? endedRecord(item, to.calls.get(item.callId), now) : { type: "item.added", item };
  });
}

/** What the client's own tool answered, in the form in which our sessions record an ended call. */
function endedRecord(
  item: Extract<Item, { type: "result" }>,
  call: { readonly name: string; readonly at: number } | undefined,
  at: number,
): JournalRecord {
  const name = item.name ?? call?.name ?? "unknown";
  const { callId: id, kind, ok, content } = item;
  const askedAt = call?.at ?? at;
  return {
    type: "call.ended",
    call: { id, name, tool: name, kind, askedAt, ok, content, endedAt: at, durationMs: at - askedAt },
  };
}

function resultSum(callId: string, content: unknown): number {
  return crc32(JSON.stringify([callId, content]));
}

/** Ids and sealed state change on the way through a client; what was said does not. */
function checksum(item: Item): number {
  switch (item.type) {
    case "message": {
      const [first] = item.content;
      // Most messages are one text, which may be long.
      if (first?.type === "text" && item.content.length === 1) return crc32(first.text, crc32(`${item.role} `));
      return crc32(JSON.stringify([item.role, item.content]));
    }
    case "call":
      return crc32(JSON.stringify([item.id, item.name, item.arguments]));
    case "result":
      return resultSum(item.callId, item.content);
    case "reasoning":
      return crc32(JSON.stringify([item.text, item.summary]));
    default:
      return crc32(JSON.stringify(item));
  }
}
