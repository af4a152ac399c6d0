/** What a person answered, in words. */
import type { ApprovalAnswer } from "../../spec/stages.ts";

const words: Readonly<Record<ApprovalAnswer["answer"], string>> = {
  once: "you said yes, once",
  session: "you said yes, for this session",
  always: "you said yes, always",
  direct: "you said: run it directly",
  no: "you said no",
  stop: "you said stop",
};

export function describeAnswer(answer: ApprovalAnswer | undefined): string {
  return answer === undefined ? "nobody to ask" : words[answer.answer];
}
