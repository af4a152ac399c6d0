/** Command rules against what was understood. Allow is read narrowly, deny is read widely. */
import type { CommandRule, Rule, RuleSet } from "../rules.ts";
import { hasFlag } from "./danger.ts";
import { wayOut } from "./escape.ts";
import { isPlainForZsh } from "./foreign.ts";
import { readers } from "./readers.ts";
import { specials } from "./specials.ts";
import { isWrapper } from "./wrappers.ts";
import type { Step, Understood } from "./understand.ts";

/** Programs whose words are not commands, beside the ones that only look. */
export const notWrappers: ReadonlySet<string> = new Set(
  "git docker podman kubectl npm pnpm yarn bun npx pip pip3 cargo rustup go gem bundle apt apt-get brew dnf yum pacman systemctl gh hg svn cp mv mkdir rmdir touch ln chmod chown chgrp rm tee tar zip unzip gzip gunzip bzip2 xz dd curl wget gcc cc g++ clang ld ar cmake ninja tsc eslint prettier vitest jest pytest mocha kill pkill truncate install export unset set alias mktemp useradd usermod".split(
    " ",
  ),
);

/** A rule that speaks about a command; `unsure` where the command cannot be named, and a refusal has to assume it. */
export interface Match {
  readonly rule: Rule;
  readonly unsure: boolean;
}

const sure = ({ rule }: CommandRule): Match => ({ rule, unsure: false });
const unsure = ({ rule }: CommandRule): Match => ({ rule, unsure: true });

/** Every rule that speaks about the step, with deny and ask read as widely as they could be meant. */
export function matchStep(step: Step, rules: RuleSet): readonly Match[] {
  if (rules.commands.size === 0) return [];
  const found = direct(step, rules).map(sure);
  if (rules.denials.length === 0) return found;
  const named = [...codeDenials(step, rules), ...wrappedDenials(step, rules)];
  return [...found, ...named.map(sure), ...hiddenDenials(step, rules).map(unsure)];
}

function direct(step: Step, rules: RuleSet): readonly CommandRule[] {
  const { name } = step;
  if (name === undefined) return [];
  const exact = new Set([step.argv[0] ?? "", name]);
  // `=rm` is rm's path in zsh; `RM` is rm where names ignore case. Only a refusal may guess so.
  const wide = new Set([...exact, name.toLowerCase(), name.replace(/^=/, ""), name.replace(/\.exe$/i, "")]);
  const candidates = new Set([...wide].flatMap((spelling) => rules.commands.get(spelling) ?? []));
  const args = step.found.words.slice(1).map((item) => item.value);
  return [...candidates].filter((candidate) => {
    if (candidate.rule.decision !== "allow") return mayMatch(args, candidate);
    return candidate.prefix[0]?.some((first) => exact.has(first)) === true && isCovered(step, candidate);
  });
}

/** An allow rule covers literal words only, of the program itself, and none of its ways out. */
function isCovered(step: Step, { prefix }: CommandRule): boolean {
  const { words, env, cwds, fed } = step.found;
  if (step.hidden || step.name === undefined || words.some((item) => item.value === undefined) || cwds.length === 0)
    return false;
  if (!step.system && !prefix[0]?.includes(step.argv[0] ?? "")) return false;
  if (env.length > 0 && step.reason.startsWith("it sets ")) return false;
  if (prefix.length > step.argv.length) return false;
  if (!prefix.slice(1).every((alternatives, index) => alternatives.includes(step.argv[index + 1] ?? ""))) return false;
  if (step.risk === "dangerous" && prefix.length === 1 && !dangerousByName(step)) return false;
  return wayOut(step.name, step.argv.slice(1), prefix.length, fed) === undefined;
}

/** Whoever allows `curl` means curl; whoever allows `rm` need not mean `rm -rf`. */
function dangerousByName(step: Step): boolean {
  return !["rm", "chmod", "chown", "find", "kill", "git"].includes(step.name ?? "");
}

/** Words may come with options between them; an unknown word may be anything. */
function mayMatch(args: readonly (string | undefined)[], { prefix }: CommandRule): boolean {
  let at = 0;
  for (const alternatives of prefix.slice(1)) {
    if (alternatives.some((text) => text.startsWith("-"))) {
      if (!alternatives.some((text) => hasOption(args, text))) return false;
      continue;
    }
    const found = findWord(args, at, alternatives);
    if (found === undefined) return false;
    at = found + 1;
  }
  return true;
}

/** The place of the next word that is, or could be, one of these; options and their possible values are passed over. */
function findWord(
  args: readonly (string | undefined)[],
  from: number,
  alternatives: readonly string[],
): number | undefined {
  for (let at = from; at < args.length; at++) {
    const arg = args[at];
    if (arg === undefined || alternatives.includes(arg)) return at;
    const afterOption = at > from && (args[at - 1]?.startsWith("-") ?? false);
    if (!arg.startsWith("-") && !afterOption) return undefined;
  }
  return undefined;
}

function hasOption(args: readonly (string | undefined)[], option: string): boolean {
  const known = args.filter((arg) => arg !== undefined);
  if (known.length < args.length || known.includes(option)) return true;
  if (option.startsWith("--"))
    return hasFlag(known, "", [option.slice(2)]) || hasFlag(known, (longToShort.get(option) ?? []).join(""), []);
  const letters = Array.from(option.slice(1));
  return letters.every((letter) =>
    hasFlag(
      known,
      letter === "r" ? "rR" : letter,
      [...longToShort].filter(([, shorts]) => shorts.includes(letter)).map(([long]) => long.slice(2)),
    ),
  );
}

const longToShort: ReadonlyMap<string, readonly string[]> = new Map([
  ["--recursive", ["r", "R"]],
  ["--force", ["f"]],
  ["--all", ["a"]],
  ["--interactive", ["i"]],
  ["--message", ["m"]],
  ["--delete", ["d"]],
]);

/** What cannot be named cannot be shown to be permitted. */
function hiddenDenials(step: Step, rules: RuleSet): readonly CommandRule[] {
  return step.hidden || step.name === undefined ? rules.denials.slice(0, 1) : [];
}

/** A denied program named in code of another language. */
function codeDenials(step: Step, rules: RuleSet): readonly CommandRule[] {
  return step.code.length === 0 ? [] : denialsNamedIn(step.code.join("\n").slice(0, 100_000), rules);
}

/** A program nobody here knows may run its operands: each place is looked at. */
function wrappedDenials(step: Step, rules: RuleSet): readonly CommandRule[] {
  const { name } = step;
  if (
    name === undefined ||
    isWrapper(name) ||
    (step.system && (notWrappers.has(name) || readers.has(name) || specials.has(name)))
  )
    return [];
  const args = step.found.words.slice(1).map((item) => item.value);
  return args.slice(0, 200).flatMap((arg, index) => {
    if (arg === undefined) return [];
    if (/\s/.test(arg)) return denialsNamedIn(arg.slice(0, 10_000), rules);
    const base = arg.slice(arg.lastIndexOf("/") + 1);
    return (rules.commands.get(base) ?? []).filter(
      (candidate) => candidate.rule.decision === "deny" && mayMatch(args.slice(index + 1), candidate),
    );
  });
}

function denialsNamedIn(text: string, rules: RuleSet): readonly CommandRule[] {
  const names = new Set([...text.matchAll(/[\w.+-]+/g)].map(([name]) => name));
  return [...names].flatMap((name) =>
    (rules.commands.get(name) ?? []).filter((candidate) => candidate.rule.decision === "deny"),
  );
}

/** What a line might evaluate although no command of it says so. */
export function lineDenials(understood: Understood, rules: RuleSet): readonly Match[] {
  if (rules.denials.length === 0) return [];
  if (understood.unclear.length > 0 || understood.evaluates) return rules.denials.slice(0, 1).map(unsure);
  return understood.dormant.flatMap((text) => denialsNamedIn(text.slice(0, 100_000), rules)).map(sure);
}

/** zsh's own syntax is not parsed: a denied name anywhere in such a line is a no. */
export function zshDenials(line: string, rules: RuleSet): readonly Match[] {
  if (rules.denials.length === 0 || isPlainForZsh(line)) return [];
  return denialsNamedIn(line.slice(0, 100_000), rules).map(sure);
}

const aliases: readonly (readonly string[])[] = [
  ["rm", "remove-item", "ri", "del", "erase", "rd", "rmdir"],
  ["cp", "copy-item", "cpi", "copy"],
  ["mv", "move-item", "mi", "move"],
  ["cat", "get-content", "gc", "type"],
  ["curl", "wget", "invoke-webrequest", "iwr", "invoke-restmethod", "irm"],
];

/** PowerShell is not parsed: a denied name anywhere in it, or anything computed, is a no. */
export function foreignDenials(line: string, rules: RuleSet): readonly Match[] {
  if (rules.denials.length === 0) return [];
  const lower = line.toLowerCase().slice(0, 100_000);
  // PowerShell has several names for one command: denying one denies them all.
  const others = aliases.filter((group) =>
    group.some((name) => new RegExp(`(^|[^\\w-])${name}([^\\w-]|$)`).test(lower)),
  );
  const named = denialsNamedIn(`${lower} ${others.flat().join(" ")}`, rules);
  if (named.length > 0) return named.map(sure);
  return /[$&`[\]{}()]|\biex\b|invoke|-e(nc|c)?\b|-encoded/i.test(line) || line.length > 100_000
    ? rules.denials.slice(0, 1).map(unsure)
    : [];
}
