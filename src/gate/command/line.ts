/**
 * Reads one shell line into the simple commands in it. Everything that parses is visited, so that a
 * deny rule also sees commands inside substitutions, loops and functions. Anything beyond literal
 * simple commands, lists, pipes and redirects leaves a doubt, and a doubt is never harmless.
 */
import {
  forEachChild,
  parse,
  type Assignment,
  type Command,
  type CompoundList,
  type Redirection,
  type ParsedScript,
  type Statement,
  type SyntaxNode,
  type Word,
} from "unbash";
import type { LineReading, ShellWord } from "./found.ts";
import {
  changeFolder,
  createState,
  inOwnProcess,
  isFull,
  maxRounds,
  noteDormant,
  perhaps,
  plainValue,
  tooMuch,
  type LineContext,
  type State,
} from "./state.ts";
import {
  commandTypes,
  construct,
  evaluates,
  hasStrayParenthesis,
  isEvaluating,
  isPlainTest,
  setsVariables,
} from "./syntax.ts";
import { readWord } from "./word.ts";

type NodeOf<Type extends SyntaxNode["type"]> = Extract<SyntaxNode, { type: Type }>;

export function readLine(line: string, context: LineContext): LineReading {
  const state = createState(line, context);
  const over = tooMuch(line);
  if (over === undefined) readScript(parse(line), state);
  else state.unclear.add(over);
  // oxlint-disable-next-line no-control-regex -- control characters are exactly what is looked for
  if (/[\u0000-\u0008\u000b-\u001f\u007f]/.test(line)) state.doubts.add("there are control characters in it");
  return {
    commands: state.commands,
    redirects: state.redirects,
    doubts: [...state.doubts],
    unclear: [...state.unclear],
    dormant: [...state.dormant],
    evaluates: state.evaluates && state.tainted,
    writesBlindly: state.writesBlindly,
    setsPath: state.setsPath,
  };
}

function readScript(script: ParsedScript | CompoundList, state: State): void {
  const [error] = "errors" in script ? (script.errors ?? []) : [];
  if (error !== undefined) state.unclear.add(`it does not parse (${error.message})`);
  for (const statement of script.commands) readStatement(statement, state);
}

function readStatement(statement: Statement, state: State): void {
  if (isFull(state)) return;
  const read = () => readNode(statement.command, state, false);
  if (statement.background) inOwnProcess(state, read);
  else read();
}

/** `fed` means that its input comes from another command. */
function readNode(node: SyntaxNode, state: State, fed: boolean): void {
  switch (node.type) {
    case "Command":
      return readCommand(node, state, fed);
    case "AndOr":
      return readAndOr(node, state, fed);
    case "Pipeline":
      return readPipeline(node, state, fed);
    case "Subshell":
      return inOwnProcess(state, () => readScript(node.body, state));
    case "BraceGroup":
      return readScript(node.body, state);
    case "CompoundList":
      return readScript(node, state);
    case "Redirected":
      readNode(node.command, state, fed);
      for (const redirect of node.redirects) readRedirect(redirect, state);
      return;
    case "If":
      return readIf(node, state);
    case "For":
      return readFor(node, state);
    case "TestCommand":
      return readTest(node, state);
    case "Function":
      return readFunction(node, state);
    default:
      state.evaluates ||= node.type === "ArithmeticCommand" || node.type === "ArithmeticFor";
      state.doubts.add(construct(node.type));
      return readLoosely(node, state);
  }
}

function readAndOr({ commands: [first, ...rest] }: NodeOf<"AndOr">, state: State, fed: boolean): void {
  if (first !== undefined) readNode(first, state, fed);
  perhaps(state, () => rest.forEach((command) => readNode(command, state, fed)));
}

function readPipeline({ commands }: NodeOf<"Pipeline">, state: State, fed: boolean): void {
  commands.forEach((command, index) => {
    const read = () => readNode(command, state, index > 0 || fed);
    if (commands.length > 1) inOwnProcess(state, read);
    else read();
  });
}

function readIf(node: NodeOf<"If">, state: State): void {
  readScript(node.clause, state);
  const lists = [node.then, ...node.elif.flatMap((elif) => [elif.clause, elif.then]), node.else];
  perhaps(state, () => lists.forEach((list) => list !== undefined && readScript(list, state)));
}

/** A loop over known words is read once for each of them. */
function readFor(node: NodeOf<"For">, state: State): void {
  const words = (node.wordlist ?? []).flatMap((word) => readWords(word, state));
  const values = words.map((word) => word.value).filter((value) => value !== undefined);
  const name = node.name.value;
  // Only lower-case names, because PATH, IFS and similar ones change what commands mean.
  const known =
    /^[a-z_][a-z0-9_]*$/.test(name) &&
    node.wordlist !== undefined &&
    values.length === words.length &&
    values.length <= maxRounds &&
    !state.variables.has(name);
  if (!known) state.doubts.add("it is a loop over words that are not known");
  perhaps(state, () => {
    for (const value of known ? values : [undefined]) {
      if (value !== undefined) state.variables.set(name, value);
      readScript(node.body, state);
    }
  });
  // After the loop the variable keeps its last value, which is not followed further.
  state.variables.delete(name);
  state.assigned = true;
}

/** `[[ -f x ]]` and `[[ a == b ]]` with known words evaluate nothing. */
function readTest(node: NodeOf<"TestCommand">, state: State): void {
  if (isPlainTest(node.expression)) return;
  state.evaluates = true;
  state.doubts.add("[[ … ]] can evaluate");
  readLoosely(node, state);
}

function readFunction(node: NodeOf<"Function">, state: State): void {
  state.doubts.add("it defines a function");
  const name = node.name.value;
  state.functions.add(name);
  const from = state.commands.length;
  perhaps(state, () => readNode(node.body, state, false));
  const calls = state.commands.slice(from).some((command) => command.words[0]?.value === name);
  if (calls) state.unclear.add("a function that calls itself (a fork bomb?)");
}

/** Visits everything below, for deny rules and danger. The caller has noted the doubt. */
function readLoosely(node: SyntaxNode, state: State): void {
  forEachChild(node, (child) => {
    state.evaluates ||= isEvaluating(child); // quotes around an expansion do not keep it from evaluating
    if (child.type === "Script") readApart(child, state);
    else if (child.type === "Statement") readStatement(child, state);
    else if (child.type === "Word") readLooseWord(child, state);
    else if (commandTypes.has(child.type)) perhaps(state, () => readNode(child, state, false));
    else readLoosely(child, state);
  });
}

function readLooseWord(node: Word, state: State): void {
  readParts(node, state);
  if (node.parts === undefined) return noteDormant(node.value, state);
  for (const part of node.parts) if ("value" in part) noteDormant(part.value, state);
}

function readCommand(node: Command, state: State, isFed: boolean): void {
  state.words += node.args.length + 1;
  if (isFull(state)) return;
  const env = node.prefix.filter((item) => item.type === "Assignment").map((item) => readAssignment(item, state));
  const fed = isFed || node.redirects.some((item) => item.type !== "Redirect" || item.operator.startsWith("<"));
  for (const redirect of node.redirects) readRedirect(redirect, state);
  if (node.name === undefined) {
    if (env.length === 0) return;
    state.assigned = true;
    state.variables.clear();
    state.doubts.add(`it sets ${env.map(({ name }) => name).join(", ")}`);
    return;
  }
  if (hasStrayParenthesis(node, state.source)) state.unclear.add("it does not parse (a parenthesis after a command)");
  const words = [node.name, ...node.args].flatMap((item) =>
    item.type === "Word" ? readWords(item, state) : argumentAssignment(item, state),
  );
  if (state.functions.has(words[0]?.value ?? "")) state.doubts.add("it calls a function defined on the line");
  const found = { words, cwds: state.cwds, env, fed };
  state.commands.push(found);
  const texts = words.map(({ value, raw }) => value ?? raw);
  state.assigned ||= setsVariables(texts);
  // These builtins set or read variables by name, and evaluate subscripts in the name.
  if (evaluates(texts)) {
    state.evaluates = true;
    if (words.slice(1).some(({ value }) => value === undefined || !plainValue.test(value))) state.tainted = true;
    words.forEach(({ value }) => noteDormant(value, state));
  }
  const at = words.findIndex(({ value }) => !/^(command|builtin|-p|--)$/.test(value ?? ""));
  if (words[at]?.value === "cd") changeFolder({ ...found, words: words.slice(at) }, state);
}

function readWords(node: Word, state: State): readonly ShellWord[] {
  readParts(node, state);
  const words = readWord(node, state);
  if (words.some((word) => word.value === undefined)) state.doubts.add(`only running it tells what ${node.text} is`);
  return words;
}

function argumentAssignment(node: Assignment, state: State): readonly ShellWord[] {
  const { value } = readAssignment(node, state);
  const name = node.append ? `${node.name}+` : node.name;
  return [{ raw: node.text, value: value === undefined ? undefined : `${name}=${value}` }];
}

function readAssignment(node: Assignment, state: State): { name: string; value: string | undefined } {
  if (node.index !== undefined || node.value.type === "ArrayValue") {
    state.doubts.add("arrays can evaluate");
    state.tainted = true;
    state.evaluates ||= node.index !== undefined;
    readLoosely(node, state);
    return { name: node.name, value: undefined };
  }
  if (node.name === "PATH") state.setsPath = true;
  const words = readWords(node.value, state);
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
    state.evaluates ||= isEvaluating(part);
    readLoosely(part, state);
  }
}

/** Reads the script of a substitution. Positions in it may refer to another text. */
function readApart(script: ParsedScript, state: State): void {
  const { source } = state;
  state.source = undefined;
  inOwnProcess(state, () => readScript(script, state));
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
  const words = readWords(redirect.target, state);
  const target = words.length === 1 ? words[0]?.value : undefined;
  if (redirect.type === "HereString") return;
  const { operator } = redirect;
  if (target === undefined) {
    state.writesBlindly ||= operator !== "<";
    return void state.doubts.add(`only running it tells where ${redirect.target.text} points`);
  }
  // `>&1` and `<&-` move descriptors; `>& name` opens a file.
  if ((operator === ">&" || operator === "<&") && /^(\d+-?|-)$/.test(target)) return;
  const use = writing.has(operator) || operator === ">&" ? "write" : "read";
  state.redirects.push({ use, target, cwds: state.cwds });
}
