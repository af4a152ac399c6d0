/** What a person answered and what the sandbox refused, in words. */
import type { Denial } from "../../spec/access.ts";
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

/** The program's own words seldom say that it was the sandbox: to it, a disk is read-only or a host is not there. */
export function describeDenied({ reason, inferred }: Denial): string {
  return `${inferred ? "probably refused" : "refused"} by the sandbox: ${reason}`;
}
