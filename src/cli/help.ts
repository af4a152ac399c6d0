/**
 * What `callgate COMMAND --help` prints: every flag with its short form and what follows it, every argument in its place.
 * And what is said about a command line that cannot be read: what is wrong with it, and what would be right.
 */
import {
  AliasNotFoundError,
  ArgumentParseError,
  EnumValidationError,
  FlagNotFoundError,
  InvalidNegatedFlagSyntaxError,
  UnexpectedFlagError,
  UnexpectedPositionalError,
  UnsatisfiedFlagError,
  UnsatisfiedPositionalError,
  type Command,
  type CommandContext,
  type RouteMap,
} from "@stricli/core";
import { distance, nearest } from "../base/text.ts";

type Target = Command<CommandContext> | RouteMap<CommandContext>;

/** Short forms that people know from other agents. A command has those whose flags it takes. */
const shortFlags: Readonly<Record<string, string>> = {
  m: "model",
  C: "cwd",
  p: "profile",
  a: "approval",
  s: "sandbox",
};

/** The same command, which also takes the short forms of its flags. */
export function withShortFlags<T extends Target>(target: T): T {
  if (!("parameters" in target)) {
    const find = target.getRoutingTargetForInput;
    return {
      ...target,
      getRoutingTargetForInput: (word: string) => {
        const found = find(word);
        return found === undefined ? undefined : withShortFlags(found);
      },
    };
  }
  const { parameters } = target;
  const flags: object = parameters.flags ?? {};
  const short = Object.entries(shortFlags).filter(([, name]) => Object.hasOwn(flags, name));
  return { ...target, parameters: { ...parameters, aliases: { ...Object.fromEntries(short), ...parameters.aliases } } };
}

/** The command or group that the words before the first flag name, and those words. */
export function findTarget(root: Target, words: readonly string[]): { readonly target: Target; readonly path: string } {
  let target = root;
  const path: string[] = [];
  for (const word of words) {
    const next = "getRoutingTargetForInput" in target ? target.getRoutingTargetForInput(word) : undefined;
    if (next === undefined) break;
    path.push(word);
    target = next;
  }
  return { target, path: path.join(" ") };
}

export function formatHelp(root: Target, words: readonly string[]): string {
  const { target, path } = findTarget(root, words);
  const about = target.fullDescription === undefined ? target.brief : `${target.brief}\n\n${target.fullDescription}`;
  const body = "parameters" in target ? describeCommand(target, path) : describeGroup(target, path);
  return `${body.usage}\n\n${about}\n\n${body.rest}`;
}

interface Body {
  readonly usage: string;
  readonly rest: string;
}

function describeGroup(group: RouteMap<CommandContext>, path: string): Body {
  const entries = group.getAllEntries();
  const rows = entries.map(({ name, target }) => [name.original, target.brief] as const);
  const usual = group.getDefaultCommand();
  const alone = entries.find(({ target }) => target === usual)?.name.original;
  const more =
    alone === undefined
      ? ""
      : `'callgate ${path} [FLAGS]' is '${alone}': callgate ${path} ${alone} --help lists the flags.\n`;
  return {
    usage: `Usage: callgate ${path} ${bracket("COMMAND", alone !== undefined)} …`,
    rest: `Commands:\n${columns(rows)}\n\n${more}callgate ${path} COMMAND --help says what each takes.`,
  };
}

/** What help needs of a flag, of whichever kind. */
interface FlagWords {
  readonly kind: string;
  readonly brief: string;
  readonly placeholder?: string;
  readonly values?: readonly string[];
  readonly optional?: boolean;
  readonly variadic?: boolean | string;
  readonly default?: unknown;
  readonly hidden?: boolean;
  readonly withNegated?: boolean;
}

interface ArgumentWords {
  readonly brief: string;
  readonly placeholder?: string;
  readonly optional?: boolean;
  readonly default?: unknown;
}

function describeCommand({ parameters }: Command<CommandContext>, path: string): Body {
  // Stricli's types of these are about parsing; help reads only the words in them.
  const flags = Object.entries((parameters.flags ?? {}) as Readonly<Record<string, FlagWords>>);
  const positional = parameters.positional as
    | { readonly kind: "tuple"; readonly parameters: readonly ArgumentWords[] }
    | { readonly kind: "array"; readonly parameter: ArgumentWords }
    | undefined;
  const args: readonly (readonly [string, ArgumentWords])[] =
    positional === undefined
      ? []
      : positional.kind === "array"
        ? [[`[${positional.parameter.placeholder ?? "WORDS"} …]`, positional.parameter]]
        : positional.parameters.map((one) => [bracket(one.placeholder ?? "ARG", isOptional(one)), one]);
  const short = new Map(Object.entries(parameters.aliases ?? {}).map(([letter, name]) => [String(name), letter]));
  const shown = flags.filter(([, flag]) => flag.hidden !== true);
  const needed = shown.filter(([, flag]) => flag.kind !== "boolean" && !isOptional(flag));
  const words = [
    "callgate",
    path,
    "[FLAGS]",
    ...needed.map(([name, flag]) => `--${toKebab(name)} ${placeholder(flag)}`),
    ...args.map(([name]) => name),
  ];
  const rows = shown.map(([name, flag]) => [flagWords(name, flag, short.get(name)), flagBrief(flag)] as const);
  const sections = [
    ...(args.length === 0 ? [] : [`Arguments:\n${columns(args.map(([name, { brief }]) => [name, brief]))}`]),
    `Flags:\n${columns([...rows, ["-h, --help", "print this"], ["    --", "everything after it is an argument, also where it begins with '-'"]])}`,
  ];
  return { usage: `Usage: ${words.join(" ")}`, rest: sections.join("\n\n") };
}

function isOptional({ optional, default: given }: { readonly optional?: boolean; readonly default?: unknown }) {
  return optional === true || given !== undefined;
}

function bracket(word: string, optional: boolean): string {
  return optional ? `[${word}]` : word;
}

function placeholder({ placeholder: given, values }: FlagWords): string {
  return given ?? (values === undefined ? "VALUE" : values.length <= 3 ? values.join("|") : "MODE");
}

function flagWords(name: string, flag: FlagWords, letter: string | undefined): string {
  const no = flag.kind === "boolean" && flag.default === true && flag.withNegated !== false ? "no-" : "";
  const value = flag.kind === "boolean" ? "" : ` ${placeholder(flag)}`;
  return `${letter === undefined ? "    " : `-${letter}, `}--${no}${toKebab(name)}${value}${flag.variadic ? " …" : ""}`;
}

function flagBrief({ kind, brief, values, default: given, withNegated }: FlagWords): string {
  const choice = values === undefined || values.length <= 3 ? "" : `: ${values.join(", ")}`;
  const isNegated = kind === "boolean" && given === true && withNegated !== false;
  if (isNegated) return `do not ${brief}`;
  return `${brief}${choice}${kind === "boolean" || given === undefined ? "" : ` (${String(given)})`}`;
}

function toKebab(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

function columns(rows: readonly (readonly [string, string])[]): string {
  const width = Math.max(...rows.map(([name]) => name.length));
  return rows.map(([name, brief]) => `  ${name.padEnd(width)}  ${brief}`).join("\n");
}

/**
 * One sentence without a full stop; whoever prints it says which command's help has the rest. Stricli's own function for
 * this goes by the names of its classes, which do not survive being minified.
 */
export function describeMistake(error: unknown, target: Target, path: string): string {
  if (error instanceof FlagNotFoundError)
    return `there is no flag ${dashed(error.input)}${didYouMean(nearFlags(error, target).map(dashed))}`;
  if (error instanceof AliasNotFoundError) return `there is no flag -${error.input}`;
  if (error instanceof ArgumentParseError)
    return `${place(error.externalFlagNameOrPlaceholder)}: ${toText(error.exception)}`;
  if (error instanceof EnumValidationError)
    return `${place(error.externalFlagName)}: '${error.input}' is none of ${error.values.join(", ")}${didYouMean(near(error.input, nearest(error.input, error.values, 1)))}`;
  if (error instanceof UnsatisfiedFlagError) {
    const { externalFlagName: name, nextFlagName: next } = error;
    return `${place(name)} needs a value${next === undefined ? "" : `, and ${place(next)} follows it`}`;
  }
  if (error instanceof UnexpectedPositionalError && !("parameters" in target))
    return unknownName(error.input, target, path);
  if (error instanceof UnexpectedPositionalError)
    return `'${error.input}' is one argument too many: it takes ${error.expectedCount === 0 ? "none" : error.expectedCount}`;
  if (error instanceof UnsatisfiedPositionalError)
    return error.placeholder === "ID"
      ? "ID is missing: 'callgate sessions' lists them, and 'last' stands for the newest"
      : `${error.placeholder} is missing`;
  if (error instanceof InvalidNegatedFlagSyntaxError) return `${place(error.externalFlagName)} takes no value`;
  if (error instanceof UnexpectedFlagError) return `${place(error.externalFlagName)} is given twice`;
  return toText(error);
}

/** Stricli has seen another spelling of a flag, or else a slip is looked for. */
function nearFlags({ input, corrections }: FlagNotFoundError, target: Target): readonly string[] {
  // A group has the flags of the command that stands for it.
  const command = "parameters" in target ? target : target.getDefaultCommand();
  const flags = Object.keys(command?.parameters.flags ?? {}).map(toKebab);
  const found = corrections.length > 0 ? corrections : nearest(input, flags, 1);
  return near(input, found);
}

/** Of the words that are proposed, those that could be a slip: `foo` is none of `cwd`, and `nope` none of `token`. */
function near(input: string, words: readonly string[]): readonly string[] {
  return words.filter((word) => distance(input, word) * 2 <= input.length);
}

/** A group was given the name of a command that it does not have. */
export function unknownName(input: string, target: Target, path: string): string {
  const names = "parameters" in target ? [] : target.getAllEntries().map(({ name }) => name.original);
  return `there is no command '${path} ${input}'${didYouMean(near(input, nearest(input, names, 1)).map((name) => `'${name}'`))}`;
}

/** The end of a sentence about a word that nobody knows. */
function didYouMean(words: readonly string[]): string {
  return words.length === 0 ? "" : `; did you mean ${words.join(" or ")}?`;
}

/** Arguments are known by their placeholder, which is in capitals; everything else is a flag. */
function place(name: string): string {
  return /^[A-Z]/.test(name) ? name : dashed(name);
}

function dashed(name: string): string {
  return name.startsWith("-") ? name : `--${toKebab(name)}`;
}

function toText(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
