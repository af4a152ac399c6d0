/** What is known while a line is read, and how much is read at most, so that no decision takes long. */
import { resolve } from "node:path";
import { statOf } from "../paths.ts";
import type { Found, Redirected } from "./found.ts";

/** A longer line is not read at all: a person looks at it, or a deny rule refuses it. */
const maxLineLength = 100_000;
const maxCommands = 300;
const maxWords = 2_000;
const maxNesting = 100;
const maxMarks = 10_000;
const maxGaps = 30_000;
export const maxRounds = 50;

export interface LineContext {
  readonly mayList: (folder: string, cwd: string) => boolean;
  readonly cwds: readonly string[];
  readonly home: string;
  /** HOME or PWD was set around the line, so their values are not the known ones. */
  readonly assigned?: boolean;
}

export interface State {
  readonly mayList: (folder: string, cwd: string) => boolean;
  readonly home: string;
  readonly commands: Found[];
  readonly redirects: Redirected[];
  readonly doubts: Set<string>;
  readonly unclear: Set<string>;
  readonly functions: Set<string>;
  readonly dormant: Set<string>;
  writesBlindly: boolean;
  setsPath: boolean;
  /** A value was put together that is not plain text. */
  tainted: boolean;
  /** Arithmetic, tests or `@P` evaluate values. */
  evaluates: boolean;
  cwds: readonly string[];
  assigned: boolean;
  /** Loop variables, with their value in this round. */
  readonly variables: Map<string, string>;
  /** Above 0, what is read may not run. */
  conditional: number;
  words: number;
  /** The text that positions refer to. Undefined inside a substitution, where they may refer to another text. */
  source: string | undefined;
}

export function createState(line: string, context: LineContext): State {
  return {
    home: context.home,
    mayList: context.mayList,
    commands: [],
    redirects: [],
    doubts: new Set(),
    unclear: new Set(),
    functions: new Set(),
    dormant: new Set(),
    writesBlindly: false,
    setsPath: false,
    tainted: false,
    evaluates: false,
    cwds: context.cwds,
    // Whatever sets one of the variables whose value we know has to mention its name in the line.
    assigned: context.assigned === true || /(^|[^$\w{])(HOME|PWD)\b/.test(line),
    variables: new Map(),
    conditional: 0,
    words: 0,
    source: line,
  };
}

/** Why the text is not even parsed, or undefined. */
export function tooMuch(line: string): string | undefined {
  if (line.length > maxLineLength) return `the line is longer than ${maxLineLength} characters`;
  return isTooDense(line) ? "it is nested too deeply, or has too many operators, to be read" : undefined;
}

/** Counted without regard to quotes, so the count is never too low. Reading a line this dense would take too long. */
function isTooDense(line: string): boolean {
  let depth = 0;
  let marks = 0;
  let gaps = 0;
  for (let index = 0; index < line.length; index++) {
    const char = line[index]!;
    if (char === "(" || char === "{") depth++;
    else if (char === ")" || char === "}") depth = Math.max(0, depth - 1);
    else if (";|&*?[$`".includes(char)) marks++;
    else if (char === " " && line[index - 1] !== " ") gaps++;
    if (depth > maxNesting || marks > maxMarks || gaps > maxGaps) return true;
  }
  return false;
}

/** True when so much has been read that the rest is left to a person. */
export function isFull(state: State): boolean {
  if (state.commands.length <= maxCommands && state.words <= maxWords) return false;
  state.unclear.add(`it has more than ${maxCommands} commands or ${maxWords} words`);
  return true;
}

/** A value of letters, digits and the marks of paths cannot be code, however it is evaluated later. */
export const plainValue = /^[\w.,:@%+/= -]*$/;

/** Keeps text with a substitution in it for deny rules. */
export function noteDormant(value: string | undefined, state: State): void {
  if (value !== undefined && /\$\(|`/.test(value)) state.dormant.add(value);
}

const maxFolders = 8;

/** What is read in here runs in a process of its own, so a `cd` in it does not last. */
export function inOwnProcess(state: State, read: () => void): void {
  const before = state.cwds;
  read();
  state.cwds = before;
}

/** What is read in here may or may not run, so a `cd` leaves both folders possible. */
export function perhaps(state: State, read: () => void): void {
  state.conditional++;
  read();
  state.conditional--;
}

/** Follows `cd DIR`. In any other form the folder becomes unknown. */
export function changeFolder(found: Found, state: State): void {
  const operands = found.words.slice(1).map((word) => word.value);
  if (operands[0] === "--") operands.shift();
  const [target] = operands;
  if (operands.length !== 1 || target === undefined || target === "" || target.startsWith("-")) {
    state.doubts.add("cannot tell where cd goes");
    state.cwds = [];
    return;
  }
  const there = found.cwds.map((cwd) => resolve(cwd, target));
  const exists = there.length > 0 && there.every((folder) => statOf(folder)?.isDirectory() === true);
  const next = state.conditional === 0 && exists ? there : [...new Set([...state.cwds, ...there])];
  if (next.length > maxFolders) state.doubts.add("too many folders to follow");
  state.cwds = next.length > maxFolders ? [] : next;
}
