/** Do a command's words begin as a rule's prefix says? Read as widely as it could be meant: for rules that ask or deny. */
import type { CommandRule } from "../rules.ts";
import { hasFlag } from "./danger.ts";

/** Words may come with options between them; an unknown word may be anything. */
export function mayMatch(args: readonly (string | undefined)[], { prefix }: CommandRule): boolean {
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
