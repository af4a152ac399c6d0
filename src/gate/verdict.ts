/**
 * The decision about one thing that a call touches, by a rule or by the mode, and which of several
 * decisions counts.
 */
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
