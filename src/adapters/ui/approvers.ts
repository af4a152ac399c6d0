/**
 * Two ways to answer on a web page: later, when the messages come back, or at a second address while the
 * stream stays open.
 */
import type { ApprovalAnswer, Approver } from "../../spec/stages.ts";

/** An approver that puts every question off: the turn ends as waiting, and continues when the answer arrives. */
export const answerLater: Approver = { ask: async () => "later" };

/** An approver whose questions stay open until `answer` is called, by the web page for example. */
export interface OpenApprover extends Approver {
  /** Answers a question by its id, which is the hash that was shown. False if no question with that id waits. */
  answer(approvalId: string, answer: ApprovalAnswer): boolean;
}

/** Creates an approver that holds the call and the stream until the route for answers calls `answer`. */
export function createOpenApprover(): OpenApprover {
  const waiting = new Map<string, (answer: ApprovalAnswer) => void>();
  return {
    ask({ hash }, signal) {
      return new Promise((resolve) => {
        const stop = () => {
          waiting.delete(hash);
          resolve(undefined);
        };
        if (signal.aborted) return stop();
        signal.addEventListener("abort", stop, { once: true });
        waiting.set(hash, (answer) => {
          signal.removeEventListener("abort", stop);
          waiting.delete(hash);
          resolve(answer);
        });
      });
    },
    answer(approvalId, answer) {
      const resolve = waiting.get(approvalId);
      resolve?.(answer);
      return resolve !== undefined;
    },
  };
}
