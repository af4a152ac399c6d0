/**
 * Whether a command's words begin as a rule's prefix says, read as widely as it could be meant. For
 * rules that ask or deny.
 */
import { resolve } from "node:path";
import type { DeniedProgram, OptionTest, WordTest } from "../../spec/access.ts";
import { ruleName, type CommandRule } from "../rules.ts";
import { hasFlag } from "./danger.ts";

/** Options may stand between the words, and an unknown word may be anything. */
export function mayMatch(args: readonly (string | undefined)[], { prefix }: CommandRule): boolean {
  let at = 0;
  for (const test of prefix.slice(1).map(toWordTest)) {
    if ("options" in test) {
      if (!test.options.some((option) => hasOption(args, option))) return false;
      continue;
    }
    const found = findWord(args, at, test.oneOf);
    if (found === undefined) return false;
    at = found + 1;
  }
  return true;
}

/** A rule in the form that the sandbox takes: the same tests, applied to every program that is really started. */
export function toDeniedProgram({ rule, prefix }: CommandRule, workspace: string): DeniedProgram {
  const [program = [], ...words] = prefix;
  const named = program.map((name) => (name.includes("/") ? resolve(workspace, name) : name));
  return { rule: ruleName(rule), program: named, words: words.map(toWordTest) };
}

function toWordTest(alternatives: readonly string[]): WordTest {
  return alternatives.some((text) => text.startsWith("-"))
    ? { options: alternatives.map(toOptionTest) }
    : { oneOf: alternatives };
}

/** `-rf` stands for both letters, in one cluster or two, or for their long names; `--force` also for its letter. */
function toOptionTest(text: string): OptionTest {
  if (!text.startsWith("-")) return { text, groups: [{ letters: "", names: [] }] };
  if (text.startsWith("--"))
    return { text, groups: [{ letters: (longToShort.get(text) ?? []).join(""), names: [text.slice(2)] }] };
  const groups = Array.from(text.slice(1), (letter) => ({
    letters: letter === "r" ? "rR" : letter,
    names: [...longToShort].filter(([, shorts]) => shorts.includes(letter)).map(([long]) => long.slice(2)),
  }));
  return { text, groups: groups.length === 0 ? [{ letters: "", names: [] }] : groups };
}

/** The position of the next word that is, or could be, one of these. Options and their possible values are skipped. */
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

function hasOption(args: readonly (string | undefined)[], { text, groups }: OptionTest): boolean {
  const known = args.filter((arg) => arg !== undefined);
  if (known.length < args.length || known.includes(text)) return true;
  return groups.every(({ letters, names }) => hasFlag(known, letters, names));
}

const longToShort: ReadonlyMap<string, readonly string[]> = new Map([
  ["--recursive", ["r", "R"]],
  ["--force", ["f"]],
  ["--all", ["a"]],
  ["--interactive", ["i"]],
  ["--message", ["m"]],
  ["--delete", ["d"]],
]);
