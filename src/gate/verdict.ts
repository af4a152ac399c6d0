/**
 * The decision about one thing that a call touches, by a rule or by the mode; which of several decisions
 * counts; and how what was decided is recorded (`Ruling`) and told (`Refusal`).
 */
import { defined } from "../base/json.ts";
import { Refusal, type Ruling } from "../spec/call.ts";
import type { PolicySettings } from "../spec/stages.ts";
import { asksNobody, byMode, isStricter, modeReason, switchedOff, type Decision, type Risk } from "./modes.ts";
import type { Policy } from "./policy-type.ts";
import { ruleName, type Rule } from "./rules.ts";

/** What was decided, why, and by which rule. */
export interface Verdict {
  readonly decision: Decision;
  readonly reason: string;
  readonly rule?: string;
  /** The file in which that rule was written. */
  readonly ruleFile?: string;
  readonly risk: Risk;
}

/** What was decided about a command line, and the commands found in it. */
export interface CommandVerdict extends Verdict {
  /** Every simple command found, as words, in the order they were found. */
  readonly commands: readonly (readonly string[])[];
  readonly sandboxed: boolean;
}

/** A rule that allows settles the matter. One that asks or denies only adds to what the mode says. */
export function withRules(rules: readonly Rule[], otherwise: () => Verdict): Verdict {
  const spoken = rules.map(ruleVerdict);
  return strictest(rules.some((rule) => rule.decision === "allow") ? spoken : [...spoken, otherwise()]);
}

/**
 * If nobody can be asked, a rule that asks becomes a refusal. Under 'auto' only a rule that denies
 * refuses. Under 'disabled' nothing runs.
 */
export function refuseToAsk(verdict: Verdict, { approval }: PolicySettings): Verdict {
  if (approval === "disabled") return { ...withoutRule(verdict), decision: "deny", reason: switchedOff };
  if (verdict.decision !== "ask" || !asksNobody(approval)) return verdict;
  if (approval === "auto" && verdict.rule !== undefined)
    return {
      ...verdict,
      decision: "allow",
      reason: `${verdict.reason} (approval 'auto' asks nobody, and no rule denies it)`,
    };
  return { ...verdict, decision: "deny", reason: `${verdict.reason} (nobody is asked under approval '${approval}')` };
}

function withoutRule({ rule: _rule, ruleFile: _file, ...verdict }: Verdict): Verdict {
  return verdict;
}

export function ruleVerdict(rule: Rule): Verdict {
  return {
    decision: rule.decision,
    reason: rule.reason ?? `a rule says so: ${ruleName(rule)}`,
    rule: ruleName(rule),
    ...(rule.source === undefined ? {} : { ruleFile: rule.source }),
    risk: "other",
  };
}

export function modeVerdict(risk: Risk, policy: Policy, what: string, confines = policy.confines): Verdict {
  const decision = byMode(risk, policy.settings, confines);
  const why = modeReason(risk, policy.settings, confines);
  return { decision, reason: risk === "harmless" ? what : `${what}; ${why}`, risk };
}

/** Whether commands will run in a sandbox. */
export function isSandboxed({ confines, settings }: Policy): boolean {
  return confines && settings.sandbox !== "full-access";
}

/** The strictest decision. Among equals, a rule's decision comes before the table's, and then the first one. */
export function strictest(verdicts: readonly Verdict[]): Verdict {
  const [first, ...rest] = verdicts;
  if (first === undefined) return { decision: "allow", reason: "it touches nothing", risk: "harmless" };
  return rest.reduce(
    (best, next) =>
      isStricter(next.decision, best.decision) || (next.decision === best.decision && weight(next) > weight(best))
        ? next
        : best,
    first,
  );
}

const weights = { harmless: 0, other: 1, dangerous: 2, escalation: 3 } as const;

function weight(verdict: Verdict): number {
  return verdict.rule === undefined ? weights[verdict.risk] : 4;
}

/** What the model is told if a call is denied. */
export function denial(verdict: CommandVerdict, policy: Policy): Refusal {
  const { reason } = verdict;
  return new Refusal(toRuling(verdict), "denied", `Not permitted: ${reason}`, { hint: denyHint(verdict, policy) });
}

export function wasAsked({ by }: Ruling): boolean {
  return by === "person" || by === "memory";
}

export function byHook(reason: string): Ruling {
  return { decision: "deny", by: "hook", reason };
}

/** Makes rulings about one call. Each of them names the commands that were found in it. */
export function rulingsOn(commands: Ruling["commands"] = []) {
  return (by: Ruling["by"], decision: Ruling["decision"], reason: string, rule?: string): Ruling => ({
    decision,
    reason,
    by,
    ...defined({ rule }),
    commands,
  });
}

export function toRuling(verdict: CommandVerdict): Ruling {
  const { decision, reason, rule, ruleFile, commands } = verdict;
  return {
    decision,
    reason,
    by: rule === undefined ? "policy" : "rule",
    ...defined({ rule, ruleFile }),
    ...(commands.length === 0 ? {} : { commands }),
  };
}

/**
 * The ruling for a held run. The reason for which it would have been asked about is used again for the question about
 * what it did.
 */
export function toHeldRuling(verdict: CommandVerdict): Ruling {
  return { ...toRuling(verdict), decision: "allow" };
}

function denyHint(verdict: CommandVerdict, { settings }: Policy): string {
  if (settings.approval === "disabled") return "No tool can be called in this session. Answer with words.";
  if (verdict.rule !== undefined)
    return "A rule of the user forbids it, in every spelling. Do it another way, or ask the user to change the rule.";
  return "Nobody is asked in this approval mode. Use a command that only looks, stay inside the workspace, or tell the user what you need and why.";
}
