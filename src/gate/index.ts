/** Entry of `callgate/gate`: decisions, rules, approvals, hooks and trust, each usable without an engine. */
export { createCallbackApprover, createJsonLinesApprover, createMemory } from "./approval.ts";
export type { Memory } from "./approval.ts";
export { createGate, createPolicy } from "./gate.ts";
export type { GateOptions, GateRecord, PolicyOptions } from "./gate.ts";
export { createCommandHook } from "./hooks.ts";
export type { AfterAnswer, BeforeAnswer, Hook, HookCall, HookResult } from "./hooks.ts";
export { toSettings } from "./modes.ts";
export type { Decision, Risk } from "./modes.ts";
export { defaultMask, defaultProtect } from "./paths.ts";
export { decideAccess, decideCommand } from "./policy.ts";
export type { CallToDecide, CommandVerdict, Policy, Verdict } from "./policy.ts";
export { appendRule, failedExamples, loadRules, parseRules, RulesError } from "./rules-file.ts";
export { compileRules } from "./rules.ts";
export type { Rule, RuleSet } from "./rules.ts";
export { toVisible, toVisibleCommand, toVisibleLine } from "./show.ts";
export { describeRule, suggestRule } from "./suggest.ts";
export { createTrust } from "./trust.ts";
export type { Trust, TrustStatus } from "./trust.ts";
