/**
 * How far a deny rule reaches beyond the commands that were found: into what a program may be made to
 * run (operands, options, variables, code of another language), and to everything if nobody can tell
 * what runs.
 */
import { programName } from "../paths.ts";
import type { CommandRule, Rule, RuleSet } from "../rules.ts";
import { optionsOut } from "./escape.ts";
import { isPlainForZsh } from "./foreign.ts";
import { mayMatch } from "./prefix.ts";
import { matchPieces } from "./glob.ts";
import { takesCommands } from "./handed.ts";
import { sedEffect } from "./sed.ts";
import { runsWhatItWrites } from "./wrote.ts";
import type { Step, Understood } from "./understand.ts";
import { containers, isShell, isWrapper, packageRunners } from "./wrappers.ts";

/**
 * A rule that matches a command. `unsure` means that the command cannot be named, so that a refusal
 * has to assume a match.
 */
export interface Match {
  readonly rule: Rule;
  readonly unsure: boolean;
}

export const sure = ({ rule }: CommandRule): Match => ({ rule, unsure: false });
const unsure = (rules: RuleSet): readonly Match[] =>
  rules.denials.slice(0, 1).map(({ rule }) => ({ rule, unsure: true }));

const maxText = 100_000;

export function stepDenials(step: Step, rules: RuleSet): readonly Match[] {
  if (rules.denials.length === 0) return [];
  const handed = handedOver(step);
  const texts = step.risk === "harmless" ? [] : [...step.code, ...settings(step), ...programTexts(step)];
  const named = [
    ...denialsNamedIn(texts.join("\n"), rules),
    ...handed.flatMap((_, index) => denialsOf(handed.slice(index), rules)),
    ...gitByFile(step, rules),
    ...patternDenials(step, rules),
    ...step.possible.flatMap((inner) => directDenials(inner, rules)),
  ];
  const untold =
    step.hidden ||
    step.name === undefined ||
    (step.untold && step.risk !== "harmless") ||
    isUnknownGit(step, rules) ||
    (step.found.fed && handed.some((word) => isShell(programName(word ?? "").name)));
  return [...named.map(sure), ...(untold ? unsure(rules) : [])];
}

/** Denials of a command that may run, and of what that command may be made to run. */
function directDenials(step: Step, rules: RuleSet): readonly CommandRule[] {
  const args = step.found.words.slice(1).map(({ value }) => value);
  return [
    ...(step.name === undefined ? [] : denialsBy(step.name, args, rules)),
    ...gitByFile(step, rules),
    ...step.possible.flatMap((inner) => directDenials(inner, rules)),
  ];
}

/** A pattern may match the denied word by the time the line runs: `touch rm; r[m] f`. */
function patternDenials(step: Step, rules: RuleSet): readonly CommandRule[] {
  const { words } = step.found;
  if (words.every((item) => item.pattern === undefined)) return [];
  const mayBe = (index: number, text: string): boolean => {
    const { pattern, value } = words[index] ?? {};
    return value === text || (pattern !== undefined && matchPieces(text, pattern));
  };
  return rules.denials.filter(({ prefix }) => {
    const [first = [], ...rest] = prefix;
    if (!first.some((text) => mayBe(0, text) || step.name === text)) return false;
    return rest.every((alternatives) =>
      words.slice(1).some((_, index) => alternatives.some((text) => mayBe(index + 1, text))),
    );
  });
}

/** git treats a word it does not know as an alias, and nobody has looked at what the alias runs. */
function isUnknownGit({ name, argv, risk }: Step, rules: RuleSet): boolean {
  if (name !== "git" || risk === "harmless" || !rules.denials.some(({ prefix }) => prefix[0]?.includes("git")))
    return false;
  const [, sub] = gitSubcommand(argv);
  return sub !== undefined && !gitCommands.has(sub);
}

/** The position of the subcommand, and the subcommand itself. */
function gitSubcommand(argv: readonly string[]): readonly [number, string | undefined] {
  let at = 1;
  for (; argv[at]?.startsWith("-"); at++)
    if (/^(-[cC]|--(git-dir|work-tree|namespace|exec-path|config-env|super-prefix))$/.test(argv[at]!)) at++;
  return [at, argv[at]];
}

const gitCommands = new Set(
  "add am annotate apply archive bisect blame branch bugreport bundle cat-file check-attr check-ignore check-mailmap check-ref-format checkout checkout-index cherry cherry-pick citool clean clone column commit commit-graph commit-tree config count-objects credential describe diagnose diff diff-files diff-index diff-tree difftool fast-export fast-import fetch fetch-pack filter-branch fmt-merge-msg for-each-ref for-each-repo format-patch fsck gc get-tar-commit-id grep gui hash-object help hook index-pack init instaweb interpret-trailers lfs log ls-files ls-remote ls-tree mailinfo mailsplit maintenance merge merge-base merge-file merge-index merge-tree mergetool mktag mktree multi-pack-index mv name-rev notes pack-objects pack-redundant pack-refs patch-id prune prune-packed pull push range-diff read-tree rebase receive-pack reflog remote repack replace request-pull rerere reset restore rev-list rev-parse revert rm send-email send-pack shell shortlog show show-branch show-index show-ref sparse-checkout stage stash status stripspace submodule subtree svn switch symbolic-ref tag unpack-file unpack-objects update-index update-ref update-server-info upload-archive upload-pack var verify-commit verify-pack verify-tag version web--browse whatchanged worktree write-tree flow".split(
    " ",
  ),
);

/** The words that may begin another command. */
function handedOver(step: Step): readonly (string | undefined)[] {
  const { name, system } = step;
  if (name === undefined || isWrapper(name)) return [];
  const args = step.found.words.slice(1, 201).map((item) => item.value);
  if (containers.has(name)) return after(args, ["exec", "run", "unshare"]);
  if (packageRunners.has(name)) return after(args, ["exec", "x", "dlx"]);
  if (name === "cmake") return after(args, ["env", "time"]);
  if (takesCommands({ name, system })) return args;
  // A program's file among the arguments of a command that changes something may be copied or linked.
  return step.risk === "harmless" ? [] : args.filter((arg) => arg?.startsWith("/") && programName(arg).system);
}

function after(args: readonly (string | undefined)[], words: readonly string[]): readonly (string | undefined)[] {
  const start = args.findIndex((arg) => words.includes(arg ?? ""));
  return start < 0 ? [] : args.slice(start + 1);
}

/**
 * Denials of the command that these words would be. The first word may be the program, an option
 * joined to it, or shell text.
 */
function denialsOf([first, ...args]: readonly (string | undefined)[], rules: RuleSet): readonly CommandRule[] {
  if (first === undefined) return [];
  const word = first.startsWith("-") ? first.slice(first.indexOf("=") + 1) : first;
  if (/\s/.test(word)) return denialsNamedIn(word, rules);
  return denialsBy(programName(word).name, args, rules);
}

function denialsBy(name: string, args: readonly (string | undefined)[], rules: RuleSet): readonly CommandRule[] {
  return (rules.commands.get(name) ?? []).filter(
    (candidate) => candidate.rule.decision === "deny" && mayMatch(args, candidate),
  );
}

/** `git-push` is git push, and so are the commands it is built from and what `git subtree push` ends in. */
function gitByFile({ name, argv }: Step, rules: RuleSet): readonly CommandRule[] {
  const isPart = name?.startsWith("git-") === true;
  if (name !== "git" && !isPart) return [];
  const [at, sub] = isPart ? [0, name.slice("git-".length)] : gitSubcommand(argv);
  const rest = argv.slice(at + 1);
  if (sub === "send-pack" || sub === "http-push") return denialsBy("git", ["push", ...rest], rules);
  if (sub === "subtree") return denialsBy("git", rest, rules);
  return isPart ? denialsBy("git", [sub ?? "", ...rest], rules) : [];
}

/** The values of variables set in front of the command, because many of them name a program. */
function settings(step: Step): readonly string[] {
  return step.found.env.map(({ value }) => value ?? "");
}

/** The program's own arguments that name a program to run. */
function programTexts({ name = "", argv }: Step): readonly string[] {
  const args = argv.slice(1);
  if (name === "sed") return args.filter((arg) => ["runs", "unknown"].includes(sedEffect(arg)));
  if (name !== "git") return optionsOut(name, args);
  const options = /^-(x|-(upload|receive|exec|extc|open|\w+-filter))/;
  return args.flatMap((arg, index) => {
    if (/^(ext::|!)/.test(arg) || options.test(args[index - 1] ?? "")) return [arg];
    if (arg.startsWith("-O")) return [arg.slice(2)];
    return options.test(arg) ? [arg.slice(arg.indexOf("=") + 1)] : [];
  });
}

function denialsNamedIn(text: string, rules: RuleSet): readonly CommandRule[] {
  const names = new Set([...text.slice(0, maxText).matchAll(/[\w.+-]+/g)].map(([name]) => name));
  return [...names].flatMap((name) =>
    (rules.commands.get(name) ?? []).filter((candidate) => candidate.rule.decision === "deny"),
  );
}

/** Text that the line might evaluate although none of its commands says so. */
export function lineDenials(understood: Understood, rules: RuleSet): readonly Match[] {
  if (rules.denials.length === 0) return [];
  if (understood.unclear.length > 0 || understood.evaluates || runsWhatItWrites(understood)) return unsure(rules);
  return understood.dormant.flatMap((text) => denialsNamedIn(text, rules)).map(sure);
}

/** zsh's own syntax is not parsed, so a denied name anywhere in such a line is refused. */
export function zshDenials(line: string, rules: RuleSet): readonly Match[] {
  if (rules.denials.length === 0 || isPlainForZsh(line)) return [];
  return denialsNamedIn(line, rules).map(sure);
}

const aliases: readonly (readonly string[])[] = [
  ["rm", "remove-item", "ri", "del", "erase", "rd", "rmdir"],
  ["cp", "copy-item", "cpi", "copy"],
  ["mv", "move-item", "mi", "move"],
  ["cat", "get-content", "gc", "type"],
  ["curl", "wget", "invoke-webrequest", "iwr", "invoke-restmethod", "irm"],
];

/** PowerShell is not parsed, so a denied name anywhere in it, or anything computed, is refused. */
export function foreignDenials(line: string, rules: RuleSet): readonly Match[] {
  if (rules.denials.length === 0) return [];
  const lower = line.toLowerCase().slice(0, maxText);
  // PowerShell has several names for one command: denying one denies them all.
  const others = aliases.filter((group) =>
    group.some((name) => new RegExp(`(^|[^\\w-])${name}([^\\w-]|$)`).test(lower)),
  );
  const named = denialsNamedIn(`${others.flat().join(" ")} ${lower}`, rules);
  if (named.length > 0) return named.map(sure);
  return /[$&`[\]{}()]|\biex\b|invoke|-e(nc|c)?\b|-encoded/i.test(line) || line.length > maxText ? unsure(rules) : [];
}
