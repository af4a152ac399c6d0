/**
 * One shell line to the simple commands in it. Everything that parses is visited, so that a deny
 * rule sees commands inside substitutions, loops and functions too; what is more than literal simple
 * commands, lists, pipes and redirects leaves a doubt, and doubts are never harmless.
 */
import {
  forEachChild,
  parse,
  type AndOr,
  type Assignment,
  type Command,
  type CompoundList,
  type Pipeline,
  type ParameterExpansionPart,
  type Redirection,
  type ParsedScript,
  type Statement,
  type SyntaxNode,
  type Word,
} from "unbash";
import { statSync } from "node:fs";
import { resolve } from "node:path";
import type { Found, LineReading, Redirected, ShellWord } from "./found.ts";
import { readWord } from "./word.ts";

/** A longer line is not read at all: a person looks at it, or a deny rule ends it. */
export const maxLineLength = 100_000;
const maxCommands = 300;
const maxWords = 2_000;
const maxNesting = 100;
const maxMarks = 10_000;

export interface LineContext {
  readonly cwds: readonly string[];
  readonly home: string;
}

interface State {
  readonly home: string;
  readonly commands: Found[];
  readonly redirects: Redirected[];
  readonly doubts: Set<string>;
  readonly unclear: Set<string>;
  readonly functions: Set<string>;
  readonly dormant: Set<string>;
  /** A value was put together that is more than plain text. */
  tainted: boolean;
  /** Arithmetic, tests or `@P` look at values. */
  evaluates: boolean;
  cwds: readonly string[];
  assigned: boolean;
  words: number;
  /** The text positions refer to; undefined inside a substitution, where they may not. */
  source: string | undefined;
}

export function readLine(line: string, context: LineContext): LineReading {
  const state: State = {
    home: context.home,
    commands: [],
    redirects: [],
    doubts: new Set(),
    unclear: new Set(),
    functions: new Set(),
    dormant: new Set(),
    tainted: false,
    evaluates: false,
    cwds: context.cwds,
    assigned: false,
    words: 0,
    source: line,
  };
  if (line.length > maxLineLength) state.unclear.add(`the line is longer than ${maxLineLength} characters`);
  else if (isTooDense(line)) state.unclear.add("it is nested too deeply, or has too many operators, to be read");
  else readScript(parse(line), state);
  // oxlint-disable-next-line no-control-regex -- control characters are exactly what is looked for
  if (/[\u0000-\u0008\u000b-\u001f\u007f]/.test(line)) state.doubts.add("there are control characters in it");
  return {
    commands: state.commands,
    redirects: state.redirects,
    doubts: [...state.doubts],
    unclear: [...state.unclear],
    dormant: [...state.dormant],
    evaluates: state.evaluates && state.tainted,
  };
}

function readScript(script: ParsedScript | CompoundList, state: State): void {
  const [error] = "errors" in script ? (script.errors ?? []) : [];
  if (error !== undefined) state.unclear.add(`it does not parse (${error.message})`);
  for (const statement of script.commands) readStatement(statement, state);
}

/** Counted without regard to quotes, so never less than it is: reading it would take too long. */
function isTooDense(line: string): boolean {
  let depth = 0;
  let marks = 0;
  for (let index = 0; index < line.length; index++) {
    const char = line[index]!;
    if (char === "(" || char === "{") depth++;
    else if (char === ")" || char === "}") depth = Math.max(0, depth - 1);
    else if (";|&*?[$`".includes(char)) marks++;
    if (depth > maxNesting || marks > maxMarks) return true;
  }
  return false;
}

/** No decision takes long: beyond this much nothing more is read, and somebody has to look. */
function isFull(state: State): boolean {
  if (state.commands.length <= maxCommands && state.words <= maxWords) return false;
  state.unclear.add(`it has more than ${maxCommands} commands or ${maxWords} words`);
  return true;
}

function readStatement(statement: Statement, state: State): void {
  if (isFull(state)) return;
  const before = state.cwds;
  readNode(statement.command, state, { sure: true, fed: false });
  // A background job has its own folder.
  if (statement.background) state.cwds = before;
}

/** `sure`: it runs if the line gets there, so a `cd` has happened for what follows. */
interface Place {
  readonly sure: boolean;
  readonly fed: boolean;
}

function readNode(node: SyntaxNode, state: State, place: Place): void {
  switch (node.type) {
    case "Command":
      return readCommand(node, state, place);
    case "AndOr":
      return readAndOr(node, state, place);
    case "Pipeline":
      return readPipeline(node, state, place);
    case "Subshell": {
      const before = state.cwds;
      readScript(node.body, state);
      state.cwds = before;
      return;
    }
    case "BraceGroup":
      return readScript(node.body, state);
    case "CompoundList":
      return readScript(node, state);
    case "Redirected":
      readNode(node.command, state, place);
      for (const redirect of node.redirects) readRedirect(redirect, state);
      return;
    case "Function":
      return readFunction(node, state);
    default:
      if (node.type === "TestCommand" || node.type === "ArithmeticCommand" || node.type === "ArithmeticFor")
        state.evaluates = true;
      state.doubts.add(construct(node.type));
      return readLoosely(node, state);
  }
}

function readAndOr(node: AndOr, state: State, place: Place): void {
  node.commands.forEach((command, index) =>
    readNode(command, state, { sure: place.sure && index === 0, fed: place.fed }),
  );
}

function readPipeline(node: Pipeline, state: State, place: Place): void {
  const before = state.cwds;
  node.commands.forEach((command, index) =>
    readNode(command, state, { sure: place.sure && node.commands.length === 1, fed: index > 0 || place.fed }),
  );
  // Each part of a pipe is its own process; its folder ends with it.
  if (node.commands.length > 1) state.cwds = before;
}

function readFunction(node: Extract<SyntaxNode, { type: "Function" }>, state: State): void {
  state.doubts.add("it defines a function");
  const name = node.name.value;
  state.functions.add(name);
  const from = state.commands.length;
  readNode(node.body, state, { sure: false, fed: false });
  const calls = state.commands.slice(from).some((command) => command.words[0]?.value === name);
  if (calls) state.unclear.add("a function that calls itself (a fork bomb?)");
}

const commandTypes = new Set([
  "Command",
  "AndOr",
  "Pipeline",
  "Subshell",
  "BraceGroup",
  "CompoundList",
  "Redirected",
  "Function",
]);

/** Visits whatever is below, for the sake of deny rules and danger; the caller has noted the doubt. */
function readLoosely(node: SyntaxNode, state: State): void {
  forEachChild(node, (child) => {
    if (child.type === "Script") readApart(child, state);
    else if (child.type === "Statement") readStatement(child, state);
    else if (child.type === "Word") readLooseWord(child, state);
    else if (commandTypes.has(child.type)) readNode(child, state, { sure: false, fed: false });
    else readLoosely(child, state);
  });
}

function readLooseWord(node: Word, state: State): void {
  readParts(node, state);
  if (node.parts === undefined) return noteDormant(node.value, state);
  for (const part of node.parts) if ("value" in part) noteDormant(part.value, state);
}

function noteDormant(value: string | undefined, state: State): void {
  if (value !== undefined && /\$\(|`/.test(value)) state.dormant.add(value);
}

function construct(type: string): string {
  const names = new Map([
    ["TestCommand", "[[ … ]] can evaluate"],
    ["ArithmeticCommand", "arithmetic can evaluate"],
    ["Coproc", "it starts a coprocess"],
  ]);
  return names.get(type) ?? `it has control flow (${type.toLowerCase()})`;
}

function readCommand(node: Command, state: State, place: Place): void {
  state.words += node.args.length + 1;
  if (isFull(state)) return;
  const env = node.prefix.filter((item) => item.type === "Assignment").map((item) => readAssignment(item, state));
  const fed =
    place.fed || node.redirects.some((redirect) => redirect.type !== "Redirect" || redirect.operator.startsWith("<"));
  for (const redirect of node.redirects) readRedirect(redirect, state);
  if (node.name === undefined) {
    if (env.length === 0) return;
    state.assigned = true;
    state.doubts.add(`it sets ${env.map(({ name }) => name).join(", ")}`);
    return;
  }
  if (hasStrayParenthesis(node, state.source)) state.unclear.add("it does not parse (a parenthesis after a command)");
  const words = [node.name, ...node.args].flatMap((item) =>
    item.type === "Word" ? words1(item, state) : argumentAssignment(item, state),
  );
  if (state.functions.has(words[0]?.value ?? "")) state.doubts.add("it calls a function defined on the line");
  const found = { words, cwds: state.cwds, env, fed };
  state.commands.push(found);
  // These set or look at variables by name, and evaluate subscripts in the name.
  if (evaluating.has(words[0]?.value ?? "")) {
    state.evaluates = true;
    if (words.slice(1).some(({ value }) => value === undefined || !plainValue.test(value))) state.tainted = true;
    for (const { value } of words) noteDormant(value, state);
  }
  if (words[0]?.value === "cd") changeFolder(found, state, place.sure);
}

const evaluating = new Set(
  "let declare typeset local export readonly unset read mapfile readarray printf test [ wait set eval getopts".split(
    " ",
  ),
);

/** The parser passes over a `(` after a command's name, which bash refuses. */
function hasStrayParenthesis(node: Command, source: string | undefined): boolean {
  if (source === undefined || node.name === undefined) return false;
  const [next] = node.suffix;
  const between = source.slice(node.name.end, next === undefined ? node.end : next.pos);
  return between.includes("(") || /^[ \t]*\(/.test(source.slice(node.end, node.end + 200));
}

function words1(node: Word, state: State): readonly ShellWord[] {
  readParts(node, state);
  const words = readWord(node, state);
  if (words.some((word) => word.value === undefined)) state.doubts.add(`only running it tells what ${node.text} is`);
  return words;
}

function argumentAssignment(node: Assignment, state: State): readonly ShellWord[] {
  const { value } = readAssignment(node, state);
  return [
    { raw: node.text, value: value === undefined ? undefined : `${node.name}${node.append ? "+" : ""}=${value}` },
  ];
}

/** A value of letters, digits and the marks of paths cannot be code, however it is looked at later. */
const plainValue = /^[\w.,:@%+/= -]*$/;

function readAssignment(node: Assignment, state: State): { name: string; value: string | undefined } {
  if (node.index !== undefined || node.value.type === "ArrayValue") {
    state.doubts.add("arrays can evaluate");
    state.tainted = true;
    state.evaluates ||= node.index !== undefined;
    readLoosely(node, state);
    return { name: node.name, value: undefined };
  }
  const words = words1(node.value, state);
  const value = words.length === 1 ? words[0]?.value : undefined;
  if (value === undefined || !plainValue.test(value)) state.tainted = true;
  noteDormant(value, state);
  return { name: node.name, value };
}

/** Substitutions inside a word run commands of their own. */
function readParts(node: Word, state: State): void {
  for (const part of node.parts ?? []) {
    if (part.type === "Literal" || part.type === "SingleQuoted" || part.type === "Glob") continue;
    if ("script" in part && part.script !== undefined) {
      state.doubts.add("it runs a command inside another");
      readApart(part.script, state);
      continue;
    }
    if (part.type === "ArithmeticExpansion" || (part.type === "ParameterExpansion" && isLooking(part)))
      state.evaluates = true;
    readLoosely(part, state);
  }
}

/** `${x@P}`, `${!x}`, `${a[i]}`, `${x:i}`: the value is evaluated, not only put in. */
function isLooking(part: ParameterExpansionPart): boolean {
  return (
    part.prefix === "!" ||
    part.index !== undefined ||
    part.operation?.type === "Transform" ||
    part.operation?.type === "Slice"
  );
}

/** In a process of its own, whose folder ends with it. */
function readApart(script: ParsedScript, state: State): void {
  const { cwds, source } = state;
  state.source = undefined;
  readScript(script, state);
  state.cwds = cwds;
  state.source = source;
}

const writing = new Set([">", ">>", ">|", "&>", "&>>", "<>"]);

function readRedirect(redirect: Redirection, state: State): void {
  if (redirect.type === "HereDoc") {
    if (redirect.body.parts !== undefined) readLoosely(redirect.body, state);
    if (redirect.body.parts?.some((part) => part.type !== "Literal")) state.doubts.add("the here-document is expanded");
    return;
  }
  if (redirect.descriptor?.type === "FileDescriptorVariable") state.doubts.add("a redirect sets a variable");
  if (redirect.target === undefined) return void state.unclear.add("a redirect without a target");
  const words = words1(redirect.target, state);
  const target = words.length === 1 ? words[0]?.value : undefined;
  if (redirect.type === "HereString") return;
  if (target === undefined) return void state.doubts.add(`only running it tells where ${redirect.target.text} points`);
  const { operator } = redirect;
  // `>&1` and `<&-` move descriptors; `>& name` opens a file.
  if ((operator === ">&" || operator === "<&") && /^(\d+-?|-)$/.test(target)) return;
  const use = writing.has(operator) || operator === ">&" ? "write" : "read";
  state.redirects.push({ use, target, cwds: state.cwds });
}

/** Follows `cd DIR`; anything else about it leaves the folder unknown. */
function changeFolder(found: Found, state: State, sure: boolean): void {
  const operands = found.words.slice(1).map((word) => word.value);
  if (operands[0] === "--") operands.shift();
  const [target] = operands;
  if (operands.length !== 1 || target === undefined || target === "" || target.startsWith("-")) {
    state.doubts.add("cannot tell where cd goes");
    state.cwds = [];
    return;
  }
  const there = found.cwds.map((cwd) => resolve(cwd, target));
  const exists = there.length > 0 && there.every(isFolder);
  const next = sure && exists ? there : [...new Set([...state.cwds, ...there])];
  if (next.length > 8) state.doubts.add("too many folders to follow");
  state.cwds = next.length > 8 ? [] : next;
}

function isFolder(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
  } catch {
    // Too long, a loop, not permitted: `cd` would fail too.
    return false;
  }
}
