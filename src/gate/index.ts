/** Entry of `callgate/gate`: decisions, rules, approvals, hooks and trust, each usable without an engine. */
export { createCallbackApprover, createJsonLinesApprover } from "./approvers.ts";
export { createGate, createPolicy } from "./gate.ts";
export type { GateOptions, GateRecord, Memory, PolicyOptions } from "./gate.ts";
export { createCommandHook } from "./hooks.ts";
export type { AfterAnswer, BeforeAnswer, Hook, HookCall, HookResult } from "./hooks.ts";
export type { Decision, Risk } from "./modes.ts";
export type { RunLater, RunLaterKind } from "./run-later.ts";
export { decideAccess, decideCommand } from "./policy.ts";
export type { CallToDecide, CommandVerdict, Policy, Verdict } from "./policy.ts";
export { appendRule, loadRules, parseRules, RulesError } from "./rules-file.ts";
export type { Rule, RuleSet } from "./rules.ts";
export { toVisible } from "./show.ts";
export { suggestRule } from "./suggest.ts";
export { createTrust } from "./trust.ts";
export type { Trust, TrustStatus } from "./trust.ts";
/** Types that the gate's signatures mention. */
export type { Denial, NetworkGrant, SandboxPolicy, ServerUse } from "../spec/access.ts";
export type { Checked, Permitted, Ruling } from "../spec/call.ts";
export type { ApprovalMode, Asking, Confinement, Gate, PolicySettings, Recorder } from "../spec/stages.ts";
/** Types that the signatures above mention. */
export type { Surroundings } from "./command/look.ts";
export type { CommandHookOptions } from "./hooks.ts";
export type { ParseOptions } from "./rules-file.ts";
export type { CommandRule, Prefix, RuleBook } from "./rules.ts";
export type { Suggestion } from "./suggest.ts";
export type { Emit, Judgement, Rehearse, Rewritten } from "../spec/stages.ts";
export type { EffectCondition } from "./effect-condition.ts";
export type { Choice, Effect, EffectLine, EffectType, Effects, Settled } from "../spec/effects.ts";
