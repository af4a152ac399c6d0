/**
 * Matches command rules against a step that was understood. Allow rules are read narrowly, and deny
 * rules widely (deny.ts).
 */
import type { CommandRule, RuleSet } from "../rules.ts";
import { stepDenials, sure, type Match } from "./deny.ts";
import { wayOut } from "./escape.ts";
import { isSafeAssignment } from "./found.ts";
import { mayMatch } from "./prefix.ts";
import type { Step } from "./understand.ts";
import { containers } from "./wrappers.ts";

/** Every rule that matches the step. Deny and ask rules are read as widely as they could be meant. */
export function matchStep(step: Step, rules: RuleSet): readonly Match[] {
  if (rules.commands.size === 0) return [];
  return [...direct(step, rules).map(sure), ...stepDenials(step, rules)];
}

function direct(step: Step, rules: RuleSet): readonly CommandRule[] {
  const { name } = step;
  if (name === undefined) return [];
  const exact = new Set([step.argv[0] ?? "", name]);
  const candidates = new Set([...exact, ...otherSpellings(name)].flatMap((text) => rules.commands.get(text) ?? []));
  const args = step.found.words.slice(1).map((item) => item.value);
  // `docker container run` is docker run.
  const wide = containers.has(name) && args[0] === "container" ? args.slice(1) : args;
  return [...candidates].filter((candidate) => {
    if (candidate.rule.decision !== "allow") return mayMatch(wide, candidate);
    return candidate.prefix[0]?.some((first) => exact.has(first)) === true && isCovered(step, candidate);
  });
}

/**
 * Other ways to write a name: `=rm` is rm's path in zsh, `RM` is rm where names ignore case, and a full-width or
 * invisible letter may be dropped before the name reaches the system. Only rules that ask or deny take such guesses
 * into account.
 */
function otherSpellings(name: string): readonly string[] {
  const plain = name.normalize("NFKC").replace(/\p{Cf}/gu, "");
  return [plain, plain.toLowerCase(), plain.replace(/^=/, ""), plain.replace(/\.exe$/i, "")];
}

/** An allow rule covers only literal words of the program itself, and none of the ways out. */
function isCovered(step: Step, { prefix }: CommandRule): boolean {
  const { words, env, cwds, fed } = step.found;
  if (step.hidden || step.name === undefined || words.some((item) => item.value === undefined) || cwds.length === 0)
    return false;
  if (!step.system && !prefix[0]?.includes(step.argv[0] ?? "")) return false;
  if (!env.every(isSafeAssignment)) return false;
  if (prefix.length > step.argv.length) return false;
  if (!prefix.slice(1).every((alternatives, index) => alternatives.includes(step.argv[index + 1] ?? ""))) return false;
  if (step.risk === "dangerous" && prefix.length === 1 && !dangerousByName(step)) return false;
  return wayOut(step.name, step.argv.slice(1), prefix.length, fed) === undefined;
}

/** An allow rule for `curl` means all of curl, but one for `rm` may not have meant `rm -rf`. */
function dangerousByName(step: Step): boolean {
  return !["rm", "chmod", "chown", "find", "kill", "git"].includes(step.name ?? "");
}
