/**
 * How far a deny reaches beyond the commands that were found: into what a program may be made to run
 * (operands, options, variables, code of another language), and to everything where nobody can tell.
 */
import { programName } from "../paths.ts";
import type { CommandRule, Rule, RuleSet } from "../rules.ts";
import { optionsOut } from "./escape.ts";
import { isPlainForZsh } from "./foreign.ts";
import { mayMatch } from "./prefix.ts";
import { readers } from "./readers.ts";
import { sedScriptDoubt } from "./sed.ts";
import { specials } from "./specials.ts";
import type { Step, Understood } from "./understand.ts";
import { containers, isShell, isWrapper, packageRunners } from "./wrappers.ts";

/** A rule that speaks about a command; `unsure` where the command cannot be named, and a refusal has to assume it. */
export interface Match {
  readonly rule: Rule;
  readonly unsure: boolean;
}

export const sure = ({ rule }: CommandRule): Match => ({ rule, unsure: false });
const unsure = (rules: RuleSet): readonly Match[] =>
  rules.denials.slice(0, 1).map(({ rule }) => ({ rule, unsure: true }));

/** Programs whose words are not commands, beside the ones that only look. */
export const notWrappers: ReadonlySet<string> = new Set(
  "git docker podman kubectl npm pnpm yarn bun pip pip3 cargo rustup go gem apt apt-get brew dnf yum pacman systemctl gh hg svn cp mv mkdir rmdir touch ln chmod chown chgrp rm tee tar zip unzip gzip gunzip bzip2 xz dd curl wget gcc cc g++ clang ld ar cmake ninja tsc eslint prettier vitest jest pytest mocha kill pkill truncate install export unset set alias mktemp useradd usermod".split(
    " ",
  ),
);

const maxText = 100_000;

export function stepDenials(step: Step, rules: RuleSet): readonly Match[] {
  if (rules.denials.length === 0) return [];
  const handed = handedOver(step);
  const texts = step.risk === "harmless" ? [] : [...step.code, ...settings(step), ...programTexts(step)];
  const named = [
    ...denialsNamedIn(texts.join("\n"), rules),
    ...handed.flatMap((_, index) => denialsOf(handed.slice(index), rules)),
    ...gitByFile(step, rules),
  ];
  const untold =
    step.hidden ||
    step.name === undefined ||
    startsPrograms(step) ||
    (step.found.fed && handed.some((word) => isShell(programName(word ?? "").name)));
  return [...named.map(sure), ...(untold ? unsure(rules) : [])];
}

/** The words that may begin a command of their own. */
function handedOver(step: Step): readonly (string | undefined)[] {
  const { name, system } = step;
  if (name === undefined || isWrapper(name)) return [];
  const args = step.found.words.slice(1, 201).map((item) => item.value);
  if (containers.has(name)) return after(args, ["exec", "run"]);
  if (packageRunners.has(name)) return after(args, ["exec", "x", "dlx"]);
  if (!system || !(notWrappers.has(name) || readers.has(name) || specials.has(name))) return args;
  // A program's file among the words of one that changes things: a copy of it, or a link to it.
  return step.risk === "harmless" ? [] : args.filter((arg) => arg?.startsWith("/") && programName(arg).system);
}

function after(args: readonly (string | undefined)[], words: readonly string[]): readonly (string | undefined)[] {
  const start = args.findIndex((arg) => words.includes(arg ?? ""));
  return start < 0 ? [] : args.slice(start + 1);
}

/** Denials of the command these words would be, the first of them being the program, an option with it, or shell text. */
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

/** `git-push` is git push. */
function gitByFile({ name, argv }: Step, rules: RuleSet): readonly CommandRule[] {
  return name?.startsWith("git-") ? denialsBy("git", [name.slice("git-".length), ...argv.slice(1)], rules) : [];
}

/** What the variables in front of it are set to: many name a program. */
function settings(step: Step): readonly string[] {
  return step.found.env.map(({ value }) => value ?? "");
}

/** Words of a program's own that name a program to run. */
function programTexts({ name = "", argv }: Step): readonly string[] {
  const args = argv.slice(1);
  if (name === "sed") return args.filter((arg) => sedScriptDoubt(arg) !== undefined);
  if (name !== "git") return optionsOut(name, args);
  const options = /^-(x|-(upload|receive|exec|extc|open|\w+-filter))/;
  return args.flatMap((arg, index) => {
    if (/^(ext::|!)/.test(arg) || options.test(args[index - 1] ?? "")) return [arg];
    if (arg.startsWith("-O")) return [arg.slice(2)];
    return options.test(arg) ? [arg.slice(arg.indexOf("=") + 1)] : [];
  });
}

/** Code that can put a name together and run it: which one, only running it tells. */
function startsPrograms({ name = "", code, risk }: Step): boolean {
  if (risk === "harmless") return false;
  const text = code.filter((arg) => !arg.startsWith("-")).join("\n");
  return (
    /`|\b(system|popen|exec[lv]?[pe]*|exec(Sync|File|FileSync)|spawn\w*|subprocess|child_process|shell_exec|passthru|proc_open|posix_spawn|ProcessBuilder|qx|__import__|getattr|eval)\b/.test(
      text,
    ) ||
    (/^[gmn]?awk$/.test(name) && /[|@]/.test(text))
  );
}

function denialsNamedIn(text: string, rules: RuleSet): readonly CommandRule[] {
  const names = new Set([...text.slice(0, maxText).matchAll(/[\w.+-]+/g)].map(([name]) => name));
  return [...names].flatMap((name) =>
    (rules.commands.get(name) ?? []).filter((candidate) => candidate.rule.decision === "deny"),
  );
}

/** What a line might evaluate although no command of it says so. */
export function lineDenials(understood: Understood, rules: RuleSet): readonly Match[] {
  if (rules.denials.length === 0) return [];
  if (understood.unclear.length > 0 || understood.evaluates) return unsure(rules);
  return understood.dormant.flatMap((text) => denialsNamedIn(text, rules)).map(sure);
}

/** zsh's own syntax is not parsed: a denied name anywhere in such a line is a no. */
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

/** PowerShell is not parsed: a denied name anywhere in it, or anything computed, is a no. */
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
