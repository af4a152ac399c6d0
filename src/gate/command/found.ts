/** The result of reading a shell line: the simple commands in it, and what cannot be known without running it. */

import type { GlobPiece } from "./glob.ts";

/** A word of a command. `value` is undefined if only running the line would tell. */
export interface ShellWord {
  readonly raw: string;
  readonly value: string | undefined;
  /** A file pattern. The names it stands for may change before the line runs. */
  readonly pattern?: readonly GlobPiece[];
}

/** `NAME=value` in front of a command. */
export interface Assigned {
  readonly name: string;
  readonly value: string | undefined;
}

/** One simple command. `words[0]` is the program. */
export interface Found {
  readonly words: readonly ShellWord[];
  /** Every folder it may run in: a `cd` that may or may not have happened leaves two. Empty if that cannot be told. */
  readonly cwds: readonly string[];
  /** Assignments in front of it. */
  readonly env: readonly Assigned[];
  /** Its input is another command's output or a here-document. */
  readonly fed: boolean;
}

export interface LineReading {
  readonly commands: readonly Found[];
  readonly redirects: readonly Redirected[];
  /** Why the line cannot be called harmless, though it can run confined. */
  readonly doubts: readonly string[];
  /** Why nobody can say what it would run, so that a person has to look at it. */
  readonly unclear: readonly string[];
  /** Literal text that bash might evaluate later, such as a value with `$(` in it. It is searched for denied names. */
  readonly dormant: readonly string[];
  /** Something put together on the line is evaluated, so a deny rule has to assume a match. */
  readonly evaluates: boolean;
  /** It writes a file whose name only running the line would tell. */
  readonly writesBlindly: boolean;
  /** It sets PATH, so any program name may mean another program. */
  readonly setsPath: boolean;
}

export interface Redirected {
  readonly use: "read" | "write";
  readonly target: string;
  readonly cwds: readonly string[];
}

/**
 * Harmless if the paths it reads may be read (and, for git, if the repository runs nothing); otherwise
 * the reason why not.
 */
export type Judgement =
  | {
      readonly reads: readonly string[];
      readonly repository?: string;
      /** Folders whose files it reads, including all folders below them. */
      readonly below?: { readonly folders: readonly string[]; readonly hidden: boolean };
      /** It shows the content of files that the repository tracks. */
      readonly contents?: boolean;
    }
  | { readonly why: string };

export function word(value: string): ShellWord {
  return { raw: value, value };
}

export const unknownWord: ShellWord = { raw: "…", value: undefined };

/** Variables that choose a language, a colour or a width, and never name a program or a file. */
export function isSafeAssignment({ name, value = " " }: Assigned): boolean {
  return /^(LC_[A-Z]+|LANG|NO_COLOR|FORCE_COLOR|CLICOLOR|COLUMNS|LINES|CI)$/.test(name) && /^[\w.@-]*$/.test(value);
}

/** The words as text, for people, rules and records. */
export function toArgv(found: Found): readonly string[] {
  return found.words.map(({ raw, value }) => value ?? raw);
}
