/**
 * Judges what is typed into a process that is already running. Typed into a shell, it is a command line, to which the
 * rules apply. It is never known to be harmless, because earlier input may have changed what it means. For any other
 * program nobody can tell what the input does.
 */
import type { Command } from "../spec/access.ts";
import { foreignDenials, type Match } from "./command/deny.ts";
import { isShell } from "./command/wrappers.ts";
import { programName } from "./paths.ts";
import type { RuleSet } from "./rules.ts";

export interface Typed {
  /** The line as a shell will read it. Undefined if it is not one whole line for a shell. */
  readonly line?: Command;
  readonly doubt: string;
  readonly denials: readonly Match[];
}

export function readTyped({ shell = "", cwd, typed = [] }: Command, rules: RuleSet): Typed {
  const program = programOf(typed);
  const named = foreignDenials(shell, rules);
  // Half a line, or keys that move the cursor, only get their meaning from what is typed before and after them.
  // oxlint-disable-next-line no-control-regex -- control characters are exactly what is looked for
  const whole = shell.endsWith("\n") && !/[\u0000-\u0008\u000b-\u001f\u007f\u009b]/.test(shell);
  if (isShell(program) && whole)
    return {
      line: { shell, ...(cwd === undefined ? {} : { cwd }), ...(program === "zsh" ? { dialect: "zsh" } : {}) },
      doubt: `it is typed into ${program}, and what was typed before may change what it means`,
      denials: named,
    };
  const untold = rules.denials.slice(0, 1).map(({ rule }) => ({ rule, unsure: true }));
  return {
    doubt: `what is typed into ${program === "" ? "it" : program} is not understood`,
    denials: named.length > 0 ? named : untold,
  };
}

/** The program that waits for input: the one that was started, or the one that a shell was told to run. */
function programOf(argv: readonly string[]): string {
  const { name } = programName(argv[0] ?? "");
  const text = argv.slice(1).find((word) => !word.startsWith("-"));
  if (!isShell(name) || text === undefined || !argv.slice(1).some((word) => /^-\w*c$/.test(word))) return name;
  if (/[;|&\n<>`$()]/.test(text)) return "";
  const words = text.trim().split(/\s+/);
  return programName((words[0] === "exec" ? words[1] : words[0]) ?? "").name;
}
