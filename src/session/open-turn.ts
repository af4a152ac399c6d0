/**
 * A turn that was left open, by a kill or by a question: what it had done, and what is left to do.
 * Read from its records.
 */
import { partsToText } from "../base/content.ts";
import { isRefusal } from "../base/error.ts";
import type { Ended } from "../spec/call.ts";
import type { Answer, CallItem, Item, Usage } from "../spec/model.ts";
import type { ApprovalAnswer, ApprovalRequest } from "../spec/stages.ts";
import type { JournalRecord } from "../store/journal.ts";
import { addUsage, noUsage, type Spent } from "./limits.ts";

/** A turn that was cut off before its end. */
export interface OpenTurn {
  readonly turn: number;
  /** What the user said, if the turn was cut off before that joined the history. */
  readonly prompt?: string;
  /** How many items at the end of the history belong to the last answer. */
  readonly answerItems: number;
  /** The last answer breaks off in the journal. It is taken out of the history and asked for again. */
  readonly isBroken: boolean;
  readonly finish?: Answer["finish"];
  /** The calls of the last answer, in their order. */
  readonly calls: readonly CallItem[];
  /** What the turn has spent in earlier processes. */
  readonly spent: Spent;
  readonly refused: number;
  /** The last thing the model said. */
  readonly text: string;
  /** A person answered "stop" to one of the calls. */
  readonly isStopped: boolean;
  /** Calls of earlier answers with their results, for detecting loops. */
  readonly settled: readonly CallItem[];
  /** Questions that were asked and not answered, as a map from call to hash. */
  readonly questions: ReadonlyMap<string, string>;
  /** Answers that came while no process ran the session, each for the question with that hash. */
  readonly answers: ReadonlyMap<string, GivenAnswer>;
}

/** An answer to the question with this hash. */
export interface GivenAnswer {
  readonly hash: string;
  readonly answer: ApprovalAnswer;
}

/** Whether the question is what to keep of a held run that had no access beyond the folders it wrote. */
export function isHeldQuestion({ type, request }: JournalRecord): boolean {
  if (type !== "approval.asked") return false;
  const { effects, grant } = request as ApprovalRequest;
  return effects !== undefined && grant.network === "off";
}

/** Undefined if the last turn has ended, or if there is none. */
export function findOpenTurn(records: readonly JournalRecord[]): OpenTurn | undefined {
  const start = records.findLastIndex(({ type }) => type === "turn.started");
  if (start === -1) return undefined;
  const own = records.slice(start);
  if (own.some(({ type }) => type === "turn.ended")) return undefined;
  const before = records.slice(0, start).findLast(({ type }) => type === "usage.updated");
  return readTurn(own, Number(before?.["costUsd"] ?? 0));
}

function readTurn(records: readonly JournalRecord[], costBefore: number): OpenTurn {
  let prompt: string | undefined;
  let answer: Item[] = [];
  let isWhole = false;
  let finish: Answer["finish"];
  let usage: Usage = noUsage;
  let costUsd = 0;
  let [requests, refused, text, isStopped] = [0, 0, "", false];
  const settled: CallItem[] = [];
  const { begun, questions, answers } = readCalls(records);
  const settle = () => {
    settled.push(...callsOf(answer));
    answer = [];
  };
  // Field types are trusted here: each line matched its checksum, or came from our own table.
  for (const record of records) {
    switch (record.type) {
      case "turn.started":
        prompt = String(record["prompt"]);
        break;
      case "request.sent":
        requests++;
        settle();
        isWhole = false;
        finish = undefined;
        break;
      case "item.added": {
        const item = record["item"] as Item;
        if (item.type === "message" && item.role !== "assistant") {
          prompt = undefined;
          settle();
          break;
        }
        answer.push(item);
        if (item.type === "message") text = partsToText(item.content) || text;
        if (record["finish"] === undefined) break;
        isWhole = true;
        finish = record["finish"] as Answer["finish"];
        break;
      }
      case "history.compacted":
        settle();
        break;
      case "call.started":
      case "approval.asked":
        isWhole = true; // calls run, and are asked about, only after their answer is complete
        break;
      case "call.ended": {
        const call = record["call"] as Ended;
        isWhole = true;
        if (isRefusal(call.code)) refused++;
        if (call.stopsTurn) isStopped = true;
        break;
      }
      case "usage.updated":
        usage = addUsage(usage, record["usage"] as Usage);
        costUsd = Number(record["costUsd"] ?? costBefore) - costBefore;
        break;
      default:
    }
  }
  const isBroken = answer.length > 0 && !isWhole;
  const calls = isBroken ? [] : callsOf(answer);
  return {
    turn: Number(records[0]!["turn"]),
    answerItems: answer.length,
    isBroken,
    calls,
    spent: {
      requests,
      calls: settled.length + calls.filter(({ id }) => begun.has(id)).length,
      usage,
      costUsd,
      ms: runningMs(records),
    },
    refused,
    text,
    isStopped,
    settled,
    questions,
    answers,
    ...(prompt === undefined ? {} : { prompt }),
    ...(isBroken || finish === undefined ? {} : { finish }),
  };
}

/** Which calls have begun, which questions about them are open, and which were answered. */
function readCalls(records: readonly JournalRecord[]) {
  const begun = new Set<string>();
  const running = new Set<string>();
  const questions = new Map<string, string>();
  const answers = new Map<string, GivenAnswer>();
  for (const record of records) {
    const id = String(record["id"]);
    switch (record.type) {
      case "call.started":
        begun.add(id);
        running.add(id);
        break;
      case "call.ended": {
        const call = record["call"] as Ended;
        questions.delete(call.id);
        begun.add(call.id);
        running.delete(call.id);
        break;
      }
      case "approval.asked":
        // The run it was about is gone, so the call runs again and is asked about again.
        if (isHeldQuestion(record)) running.delete(id);
        // A question that came up while a call ran went with that run: the call was cut off, and nobody waits for it.
        else if (!running.has(id)) {
          questions.set(id, (record["request"] as ApprovalRequest).hash);
          answers.delete(id);
        }
        break;
      case "approval.answered": {
        const hash = record["hash"];
        questions.delete(id);
        if (typeof hash === "string") answers.set(id, { hash, answer: record["answer"] as ApprovalAnswer });
        break;
      }
      default:
    }
  }
  return { begun, questions, answers };
}

function callsOf(items: readonly Item[]): readonly CallItem[] {
  return items.filter((item): item is CallItem => item.type === "call");
}

/** The time in which a process ran the turn. The time between leaving it and continuing it is not counted. */
function runningMs(records: readonly JournalRecord[]): number {
  let total = 0;
  let last: number | undefined;
  for (const record of records) {
    const at = record["at"];
    if (typeof at !== "number") return 0;
    const isNewProcess = record.type === "session.started" || record.type === "turn.resumed";
    if (last !== undefined && !isNewProcess && record.type !== "approval.answered") total += Math.max(0, at - last);
    last = at;
  }
  return total;
}
