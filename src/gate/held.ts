/**
 * Held runs: a command that would need a question runs at once, but its writes are held back. What it did is then
 * judged here, by rules, by what was agreed to earlier, or by a person. If nobody answers, its writes are dropped.
 */
import { callHash, hashOf, memoryKeys, putQuestion, remember, wordsOf } from "./agree.ts";
import { defined } from "../base/json.ts";
import { CallError } from "../base/error.ts";
import type { Grant } from "../spec/access.ts";
import type { Checked, Ran, Ruling } from "../spec/call.ts";
import type { Choice, Effect, Effects } from "../spec/effects.ts";
import type { ApprovalAnswer, ApprovalRequest, Judgement } from "../spec/stages.ts";
import { decideEffects, suggestEffectRule, type EffectScene } from "./effect-rules.ts";
import { needsNetwork as reachesOthers, talksToNetwork } from "./command/danger.ts";
import { understand } from "./command/understand.ts";
import { asksNobody } from "./modes.ts";
import type { GateState } from "./options.ts";
import type { Policy } from "./policy.ts";
import { trackedPaths } from "./git-repository.ts";
import { toGrant } from "./grant.ts";
import { runBefore } from "./hooks.ts";
import { isHarmlessDevice, isInsideAny, resolveReal } from "./paths.ts";
import { pathWords } from "./reach.ts";
import type { Rule } from "./rules.ts";
import { describeRule, offerAlways, type Suggestion } from "./suggest.ts";
import { rulingsOn, type Verdict } from "./verdict.ts";

/**
 * The grant under which a call runs held instead of being asked about: no wider than what needs no
 * question. Undefined if it must be asked about first, because what leaves the sandbox or the machine
 * cannot be held back.
 */
export async function heldGrant(state: GateState, checked: Checked): Promise<Grant | undefined> {
  const { options, policy, memory } = state;
  if (options.held !== "asked" || (options.approver === undefined && !mayBeKept(policy))) return undefined;
  if (!isHoldable(checked) || needsNetwork(checked, policy) || reachesElsewhere(checked, policy)) return undefined;
  const asked = toGrant(checked.access, policy, true);
  if (memoryKeys(checked, asked, policy).every((key) => memory.has(key))) return undefined;
  const grant: Grant = { ...toGrant(checked.access, policy, false), writes: "held" };
  return (await whyNotHeld(state, checked, grant)) === undefined ? grant : undefined;
}

/** If nobody can be asked, only a rule can keep what a command did. Without such a rule it need not run. */
function mayBeKept({ rules }: Policy): boolean {
  return rules.effects.some(({ decision }) => decision === "allow");
}

/** In mode 'never', a command that is refused only for its danger may run held if a rule can keep what it does. */
export async function heldUnasked(state: GateState, checked: Checked, verdict: Verdict): Promise<Grant | undefined> {
  const { policy } = state;
  if (policy.settings.approval !== "never" || verdict.rule !== undefined || !mayBeKept(policy)) return undefined;
  return heldGrant(state, checked);
}

/** With `undo = "all"` every confined command can be undone: it is held too, and kept at once. */
export async function undoableGrant(state: GateState, checked: Checked, grant: Grant): Promise<Grant> {
  if (state.options.undo !== "all" || !isHoldable(checked)) return grant;
  const undoable: Grant = { ...grant, writes: "undoable" };
  return (await whyNotHeld(state, checked, undoable)) === undefined ? undoable : grant;
}

/** One command that ends with its call, and reaches no further than what the sandbox lets it write. */
function isHoldable({ access, markerless, tool }: Checked): boolean {
  // A held run is decided before the next call begins, but calls of a parallel tool do not wait for that.
  if (tool.parallel === true) return false;
  const [command, ...others] = access.commands ?? [];
  if (command === undefined || others.length > 0 || markerless === true) return false;
  if (command.stays === true || command.typed !== undefined) return false;
  return access.escalation === undefined && (access.network ?? []).length === 0 && (access.servers ?? []).length === 0;
}

/** The command needs the network: without one it would only fail, and with one nothing can hold it back. */
function needsNetwork({ access }: Checked, policy: Policy): boolean {
  return (access.commands ?? []).some((command) =>
    understand(command, policy).steps.some(
      ({ reason, argv, risk }) => reason.endsWith(talksToNetwork) || (risk === "dangerous" && reachesOthers(argv)),
    ),
  );
}

/**
 * A dangerous command aimed outside the writable folders leaves nothing to show afterwards, so it is
 * asked about first.
 */
function reachesElsewhere({ access }: Checked, policy: Policy): boolean {
  const roots = [policy.workspace, ...policy.writable];
  return (access.commands ?? []).some((command) =>
    understand(command, policy).steps.some(
      (step) =>
        step.risk === "dangerous" &&
        step.found.cwds.some((cwd) =>
          pathWords(step).some((path) => {
            const real = resolveReal(path, cwd);
            return real === undefined || (!isHarmlessDevice(path) && !isInsideAny(real, roots));
          }),
        ),
    ),
  );
}

async function whyNotHeld({ options, policy }: GateState, checked: Checked, grant: Grant): Promise<string | undefined> {
  if (!grant.confined || grant.write.length === 0) return "nothing is written in a sandbox here";
  if (options.whyNotHeld === undefined) return "nobody can say whether it can be held";
  const why = await options.whyNotHeld(grant, checked.access.commands?.[0]?.cwd ?? policy.workspace);
  if (why !== undefined)
    options.emit?.({ type: "call.log", id: checked.id, level: "info", message: `it is not held, because ${why}` });
  return why;
}

/** Decides what becomes of the effects of a held call. */
export async function judgeEffects(
  state: GateState,
  ran: Ran,
  effects: Effects,
  signal: AbortSignal,
): Promise<Judgement> {
  const judgement = await decide(state, ran, effects, signal);
  await state.options.record?.({
    call: ran.id,
    tool: ran.tool.name,
    hash: effectsHash(effects),
    ruling: judgement.ruling,
    outcome: judgement.choice === "none" ? "dropped" : "kept",
    grant: ran.grant,
  });
  return judgement;
}

/** What a yes is bound to: every path, what happened to it, and the run in which it was seen. */
function effectsHash({ run, list }: Effects): string {
  return hashOf({ run, list });
}

async function decide(state: GateState, ran: Ran, effects: Effects, signal: AbortSignal): Promise<Judgement> {
  const { policy, options } = state;
  const { list } = effects;
  const ruling = rulingsOn(ran.ruling.commands);
  const drop: typeof dropped = (why, code, words, stop) =>
    dropped(why, code, effects.direct === undefined ? words : `${words} It failed, because ${effects.direct}.`, stop);
  const isUndoable = ran.grant.writes === "undoable";
  const again = effects.direct === undefined ? undefined : directGrant(state, ran);
  if (isUndoable && again !== undefined && again.network === "off") {
    // The command needed no question. It failed only because its writes were held back so that it could be undone.
    const direct = ruling("policy", "allow", `run again directly, because ${effects.direct}; it cannot be taken back`);
    return { choice: "none", ruling: direct, direct: { grant: again, ruling: direct } };
  }
  if (list.length === 0 && (again === undefined || !canAsk(state)))
    return { choice: "none", ruling: ruling("policy", "allow", "it changed nothing") };
  const call = { id: ran.id, tool: ran.tool.name, input: ran.input, effects: list };
  const hooked = await runBefore(options.hooks ?? [], call, signal);
  if (hooked !== undefined && "block" in hooked)
    return drop(ruling("hook", "deny", hooked.block), "denied", `A hook did not let it be kept: ${hooked.block}`);
  const scene = { workspace: policy.workspace, protect: policy.protect, isTracked: trackedPaths(policy.workspace) };
  const said = decideEffects(list, policy.rules.effects, scene);
  if (said?.decision === "deny")
    return drop(ruling("rule", "deny", said.reason, said.rule), "denied", `Nothing of it was kept: ${said.reason}`);
  if (said?.decision === "allow") return { choice: "all", ruling: ruling("rule", "allow", said.reason, said.rule) };
  if (isUndoable && said === undefined)
    return { choice: "all", ruling: ruling("policy", "allow", "kept at once, and can be taken back") };
  const suggestion = suggestRule(list, scene);
  const key = suggestion === undefined ? undefined : `effects ${describeRule(suggestion.rule)}`;
  if (said === undefined && key !== undefined && state.memory.has(key))
    return { choice: "all", ruling: ruling("memory", "allow", "effects like these were kept earlier in this session") };
  const reason = said?.reason ?? ran.ruling.reason;
  if (asksNobody(policy.settings.approval))
    return drop(ruling("policy", "deny", reason), "denied", "No rule keeps what it did, and nobody is asked.");
  const seen = again === undefined ? undefined : callHash(ran, again, policy);
  const answer = await ask(state, ran, effects, reason, suggestion, signal);
  if (answer === undefined)
    return drop(ruling("policy", "ask", reason), "needs_approval", `Nobody was there to keep what it did: ${reason}`);
  if (answer.answer === "no" || answer.answer === "stop") return refused(ruling, answer, drop);
  if (answer.answer === "direct") {
    if (again === undefined)
      return drop(ruling("person", "deny", "it was not offered to run directly"), "rejected", "");
    if (callHash(ran, again, state.policy) !== seen)
      return drop(ruling("policy", "deny", "it changed while it was being approved"), "rejected", "Call it again.");
    const direct = ruling("person", "allow", `run again directly, because ${effects.direct}`);
    return { choice: "none", ruling: direct, direct: { grant: again, ruling: direct } };
  }
  if (answer.answer !== "once")
    await remember(state, ran.id, {
      answer: answer.answer,
      rule: suggestion?.rule,
      keys: key === undefined ? [] : [key],
    });
  const choice: Choice = answer.keep === undefined ? "all" : { paths: answer.keep };
  return {
    choice,
    ruling: ruling("person", "allow", `kept (${answer.keep === undefined ? answer.answer : "in part"})`),
  };
}

/** The grant that a yes before the run would have given. */
function directGrant({ policy }: GateState, ran: Ran): Grant {
  return toGrant(ran.access, policy, ran.grant.writes === "held");
}

function canAsk({ options, policy }: GateState): boolean {
  return options.approver !== undefined && !asksNobody(policy.settings.approval);
}

function dropped(
  ruling: Ruling,
  code: "denied" | "needs_approval" | "rejected",
  words: string,
  stop = false,
): Judgement {
  const error = new CallError(code, `The command ran, but what it changed was not kept. ${words}`, {
    hint: "The workspace is as it was before.",
    ...(stop ? { data: { stopTurn: true } } : {}),
  });
  return { choice: "none", ruling, error };
}

function refused(
  ruling: ReturnType<typeof rulingsOn>,
  { answer, message }: Extract<ApprovalAnswer, { answer: "no" | "stop" }>,
  drop: typeof dropped,
): Judgement {
  const said = wordsOf(defined({ message }));
  return drop(
    ruling("person", "deny", `the person said ${answer}${said}`),
    "rejected",
    `${answer === "stop" ? "The user stopped the turn" : "The user said no"}${said || "."}`,
    answer === "stop",
  );
}

async function ask(
  state: GateState,
  ran: Ran,
  effects: Effects,
  reason: string,
  suggestion: Suggestion | undefined,
  signal: AbortSignal,
): Promise<ApprovalAnswer | undefined> {
  const request: ApprovalRequest = {
    call: { id: ran.id, tool: ran.tool.name, input: ran.input },
    reason,
    access: ran.access,
    grant: ran.grant,
    commands: ran.ruling.commands ?? [],
    hash: effectsHash(effects),
    effects,
    ...defined({ always: offerAlways(state.options.always, suggestion), diff: effects.diff }),
  };
  // The run is over, so the call cannot wait for a later answer.
  return putQuestion(state, request, signal, { canWait: false });
}

/** The rule that would keep such effects from now on, with what else it would keep. */
function suggestRule(list: readonly Effect[], scene: EffectScene): Suggestion | undefined {
  const rule = suggestEffectRule(list, scene);
  if (rule === undefined) return undefined;
  const folders = (rule.effects?.only ?? []).join(", ");
  return { rule, alsoAllows: `keeping whatever any command writes under ${folders} only` };
}

/** For `policy check --effects` and `policy replay`: what the rules alone would decide, without a person. */
export function checkEffects(
  list: readonly Effect[],
  rules: readonly Rule[],
  scene: EffectScene,
  writes: Grant["writes"] = "held",
): Ruling {
  if (list.length === 0) return { decision: "allow", by: "policy", reason: "it changed nothing" };
  const said = decideEffects(list, rules, scene);
  if (said === undefined && writes === "undoable")
    return { decision: "allow", by: "policy", reason: "kept at once, and can be taken back" };
  if (said === undefined) return { decision: "ask", by: "policy", reason: "no rule speaks of what it did" };
  const { decision, reason, rule } = said;
  return { decision, reason, by: rule === undefined ? "policy" : "rule", ...(rule === undefined ? {} : { rule }) };
}
