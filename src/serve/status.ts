/** The status of a session while it runs: what lists show, and the questions that cannot wait for another process. */
import type { JsonObject } from "../base/json.ts";
import type { SessionEvent } from "../session/index.ts";
import { findOpenTurn } from "../session/open-turn.ts";
import { Waiting } from "../spec/call.ts";
import type { ApprovalAnswer, ApprovalRequest, Approver } from "../spec/stages.ts";
import type { StoredRecord } from "../store/journal.ts";
import type { StoredSession, WaitingQuestion } from "../store/session-store.ts";

export interface LiveQuestions {
  readonly approver: Approver;
  /** Called when a question begins to wait, because its answer may already be in the mailbox. */
  onWaiting: () => void;
  /** False if no question here waits for this answer. */
  answer(given: GivenApproval): boolean;
  /**
   * The process ends. What a held run wrote is dropped, and the process that continues the turn runs it
   * again and asks again.
   */
  giveUp(): void;
}

interface LiveQuestion {
  readonly hash: string;
  resolve(answer: ApprovalAnswer | undefined): void;
  giveUp(): void;
}

/** Most questions wait as records, for any process. One about a held run has to be answered while its process lives. */
export function createLiveQuestions(): LiveQuestions {
  const waiting = new Map<string, LiveQuestion>();
  let isOver = false;
  const live: LiveQuestions = {
    onWaiting() {},
    approver: {
      async ask(request, signal) {
        if (request.effects === undefined) return "later";
        const { id } = request.call;
        return new Promise((resolve, reject) => {
          const end = () => resolve(undefined);
          const done = () => {
            signal.removeEventListener("abort", end);
            waiting.delete(id);
          };
          signal.addEventListener("abort", end, { once: true });
          waiting.set(id, {
            hash: request.hash,
            resolve(answer) {
              done();
              resolve(answer);
            },
            giveUp() {
              done();
              // A run without a network leaves nothing behind and may be repeated. One with a network may have sent
              // something, so it must not run twice.
              if (request.grant.network === "off") reject(new Waiting(`The call ${id} is run again later.`));
              else resolve(undefined);
            },
          });
          if (isOver) waiting.get(id)?.giveUp();
          else live.onWaiting();
        });
      },
    },
    giveUp() {
      isOver = true;
      for (const question of waiting.values()) question.giveUp();
    },
    answer({ callId, hash, answer }) {
      const question = waiting.get(callId);
      if (question?.hash !== hash) return false;
      question.resolve(answer);
      return true;
    },
  };
  return live;
}

/**
 * The questions that wait for an answer, whichever process asked them. The records say so: a process that was killed
 * right after it had asked may not have noted it anywhere else.
 */
export function findQuestions(records: readonly StoredRecord[]): readonly WaitingQuestion[] {
  return [...(findOpenTurn(records)?.questions ?? [])].flatMap(([callId, hash]) => {
    const asked = records.findLast((record) => record.type === "approval.asked" && record["id"] === callId);
    if (asked === undefined) return [];
    const { call, reason } = asked["request"] as unknown as ApprovalRequest; // written by ourselves
    return [{ callId, tool: call.tool, reason, hash, at: asked.at, n: asked.n }];
  });
}

export interface GivenApproval {
  readonly callId: string;
  readonly hash: string;
  readonly answer: ApprovalAnswer;
}

export function readApproval({ callId, hash, answer }: JsonObject): GivenApproval {
  // It was checked when it was posted.
  return { callId: String(callId), hash: String(hash), answer: answer as unknown as ApprovalAnswer };
}

/** Derives the status of the session from its events. */
export function createStatus(stored: StoredSession, isNew: boolean, nextRecord: () => number) {
  const questions = new Map<string, WaitingQuestion>(stored.questions.map((one) => [one.callId, one]));
  let { title, usage, model, cwd } = stored;
  return {
    heard(event: SessionEvent) {
      if (event.type === "session.started") ({ model, cwd } = event);
      if (event.type === "turn.started" && isNew && title === "") title = titleOf(event.prompt);
      if (event.type === "usage.updated") {
        const { total, costUsd } = event;
        usage = { input: total.input, output: total.output, ...(costUsd === undefined ? {} : { costUsd }) };
      }
      if (event.type === "approval.asked") {
        const { call, reason, hash } = event.request;
        // The session records an event before it reports it, so its record is the last one written.
        questions.set(event.id, {
          callId: event.id,
          tool: call.tool,
          reason,
          hash,
          at: Date.now(),
          n: nextRecord() - 1,
        });
      }
      if (event.type === "approval.answered") questions.delete(event.id);
      if (event.type === "call.ended") questions.delete(event.call.id);
      if (event.type === "turn.ended") questions.clear();
    },
    change: () => ({
      title,
      model,
      cwd,
      questions: [...questions.values()],
      ...(usage === undefined ? {} : { usage }),
    }),
  };
}

function titleOf(prompt: string): string {
  const line = prompt.trim().split("\n")[0] ?? "";
  return line.length > 80 ? `${line.slice(0, 79)}…` : line;
}

/** These events are sent as they happen and not recorded one by one. */
export function isLive({ type }: SessionEvent): boolean {
  return (
    type === "item.started" ||
    type === "item.delta" ||
    type === "item.done" ||
    type === "exec.output" ||
    type === "call.progress"
  );
}
