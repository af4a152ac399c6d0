/** What was decided, as it is recorded and told. */
import { defined } from "../base/json.ts";
import { Refusal, type Ruling } from "../spec/call.ts";
import type { CommandVerdict, Policy } from "./policy.ts";

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
