/**
 * The one door every call of every tool goes through before its handler: hooks, then policy, then a
 * person. `gate/` decides from what a call says it will touch; it knows no tool, no wire, no sandbox
 * and runs nothing of the call itself. No answer is a no.
 */
import { CallError } from "../base/error.ts";
import { extend } from "../base/extend.ts";
import { stableStringify } from "../base/json.ts";
import type { Denial, Grant } from "../spec/access.ts";
import type { Asked, Checked, Ended, Permitted, Ruling } from "../spec/call.ts";
import type { Gate, Rewritten } from "../spec/stages.ts";
import { settle, type Question } from "./agree.ts";
import { callHash, createMemory } from "./approval.ts";
import { toBaseGrant, toGrant, widenGrant } from "./grant.ts";
import { runAfter, runBefore } from "./hooks.ts";
import { rememberPaths } from "./command/look.ts";
import { createPolicy, type GateOptions } from "./options.ts";
import { decideAccess, type CallToDecide, type CommandVerdict, type Policy } from "./policy.ts";
import type { GateState } from "./state.ts";
import { suggestRule } from "./suggest.ts";

export type { GateOptions, GateRecord, PolicyOptions } from "./options.ts";
export { createPolicy } from "./options.ts";

export function createGate(options: GateOptions, policy: Policy = createPolicy(options)): Gate {
  const state: GateState = {
    options,
    memory: options.memory ?? createMemory(),
    policy,
    looked: false,
  };
  return {
    pass: (checked, signal) => pass(state, checked, signal),
    widen: (permitted, denied, signal) => widen(state, permitted, denied, signal),
    after: (ended, signal) => after(options, ended, signal),
    baseGrant: () => toBaseGrant(state.policy),
  };
}

/** What judges one call. */
type Judging = Pick<GateState, "options" | "policy">;

async function pass(state: GateState, checked: Checked, signal: AbortSignal): Promise<Permitted | Rewritten> {
  const rewritten = await rewrite(state, checked, signal);
  if (rewritten !== undefined) return { rewritten };
  if (checked.access.commands !== undefined) await lookAtConfinement(state);
  const { read, write } = checked.access;
  const policy = (read ?? write) === undefined ? state.policy : rememberPaths(state.policy);
  const verdict = decideAccess(toCall(checked), policy);
  const { commands, decision, reason } = verdict;
  const now = { options: state.options, policy };
  if (decision === "deny")
    return refuse(
      now,
      checked,
      toRuling(verdict),
      new CallError("denied", `Not permitted: ${reason}`, { hint: denyHint(verdict) }),
    );
  const grant = toGrant(checked.access, policy, decision === "ask" || verdict.rule !== undefined);
  if (decision === "allow") return permit(now, checked, grant, toRuling(verdict));
  // A person takes time to answer: from here on paths are looked at anew.
  return agree(state, checked, { reason, commands, grant, suggestion: suggestRule(toCall(checked), policy) }, signal);
}

/** Undefined where nobody may or can be asked: the call then ends with the output it had. */
async function widen(
  state: GateState,
  permitted: Permitted,
  denied: Denial,
  signal: AbortSignal,
): Promise<Permitted | undefined> {
  const { approval } = state.policy.settings;
  if (approval === "never" || approval === "disabled" || state.options.approver === undefined) return undefined;
  if (permitted.tool.repeatable !== true) return undefined;
  const target = denied.target === undefined ? "" : ` ${denied.target}`;
  const question: Question = {
    reason: `The sandbox stopped it (${denied.what}${target}: ${denied.reason}). Run it again with more?`,
    commands: permitted.ruling.commands ?? [],
    grant: widenGrant(permitted.grant, denied),
    suggestion: undefined,
  };
  return agree(state, permitted, question, signal);
}

async function after({ hooks = [] }: GateOptions, ended: Ended, signal: AbortSignal): Promise<Ended> {
  if (hooks.length === 0 || ended.tool === undefined) return ended;
  const { id, tool, ok, content } = ended;
  const replaced = await runAfter(hooks, { id, tool, input: ended.input ?? null, ok, content }, signal);
  return replaced === content ? ended : { ...ended, content: replaced };
}

async function agree(state: GateState, checked: Checked, question: Question, signal: AbortSignal): Promise<Permitted> {
  const { ruling, error } = await settle(state, checked, question, signal);
  return error === undefined ? permit(state, checked, question.grant, ruling) : refuse(state, checked, ruling, error);
}

/** The call as a hook wants it instead, or undefined; throws where a hook says no. */
async function rewrite(state: GateState, checked: Checked, signal: AbortSignal): Promise<Asked | undefined> {
  const { hooks = [] } = state.options;
  if (hooks.length === 0) return undefined;
  const answer = await runBefore(hooks, { id: checked.id, tool: checked.tool.name, input: checked.input }, signal);
  if (answer === undefined) return undefined;
  if ("block" in answer)
    return refuse(state, checked, byHook(answer.block), new CallError("denied", `Blocked by a hook: ${answer.block}`));
  if (stableStringify(answer.input) === stableStringify(checked.input)) return undefined;
  const { input } = answer;
  return toAsked(checked, typeof input === "string" && checked.kind === "custom" ? input : JSON.stringify(input));
}

async function lookAtConfinement(state: GateState): Promise<void> {
  const { confinement, settings } = state.options;
  if (state.looked || typeof confinement !== "function" || settings.sandbox === "full-access") return;
  const { available } = await confinement();
  state.policy = { ...state.policy, confines: available };
  state.looked = true;
}

async function permit(state: Judging, checked: Checked, grant: Grant, ruling: Ruling): Promise<Permitted> {
  const { record } = state.options;
  await record?.({
    call: checked.id,
    tool: checked.tool.name,
    hash: callHash(checked, grant, state.policy),
    ruling,
    outcome: "permitted",
    grant,
  });
  return extend(checked, { grant, ruling });
}

async function refuse(state: Judging, checked: Checked, ruling: Ruling, error: CallError): Promise<never> {
  const { record } = state.options;
  const hash = callHash(checked, toBaseGrant(state.policy), state.policy);
  await record?.({ call: checked.id, tool: checked.tool.name, hash, ruling, outcome: "refused" });
  throw error;
}

function byHook(reason: string): Ruling {
  return { decision: "deny", by: "hook", reason };
}

function toCall(checked: Checked): CallToDecide {
  const { tool, access, mutates, markerless = false } = checked;
  return { tool: tool.name, access, mutates, markerless };
}

function toRuling(verdict: CommandVerdict): Ruling {
  const { decision, reason, rule, commands } = verdict;
  return {
    decision,
    reason,
    by: rule === undefined ? "policy" : "rule",
    ...(rule === undefined ? {} : { rule }),
    ...(commands.length === 0 ? {} : { commands }),
  };
}

function denyHint(verdict: CommandVerdict): string {
  if (verdict.rule !== undefined)
    return "A rule of the user forbids it, in every spelling. Do it another way, or ask the user to change the rule.";
  return "Nobody is asked in this approval mode. Use a command that only looks, stay inside the workspace, or tell the user what you need and why.";
}

function toAsked(checked: Checked, text: string): Asked {
  const { id, name, namespace, markerless, kind, askedAt } = checked;
  return {
    id,
    name,
    kind,
    arguments: text,
    askedAt,
    ...(namespace === undefined ? {} : { namespace }),
    ...(markerless === undefined ? {} : { markerless }),
  };
}
