/**
 * Questions that are answered later: which of them wait, which have an answer by now, and what the
 * gate is told when it asks again.
 */
import type { ApprovalAnswer, Approver, CallEvent } from "../spec/stages.ts";
import type { GivenAnswer, OpenTurn } from "./open-turn.ts";

export interface LaterAnswers {
  /** Asks like the given approver, unless there is already an answer for this call and exactly this question. */
  readonly approver: Approver | undefined;
  take(callId: string, hash: string, answer: ApprovalAnswer): "taken" | "changed" | "unknown";
  /** Calls whose question has no answer yet. */
  waiting(): readonly string[];
  /** Whether the journal has this event already: a question that waits is asked again when its call is run again. */
  isTold(event: CallEvent): boolean;
  /** The turn is given up. */
  forget(): void;
}

export function createLaterAnswers(asked: Approver | undefined, open: OpenTurn | undefined): LaterAnswers {
  const questions = new Map(open?.questions);
  const answers = new Map<string, GivenAnswer>(open?.answers);
  const used = new Set<string>();
  const approver: Approver | undefined = asked && {
    async ask(request, signal) {
      const { id } = request.call;
      const given = answers.get(id);
      if (given?.hash === request.hash) {
        used.add(id);
        return given.answer;
      }
      answers.delete(id); // it was for another question, so this one is asked again
      const answer = await asked.ask(request, signal);
      if (answer !== "later") questions.delete(id);
      return answer;
    },
    ...(asked.answerer === undefined ? {} : { answerer: asked.answerer }),
  };
  return {
    approver,
    take(callId, hash, answer) {
      const question = questions.get(callId);
      if (question === undefined) return "unknown";
      if (question !== hash) return "changed";
      questions.delete(callId);
      answers.set(callId, { hash, answer });
      return "taken";
    },
    waiting: () => [...questions.keys()],
    isTold(event) {
      if (event.type === "approval.asked") {
        const { hash } = event.request;
        if (answers.get(event.id)?.hash === hash || questions.get(event.id) === hash) return true;
        // What to keep of a held run can be answered only while the run exists; otherwise it is asked again.
        if (event.request.effects === undefined) questions.set(event.id, hash);
      }
      if (event.type === "approval.answered") {
        questions.delete(event.id);
        return used.delete(event.id);
      }
      if (event.type === "call.ended") questions.delete(event.call.id);
      return false;
    },
    forget() {
      questions.clear();
      answers.clear();
    },
  };
}
