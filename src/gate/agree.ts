/**
 * From a question to a person's answer. The answer is bound to the exact call it was given for, and is
 * remembered for as long as the person said.
 */
import { checkOptions, optionsShape } from "../base/shape.ts";
import { CallError } from "../base/error.ts";
import type { Grant } from "../spec/access.ts";
import { Refusal, Waiting, type Checked, type Ruling } from "../spec/call.ts";
import type { ApprovalAnswer, ApprovalRequest, Rehearse } from "../spec/stages.ts";
import { callHash, memoryKeys } from "./approval.ts";
import { rememberPaths } from "./command/look.ts";
import { toBaseGrant } from "./grant.ts";
import { isSecretName } from "./paths.ts";
import type { GateState } from "./state.ts";
import { describeRule, type Suggestion } from "./suggest.ts";

export interface Question {
  readonly reason: string;
  readonly commands: readonly (readonly string[])[];
  readonly grant: Grant;
  readonly suggestion: Suggestion | undefined;
  /** Tries the call out, so that what it would change can be shown. */
  readonly rehearse: Rehearse | undefined;
  /** The hash of a question that was answered with yes before this call came. */
  readonly approved: string | undefined;
}

/** Who agreed and why, or the refusal if the call ends here. */
export type Settled =
  | { readonly ruling: Ruling; /** Of what the person said yes to. */ readonly hash?: string }
  | { readonly refusal: Refusal };

const maxMessage = 4_000;

export async function settle(
  state: GateState,
  checked: Checked,
  question: Question,
  signal: AbortSignal,
): Promise<Settled> {
  const rule = (by: Ruling["by"], decision: Ruling["decision"], reason: string): Ruling => ({
    decision,
    reason,
    by,
    commands: question.commands,
  });
  const policy = rememberPaths(state.policy);
  const keys = memoryKeys(checked, question.grant, policy);
  const known = remembered(state, question, keys);
  if (known !== undefined) return { ruling: known };
  const hash = callHash(checked, question.grant, policy);
  if (question.approved === hash)
    return { ruling: rule("person", "allow", `approved before it was run; asked because: ${question.reason}`) };
  const answer = await ask(state, checked, question, hash, signal);
  if (answer === undefined) return { refusal: nobody(rule("policy", "ask", question.reason), hash) };
  // This answer is offered only if a run was held.
  if (answer.answer === "direct") return { refusal: nobody(rule("policy", "ask", question.reason), hash) };
  if (answer.answer === "no" || answer.answer === "stop") {
    const said = answer.message === undefined ? "" : `: ${answer.message.slice(0, maxMessage)}`;
    return { refusal: rejection(rule("person", "deny", `the person said ${answer.answer}${said}`), answer) };
  }
  // The yes is bound to what was shown: if a link was swapped while the person was reading, the yes is void.
  if (callHash(checked, question.grant, state.policy) !== hash) return { refusal: changed(question) };
  await remember(state, checked.id, answer.answer, keys, question.suggestion);
  return { ruling: rule("person", "allow", `approved (${answer.answer}); asked because: ${question.reason}`), hash };
}

/** The refusal for a call whose files changed after somebody agreed to it. */
export function changed({ commands }: Question): Refusal {
  return new Refusal(
    { decision: "deny", by: "policy", reason: "it changed while it was being approved", commands },
    "stale",
    "What the call touches changed while it was being approved.",
    { hint: "Call it again." },
  );
}

/** The ruling, if a person said yes to all of this earlier in the conversation. */
export function remembered({ memory }: GateState, { commands }: Question, keys: readonly string[]): Ruling | undefined {
  if (!keys.every((key) => memory.has(key))) return undefined;
  return { decision: "allow", reason: "agreed to earlier in this session", by: "memory", commands };
}

function nobody(ruling: Ruling, hash: string): Refusal {
  return new Refusal(ruling, "needs_approval", `Nobody is here to approve it: ${ruling.reason}`, {
    hint: "Do it in a way that needs no approval, or tell the user what you need.",
    data: { hash },
  });
}

function rejection(
  ruling: Ruling,
  { answer, message }: { readonly answer: "no" | "stop"; readonly message?: string },
): Refusal {
  const said = message === undefined || message === "" ? "." : `: ${message.slice(0, maxMessage)}`;
  return answer === "stop"
    ? new Refusal(ruling, "rejected", `The user stopped the turn${said}`, { data: { stopTurn: true } })
    : new Refusal(ruling, "rejected", `The user said no${said}`, {
        hint: "Do not try the same again; ask what to do instead.",
      });
}

async function ask(
  state: GateState,
  checked: Checked,
  question: Question,
  hash: string,
  signal: AbortSignal,
): Promise<ApprovalAnswer | undefined> {
  const { approver, emit } = state.options;
  if (approver === undefined) return undefined;
  const request = await toRequest(state, checked, question, hash);
  emit?.({ type: "approval.asked", id: checked.id, request });
  const given = checkAnswer(await approver.ask(request, signal));
  // A call made by another call cannot be put aside, because the other call is running and waits for it.
  if (given === "later" && checked.parent === undefined)
    throw new Waiting(`The call ${checked.id} waits for an answer.`);
  const answer = given === "later" ? undefined : given;
  emit?.({ type: "approval.answered", id: checked.id, answer });
  if (signal.aborted) throw new CallError("aborted", "The turn was stopped while it waited for an approval.");
  return answer;
}

const answerShape = optionsShape<{ readonly answer: string; readonly keep: unknown; readonly message: unknown }>(
  {
    answer: { oneOf: ["once", "session", "always", "no", "stop", "direct"] satisfies ApprovalAnswer["answer"][] },
    keep: "strings",
    message: "string",
  },
  "answer",
);

/** Something that is not an answer is not a yes. The approver's author has to mend it. */
export function checkAnswer(given: ApprovalAnswer | "later" | undefined): ApprovalAnswer | "later" | undefined {
  if (given !== undefined && given !== "later") checkOptions("the approver's answer", given, answerShape);
  return given;
}

/**
 * The question as it is put to a person. The hash is taken before the diff is made, so that it covers
 * what is shown.
 */
export async function toRequest(
  state: GateState,
  checked: Checked,
  question: Question,
  hash: string,
): Promise<ApprovalRequest> {
  const diff = await question.rehearse?.(toBaseGrant(state.policy), isSecretName);
  const always = toAlways(state, question.suggestion);
  return {
    call: { id: checked.id, tool: checked.tool.name, input: checked.input },
    reason: question.reason,
    access: checked.access,
    grant: question.grant,
    commands: question.commands,
    hash,
    ...(always === undefined ? {} : { always }),
    ...(diff === undefined ? {} : { diff }),
  };
}

function toAlways(state: GateState, suggestion: Suggestion | undefined): ApprovalRequest["always"] {
  const { always } = state.options;
  if (always === undefined || suggestion === undefined) return undefined;
  return { rule: describeRule(suggestion.rule), alsoAllows: suggestion.alsoAllows, file: always.file };
}

/** 'always' saves the rule that was shown. Without such a rule it lasts as long as the session. */
async function remember(
  state: GateState,
  id: string,
  answer: "once" | "session" | "always",
  keys: readonly string[],
  suggestion: Suggestion | undefined,
): Promise<void> {
  if (answer === "once") return;
  const { always, emit } = state.options;
  if (answer === "always" && suggestion !== undefined && always !== undefined) {
    await always.save(suggestion.rule);
    state.book.add(suggestion.rule);
  }
  for (const key of keys) state.memory.add(key);
  emit?.({ type: "approval.remembered", id, keys });
}
