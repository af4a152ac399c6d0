/** What is known about a command: every simple command it would start, how risky each of them is, and why. */
import { resolve } from "node:path";
import type { Command } from "../../spec/access.ts";
import { isSecretName, programName } from "../paths.ts";
import { dangerOf, talksToNetwork } from "./danger.ts";
import { isSafeAssignment, toArgv, word, type Found, type LineReading, type Redirected } from "./found.ts";
import { foreignDoubts } from "./foreign.ts";
import { judge } from "./harmless.ts";
import { readLine } from "./line.ts";
import { createLook, type Look, type Surroundings } from "./look.ts";
import { takesCommands } from "./handed.ts";
import { unwrap, type Unwrapped } from "./unwrap.ts";
import { isInterpreter, isWrapper } from "./wrappers.ts";

export interface Step {
  readonly found: Found;
  readonly argv: readonly string[];
  /** The program by its bare name. Undefined if only running it would tell. */
  readonly name: string | undefined;
  /** The program is found on the path or in a system folder, and is not a file of the workspace. */
  readonly system: boolean;
  readonly risk: "harmless" | "other" | "dangerous";
  readonly reason: string;
  /** It runs something that cannot be named. */
  readonly hidden: boolean;
  /** Text in another language that it is given. It is searched for denied names. */
  readonly code: readonly string[];
  /** It may start anything. Only a deny rule takes that into account. */
  readonly untold: boolean;
  /** Commands it may be made to run, by options and variables. */
  readonly possible: readonly Step[];
  /** Files it runs, as they are written on the line. */
  readonly runs: readonly string[];
}

/** What is known about a whole line, including lines inside it and commands inside commands. */
export interface Understood extends Omit<LineReading, "commands"> {
  readonly steps: readonly Step[];
}

const maxSteps = 400;
const maxText = 200_000;
const maxReads = 300;
const maxWords = 2_000;

export function understand(command: Command, at: Surroundings): Understood {
  // The map holds only what is put there below.
  const known = at.understood?.get(command) as Understood | undefined;
  if (known !== undefined) return known;
  const understood = read(command, at);
  at.understood?.set(command, understood);
  return understood;
}

function read(command: Command, at: Surroundings): Understood {
  const cwd = resolve(at.workspace, command.cwd ?? ".");
  const collected: Collected = {
    steps: [],
    redirects: [],
    doubts: new Set(),
    unclear: new Set(),
    dormant: new Set(),
    evaluates: false,
    writesBlindly: false,
    setsPath: false,
    assigned: false,
    text: 0,
    home: at.home,
    look: createLook(at),
  };
  if (command.shell !== undefined) {
    for (const doubt of foreignDoubts(command.shell, command.dialect))
      (doubt.unclear ? collected.unclear : collected.doubts).add(doubt.text);
    // Reading PowerShell as bash would only find commands that are not there.
    if (command.dialect !== "powershell") addLine(command.shell, [cwd], collected);
  } else if (command.argv !== undefined && command.argv.length > 0) {
    const total = command.argv.reduce((sum, item) => sum + item.length, 0);
    if (total > maxText || command.argv.length > maxWords) collected.unclear.add("the words are too long to look at");
    else addCommands([{ words: command.argv.map(word), cwds: [cwd], env: [], fed: false }], collected);
  } else collected.unclear.add("there is no command");
  const { steps, redirects, evaluates, writesBlindly, setsPath } = collected;
  return {
    steps,
    redirects,
    evaluates,
    writesBlindly,
    setsPath,
    doubts: [...collected.doubts],
    unclear: [...collected.unclear],
    dormant: [...collected.dormant],
  };
}

/** What has been found out so far about a line and the lines inside it. */
interface Collected {
  readonly steps: Step[];
  readonly redirects: Redirected[];
  readonly doubts: Set<string>;
  readonly unclear: Set<string>;
  readonly dormant: Set<string>;
  readonly home: string;
  readonly look: Look;
  evaluates: boolean;
  writesBlindly: boolean;
  setsPath: boolean;
  /** HOME or PWD was set for what is read from here on. */
  assigned: boolean;
  /** How many characters of shell text were read so far, including texts inside texts. */
  text: number;
}

function addLine(line: string, cwds: readonly string[], collected: Collected, env: Found["env"] = []): void {
  collected.text += line.length;
  if (collected.text > maxText || collected.steps.length >= maxSteps)
    return void collected.unclear.add("there is too much in it to read");
  collected.assigned ||= env.some(({ name }) => name === "HOME" || name === "PWD");
  const reading = readLine(line, {
    cwds,
    home: collected.home,
    mayList: collected.look.mayRead,
    assigned: collected.assigned,
  });
  reading.doubts.forEach((doubt) => collected.doubts.add(doubt));
  reading.unclear.forEach((doubt) => collected.unclear.add(doubt));
  reading.dormant.forEach((text) => collected.dormant.add(text));
  collected.evaluates ||= reading.evaluates;
  collected.writesBlindly ||= reading.writesBlindly;
  collected.setsPath ||= reading.setsPath;
  collected.redirects.push(...reading.redirects);
  addCommands(reading.commands, collected);
}

/** Works through a list instead of recursing, so that deep nesting cannot end it early. */
function addCommands(first: readonly Found[], collected: Collected): void {
  const waiting = first.toReversed();
  for (let found = waiting.pop(); found !== undefined; found = waiting.pop()) {
    if (collected.steps.length >= maxSteps) return void collected.unclear.add(`it runs more than ${maxSteps} commands`);
    const inner = unwrap(found);
    collected.steps.push(toStep(found, inner, readPossible(found, inner, collected), collected.look));
    waiting.push(...inner.commands.toReversed());
    for (const line of inner.lines) addLine(line, found.cwds, collected, found.env);
  }
}

interface Possible {
  readonly steps: readonly Step[];
  readonly untold: boolean;
}

const nothingPossible: Possible = { steps: [], untold: false };

/** Reads what is passed on into a separate list. It is shown to nobody, and judged only for denial and danger. */
function readPossible(found: Found, inner: Unwrapped, collected: Collected): Possible {
  const { maybe, perhaps } = inner;
  if (maybe.length === 0 && perhaps.length === 0) return nothingPossible;
  const steps: Step[] = [];
  let untold = false;
  for (const [index, text] of [...maybe, ...perhaps].entries()) {
    const own: Collected = {
      ...collected,
      steps: [],
      redirects: [],
      doubts: new Set(),
      unclear: new Set(),
      dormant: new Set(),
    };
    addLine(text, found.cwds, own, found.env);
    collected.text = own.text;
    const certain = index < maybe.length;
    const hides = own.steps.some((step) => step.hidden || step.untold);
    if (certain ? own.unclear.size > 0 || hides : hides && own.unclear.size === 0 && isDisguised(text)) untold = true;
    if (certain || own.unclear.size === 0) steps.push(...own.steps);
  }
  return { steps, untold };
}

/** The program's name is written with quotes or escapes that only a shell would remove. */
function isDisguised(text: string): boolean {
  const [first = ""] = /^\s*(?:\$\([^)]*\)|\$\{[^}]*\}|`[^`]*`|\S)*/.exec(text) ?? [];
  return /\$\(|\$\{\w*[^\w}]|`|""|''|\\|\w\$\w/.test(first);
}

function toStep(found: Found, inner: Unwrapped, possible: Possible, look: Look): Step {
  const typed = found.words[0]?.value;
  const { name, system } = typed === undefined ? { name: undefined, system: false } : programName(typed);
  const argv = toArgv(found);
  const code = name !== undefined && isInterpreter(name) ? argv.slice(1) : [];
  const { risk, reason } = riskOf({ found, argv, name, system }, inner, possible.steps, look);
  // One object literal without spreads, because every command of every line becomes one of these.
  return {
    found,
    argv,
    name,
    system,
    hidden: inner.hidden !== undefined,
    code,
    untold: inner.untold || possible.untold,
    possible: possible.steps,
    runs: inner.runs,
    risk,
    reason,
  };
}

function riskOf(
  { found, argv, name, system }: Pick<Step, "found" | "argv" | "name" | "system">,
  inner: Unwrapped,
  possible: readonly Step[],
  look: Look,
): Pick<Step, "risk" | "reason"> {
  if (name === undefined) return { risk: "dangerous", reason: inner.hidden ?? "the program is not known" };
  const danger = dangerOf(name, argv.slice(1));
  if (danger !== undefined) return { risk: "dangerous", reason: `${argv.slice(0, 4).join(" ")}: ${danger}` };
  if (inner.hidden !== undefined) return { risk: "dangerous", reason: inner.hidden };
  const handed = dangerHanded(name, system, found, possible);
  if (handed !== undefined) return { risk: "dangerous", reason: handed };
  const why = notHarmless(found, name, system, inner.transparent, look);
  return why === undefined ? { risk: "harmless", reason: `${name} only looks` } : { risk: "other", reason: why };
}

/** A dangerous command among what a program is given: by an option, by a variable, or as its own words. */
function dangerHanded(name: string, system: boolean, found: Found, possible: readonly Step[]): string | undefined {
  const inside = possible.find((step) => step.risk === "dangerous" && step.name !== undefined && !step.hidden);
  if (inside !== undefined) return inside.reason;
  if (isWrapper(name) || !takesCommands({ name, system })) return undefined;
  const words = found.words.slice(1, 101).map(({ value }) => value ?? "");
  for (const [index, word] of words.entries()) {
    // After `--` come the options of the program that is started: `start-stop-daemon --exec rm -- -rf x`.
    const rest = words.slice(words[index + 1] === "--" ? index + 2 : index + 1);
    if (rest.length === 0 || word.startsWith("-")) continue;
    const danger = dangerOf(programName(word).name, rest);
    if (danger !== undefined && danger !== talksToNetwork) return `${[word, ...rest].slice(0, 4).join(" ")}: ${danger}`;
  }
  return undefined;
}

/** Why a step is not known to be harmless, or undefined. */
function notHarmless(
  found: Found,
  name: string,
  system: boolean,
  transparent: boolean,
  look: Look,
): string | undefined {
  const unsafe = found.env.find((item) => !isSafeAssignment(item));
  if (unsafe !== undefined) return `it sets ${unsafe.name}`;
  if (!system) return `${found.words[0]?.raw ?? ""} is a program of a folder`;
  if (transparent) return undefined;
  const args = found.words.slice(1).map((item) => item.value);
  if (args.includes(undefined)) return `only running it tells what ${name} is given`;
  const judged = judge(
    name,
    args.filter((arg) => arg !== undefined),
  );
  if ("why" in judged) return judged.why;
  if (found.cwds.length === 0) return "the folder it runs in is not known";
  if (judged.reads.length > maxReads) return "it names too many files to look at";
  // `$?` and `$#` are taken to be 0, which is safe only if no path is read.
  if (judged.reads.length > 0 && found.words.some(({ raw }) => /\$[?#]/.test(raw)))
    return "only running it tells what it reads";
  const outside = judged.reads.find((path) => !found.cwds.every((cwd) => look.mayRead(path, cwd)));
  if (outside !== undefined) return `${outside} is outside the workspace or may not be read`;
  const secret = judged.reads.find((path) =>
    found.cwds.some((cwd) => isSecretName(path) || isSecretName(look.real(path, cwd) ?? path)),
  );
  if (secret !== undefined) return `${secret} looks like a file with secrets`;
  if (!found.cwds.every((cwd) => look.mayRead(".", cwd))) return "it runs outside the workspace";
  const { repository, below, contents = false } = judged;
  const doubts = found.cwds.flatMap((cwd) => [
    ...(below?.folders ?? []).map((folder) => look.secretBelow(resolve(cwd, folder), below?.hidden === true)),
    // For `link/..` the kernel follows the link first, so the path is resolved and not shortened as text.
    ...(repository === undefined ? [] : [repositoryReason(look.real(repository, cwd), contents, look)]),
  ]);
  return doubts.find((doubt) => doubt !== undefined);
}

function repositoryReason(folder: string | undefined, contents: boolean, look: Look): string | undefined {
  if (folder === undefined) return "the folder it runs in is not known";
  const doubt = look.repositoryDoubt(folder);
  const secret = doubt === undefined && contents ? look.trackedSecret(folder) : undefined;
  return secret === undefined ? doubt : `${secret}, which the repository holds, looks like a file with secrets`;
}
