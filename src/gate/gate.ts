/**
 * The one door that every call of every tool goes through before its handler: hooks, then policy, then
 * a person. `gate/` decides from what a call says it will touch. It knows no tool, no wire and no
 * sandbox, and runs nothing of the call itself. If nobody answers, the answer is no.
 */
import { text } from "../base/content.ts";
import { extend } from "../base/extend.ts";
import { defined, stableStringify } from "../base/json.ts";
import type { Denial, Grant } from "../spec/access.ts";
import { Refusal, Waiting, type Asked, type Checked, type Ended, type Permitted, type Ruling } from "../spec/call.ts";
import type { Asking, Decided, Gate, Rehearse, Rewritten } from "../spec/stages.ts";
import { callHash, changed, memoryKeys, remembered, seekApproval, toRequest, type Question } from "./agree.ts";
import { describeWider, toBaseGrant, toGrant, widenGrant } from "./grant.ts";
import { heldGrant, heldUnasked, judgeEffects, undoableGrant } from "./held.ts";
import { runAfter, runBefore } from "./hooks.ts";
import { rememberPaths } from "./command/look.ts";
import { asksNobody } from "./modes.ts";
import { checkGateOptions, createPolicy, type GateOptions, type GateState } from "./options.ts";
import { decideAccess, decideCommand, type CallToDecide, type CommandVerdict, type Policy } from "./policy.ts";
import { createRuleBook } from "./rules.ts";
import { suggestRule } from "./suggest.ts";
import { byHook, denial, toHeldRuling, toRuling, wasAsked } from "./verdict.ts";

export type { GateOptions, GateRecord, Memory, PolicyOptions } from "./options.ts";
export { createPolicy } from "./options.ts";

/** A gate without an engine: it decides, asks and remembers, and runs nothing. */
export function createGate(options: GateOptions, policy: Policy = createPolicy(options)): Gate {
  checkGateOptions("createGate", options);
  const book = options.book ?? createRuleBook(policy.rules.rules);
  let current = policy;
  const state: GateState = {
    options,
    book,
    memory: options.memory ?? new Set<string>(),
    get policy() {
      if (current.rules !== book.rules) current = { ...current, rules: book.rules };
      return current;
    },
    set policy(next) {
      current = next;
    },
    looked: false,
  };
  return {
    pass: (checked, signal, asking = {}) => pass(state, checked, signal, asking),
    decide: (checked, rehearse) => decide(state, checked, rehearse),
    widen: (permitted, denied, signal) => widen(state, permitted, denied, signal),
    judge: (ran, effects, signal) => judgeEffects(state, ran, effects, signal),
    after: (ended, signal) => after(state, ended, signal),
    baseGrant: () => toBaseGrant(state.policy),
  };
}

/** Judges a command that does nothing, so that what judging needs is loaded and compiled when the first call comes. */
export function warmUpGate(policy: Policy): void {
  decideCommand({ shell: "true" }, policy);
}

/** What one call is judged by. */
type Judging = Pick<GateState, "options" | "policy">;

async function pass(
  state: GateState,
  checked: Checked,
  signal: AbortSignal,
  asking: Asking,
): Promise<Permitted | Rewritten> {
  const rewritten = await rewrite(state, checked, signal);
  if (rewritten !== undefined) return { rewritten };
  const { verdict, policy, grant } = await judge(state, checked);
  const now = { options: state.options, policy };
  if (verdict.decision === "deny") {
    const tried = await heldUnasked(state, checked, verdict);
    if (tried !== undefined) return permit(now, checked, tried, toHeldRuling(verdict));
    return refuse(now, checked, denial(verdict, policy));
  }
  if (verdict.decision === "allow")
    return permit(now, checked, await undoableGrant(state, checked, grant), toRuling(verdict));
  const held = asking.approved === undefined ? await heldGrant(state, checked) : undefined;
  if (held !== undefined) return permit(now, checked, held, toHeldRuling(verdict));
  // A person takes time to answer, so from here on paths are looked at again.
  return agree(state, checked, toQuestion(state, checked, { verdict, policy, grant }, asking), signal);
}

async function decide(state: GateState, checked: Checked, rehearse: Rehearse | undefined): Promise<Decided> {
  const { verdict, policy, grant } = await judge(state, checked);
  const { decision, reason } = verdict;
  const ruling = toRuling(verdict);
  if (decision === "deny") return { decision, reason, ruling, error: denial(verdict, policy) };
  if (decision === "allow") return { decision, reason, ruling };
  const asking = rehearse === undefined ? {} : { rehearse };
  const question = toQuestion(state, checked, { verdict, policy, grant }, asking);
  const agreed = remembered(state, question, memoryKeys(checked, grant, policy));
  if (agreed !== undefined) return { decision: "allow", reason: agreed.reason, ruling: agreed };
  const hash = callHash(checked, grant, policy);
  return { decision, reason, ruling, request: await toRequest(state, checked, question, hash) };
}

interface Judged {
  readonly verdict: CommandVerdict;
  readonly policy: Policy;
  readonly grant: Grant;
}

async function judge(state: GateState, checked: Checked): Promise<Judged> {
  if (checked.access.commands !== undefined) await lookAtConfinement(state);
  const { read, write, commands } = checked.access;
  const policy = (read ?? write ?? commands) === undefined ? state.policy : rememberPaths(state.policy);
  const verdict = decideAccess(toCall(checked), policy);
  const { decision, rule } = verdict;
  return { verdict, policy, grant: toGrant(checked.access, policy, decision === "ask" || rule !== undefined) };
}

function toQuestion(
  { options }: GateState,
  checked: Checked,
  { verdict, policy, grant }: Judged,
  { rehearse, approved }: Asking,
): Question {
  const { reason, commands } = verdict;
  // A rule about commands says nothing about what a running program does with a line typed into it.
  const typed = (checked.access.commands ?? []).some((command) => command.typed !== undefined);
  const canBeKept = options.always !== undefined && !typed;
  const suggestion = canBeKept ? suggestRule(toCall(checked), policy) : undefined;
  return { reason, commands, grant, rehearse, approved, suggestion };
}

/** Undefined if nobody may or can be asked. The call then ends with the output it had. */
async function widen(
  state: GateState,
  permitted: Permitted,
  denied: Denial,
  signal: AbortSignal,
): Promise<Permitted | undefined> {
  if (asksNobody(state.policy.settings.approval) || state.options.approver === undefined) return undefined;
  if (permitted.tool.repeatable !== true || denied.rule !== undefined) return undefined;
  const question: Question = {
    reason:
      denied.what === "time"
        ? `It ran out of time: ${denied.reason}. Run it again, from the start, with ten times as long?`
        : `The sandbox ${denied.inferred ? "may have stopped" : "stopped"} it: ${denied.reason}. Run it again, ${describeWider(denied)}?`,
    commands: permitted.ruling.commands ?? [],
    grant: widenGrant(permitted.grant, denied),
    suggestion: undefined,
    rehearse: undefined,
    approved: undefined,
  };
  try {
    return await agree(state, permitted, question, signal);
  } catch (error) {
    if (!Waiting.is(error)) throw error;
    // It has run once, so it ends with the output it had instead of waiting for an answer.
    state.options.emit?.({ type: "approval.answered", id: permitted.id, answer: undefined });
    return undefined;
  }
}

async function after(state: GateState, ended: Ended, signal: AbortSignal): Promise<Ended> {
  const { hooks = [], record, emit } = state.options;
  if (hooks.length === 0 || ended.tool === undefined) return ended;
  const { id, tool, ok, content, structured } = ended;
  const result = { id, tool, input: ended.input ?? null, ok, content, ...defined({ structured }) };
  const told = await runAfter(hooks, result, signal, watcherFailed(state, id));
  if (told.withheld !== undefined) {
    emit?.({ type: "call.log", id, level: "error", message: `the result was withheld: ${told.withheld}` });
    const ruling = byHook(`the result was withheld: ${told.withheld}`);
    await record?.({ call: id, tool, ruling, outcome: "withheld" });
    return withhold(ended, told.withheld);
  }
  if (told.content === content && told.structured === structured) return ended;
  const { structured: _structured, ...rest } = withoutFile(ended);
  return { ...rest, content: told.content, ...defined({ structured: told.structured }) };
}

/** The call ran, but its output stays in the journal and does not reach the model. */
function withhold(ended: Ended, why: string): Ended {
  const { structured: _structured, exitCode: _exitCode, ...rest } = withoutFile(ended);
  return {
    ...rest,
    ok: false,
    code: "withheld",
    content: [
      text(`Error: The call ran, and its result is withheld: ${why}\nTell the user; running it again will not help.`),
    ],
    notes: [...(ended.notes ?? []), `result withheld: ${why}`],
  };
}

/** The file holds the output from before a hook changed it, and a model that knew its name could read it there. */
function withoutFile(ended: Ended): Ended {
  return ended.cut === undefined ? ended : { ...ended, cut: { bytes: ended.cut.bytes } };
}

function watcherFailed({ options }: GateState, id: string): (what: string) => void {
  return (what) => options.emit?.({ type: "call.log", id, level: "warn", message: `${what} (it only watches)` });
}

async function agree(state: GateState, checked: Checked, question: Question, signal: AbortSignal): Promise<Permitted> {
  const approval = await seekApproval(state, checked, question, signal);
  if ("refusal" in approval) return refuse(state, checked, approval.refusal);
  const permitted = await permit(state, checked, question.grant, approval.ruling);
  // Looked at once more after the last wait, so that what runs is what was agreed to.
  return approval.hash === undefined || callHash(checked, question.grant, state.policy) === approval.hash
    ? permitted
    : refuse(state, checked, changed(question));
}

/** The call that a hook wants instead, or undefined. Throws if a hook refuses the call. */
async function rewrite(state: GateState, checked: Checked, signal: AbortSignal): Promise<Asked | undefined> {
  const { hooks = [] } = state.options;
  if (hooks.length === 0) return undefined;
  const call = { id: checked.id, tool: checked.tool.name, input: checked.input };
  const answer = await runBefore(hooks, call, signal, watcherFailed(state, checked.id));
  if (answer === undefined) return undefined;
  if ("block" in answer)
    return refuse(state, checked, new Refusal(byHook(answer.block), "denied", `Blocked by a hook: ${answer.block}`));
  if (stableStringify(answer.input) === stableStringify(checked.input)) return undefined;
  const { input } = answer;
  return toAsked(checked, typeof input === "string" && checked.kind === "custom" ? input : JSON.stringify(input));
}

async function lookAtConfinement(state: GateState): Promise<void> {
  const { confinement } = state.options;
  if (state.looked || typeof confinement !== "function" || state.policy.settings.sandbox === "full-access") return;
  const { available } = await confinement();
  state.policy = { ...state.policy, confines: available };
  state.looked = true;
}

async function permit(state: Judging, checked: Checked, grant: Grant, ruling: Ruling): Promise<Permitted> {
  const { record } = state.options;
  await record?.({
    call: checked.id,
    tool: checked.tool.name,
    hash: callHash(checked, grant, state.policy, { content: wasAsked(ruling) }),
    ruling,
    outcome: "permitted",
    grant,
  });
  return extend(checked, { grant, ruling });
}

async function refuse(state: Judging, checked: Checked, refusal: Refusal): Promise<never> {
  const { record } = state.options;
  const { ruling } = refusal;
  await record?.({
    call: checked.id,
    tool: checked.tool.name,
    hash: callHash(checked, toBaseGrant(state.policy), state.policy, { content: wasAsked(ruling) }),
    ruling,
    outcome: "refused",
  });
  throw refusal;
}

function toCall(checked: Checked): CallToDecide {
  const { tool, access, mutates, markerless = false } = checked;
  return { tool: tool.name, access, mutates, markerless };
}

/** The same call with the hook's text. `untyped` is left out, because a hook writes JSON, whose values have types. */
function toAsked({ id, name, namespace, kind, markerless, parent, askedAt }: Checked, text: string): Asked {
  return { id, name, kind, arguments: text, askedAt, ...defined({ namespace, markerless, parent }) };
}
