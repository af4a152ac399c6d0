/** Interpreters: which file they run, which code they are given, and when nobody can tell what they run. */
import { resolveReal, statOf } from "../paths.ts";
import { awkEffect } from "./awk.ts";
import { isPlainCode } from "./code.ts";
import type { Found } from "./found.ts";
import { parseOptions, type OptionSpec } from "./options.ts";
import { sedEffect } from "./sed.ts";
import { isInterpreter } from "./wrappers.ts";

export interface Scripted {
  /** Files it runs. */
  readonly files: readonly string[];
  /** Why nobody can tell what it runs, so that a person has to look. */
  readonly hidden?: string;
  /** It may start anything, though it need not. Only a deny rule takes that into account. */
  readonly untold: boolean;
}

/** For a command that runs no script. */
export const noScripts: Scripted = { files: [], untold: false };
const nothing = noScripts;
const untold: Scripted = { files: [], untold: true };

/** How an interpreter's options are read: which hold code, which name a file it runs. */
interface Interpreter {
  readonly spec: OptionSpec;
  readonly code: readonly string[];
  readonly files?: readonly string[];
  /** After one of these options, the remaining words belong to the program (`python -m`). */
  readonly ends?: readonly string[];
}

const interpreters: readonly (readonly [RegExp, Interpreter])[] = [
  [
    /^(python|pypy)[\d.]*$/,
    {
      spec: { short: "bBdEhiIOPqsSuvVxc:m:W:X:Q:", long: "help version check-hash-based-pycs=", stopAtOperand: true },
      code: ["c"],
      ends: ["m"],
    },
  ],
  [
    /^perl[\d.]*$/,
    {
      spec: { short: "acnpsStTuUvwWXe:E:0?C?D?F?I:i?l?m:M:x?h", long: "version", stopAtOperand: true },
      code: ["e", "E"],
    },
  ],
  [
    /^(node|nodejs)$/,
    {
      spec: {
        short: "e:p:r:C:icvh",
        long: "eval= print= require= import= loader= experimental-loader= conditions= env-file= env-file-if-exists= input-type= title= test test-only watch check interactive version help no-warnings trace-warnings enable-source-maps inspect? inspect-brk? expose-gc experimental-strip-types experimental-transform-types test-reporter= test-name-pattern= max-old-space-size= stack-trace-limit= unhandled-rejections= dns-result-order= preserve-symlinks run= disable-warning= permission allow-fs-read= allow-fs-write=",
        stopAtOperand: true,
      },
      code: ["e", "p", "eval", "print"],
      files: ["r", "require", "import", "loader", "experimental-loader"],
    },
  ],
  [
    /^ruby[\d.]*$/,
    {
      spec: { short: "acdhlnpsSvwyUe:r:I:C:E:F:i?x?0?W?K?T?", long: "version help", stopAtOperand: true },
      code: ["e"],
    },
  ],
  [
    /^php[\d.]*$/,
    {
      spec: { short: "aChilmnqsvwHr:f:d:c:B:R:F:E:z:S:t:", long: "version help run= file=", stopAtOperand: true },
      code: ["r", "B", "R", "E", "run"],
      files: ["f", "F", "file"],
    },
  ],
  [/^(lua[\d.]*|luajit)$/, { spec: { short: "iEvWe:l:", stopAtOperand: true }, code: ["e"] }],
];

/** The scripts and the code that a command gives to an interpreter. */
export function scriptsOf(found: Found, name: string): Scripted {
  if (/^([gmn]?awk)$/.test(name)) return awkScripts(found);
  if (/^g?sed$/.test(name)) return sedScripts(found);
  if (/^g?make$/.test(name)) return makeScripts(found);
  const interpreter = interpreters.find(([names]) => names.test(name))?.[1];
  if (interpreter !== undefined) return interpreterScripts(found, name, interpreter);
  if (name === "at" || name === "batch" || (/^(deno|bun)$/.test(name) && found.fed))
    return { ...nothing, hidden: `${name} runs what it is fed` };
  // These take commands from their input, whatever file they are given.
  if (
    found.fed &&
    /^(crontab|ed|ex|ftp|sftp|psql|mysql|sqlite3|gdb|lldb|dc|m4|jshell|irb|gnuplot|octave|swipl|sbcl|clisp|racket|ocaml|utop|iex|newgrp|sg|xonsh|nu|elvish)$/.test(
      name,
    )
  )
    return { ...nothing, hidden: `${name} runs what it is fed` };
  // Builtins of bash that come from a file.
  if (name === "enable" && found.words.some(({ value }) => value === undefined || /^-[a-z]*f/.test(value)))
    return untold;
  if (!isInterpreter(name) || name === "bc") return nothing;
  const args = found.words.slice(1).map((item) => item.value);
  const fed = found.fed && args.every((arg) => arg === undefined || arg.startsWith("-"));
  if (fed) return { ...nothing, hidden: `${name} runs what it is fed` };
  return args.some((arg) => arg === undefined || mayStart(name, arg)) ? untold : nothing;
}

/** Words by which databases, debuggers and editors start a program. */
function mayStart(name: string, arg: string): boolean {
  if (name === "sqlite3")
    return /^[^\S\n]*\.(?!(tables?|schema|headers?|mode|dump|width|databases|indexes|separator|nullvalue|quit|exit|help)\b)|load_extension|writefile|\bedit\s*\(/im.test(
      arg,
    );
  if (/^(psql|mysql)$/.test(name)) return /\\!|\\o|\\g|\bsystem\b|\bprogram\b|\|/i.test(arg);
  if (name === "dc") return arg.includes("!");
  if (/^(ssh|tmux|screen|crontab|make|gmake|bc|nano)$/.test(name)) return false;
  return /[(!`;|]|\b(shell|system|exec|run|eval|spawn)\b/.test(arg);
}

function interpreterScripts(found: Found, name: string, interpreter: Interpreter): Scripted {
  const words = found.words.slice(1).map((item) => item.value ?? unknown);
  const parsed = parseOptions(optionWords(words, name, interpreter), interpreter.spec);
  const fedCode = { ...nothing, hidden: `${name} runs what it is fed` };
  // An unknown option may take a value, so if there is input to run, nobody can tell which word is the script.
  if ("unknown" in parsed) return found.fed ? fedCode : untold;
  const stays = parsed.options.some(({ name: option }) => /^(i|interactive)$/.test(option));
  if (found.fed && ((stays && !name.startsWith("perl")) || found.env.some((item) => item.name === "PYTHONINSPECT")))
    return fedCode;
  const code = parsed.options.flatMap(({ name: option, value = unknown }) =>
    interpreter.code.includes(option) ? [value] : [],
  );
  const ended = parsed.options.some(({ name: option }) => interpreter.ends?.includes(option));
  const files = parsed.options.flatMap(({ name: option, value = unknown }) =>
    interpreter.files?.includes(option) && /^[./]|\0/.test(value) ? [value] : [],
  );
  const [script] = parsed.operands;
  const asksOnly = parsed.options.some(({ name: option }) => ["version", "help", "v", "V", "h"].includes(option));
  if (code.length === 0 && !ended && files.length === 0) {
    if (script === undefined) return asksOnly || !found.fed ? nothing : fedCode;
    if (script === "-" || (script !== unknown && isFedPath(script, found.cwds))) return fedCode;
    if (found.fed && script !== unknown && !isFile(script, found.cwds)) return fedCode;
    return script === unknown ? untold : { files: [script], untold: false };
  }
  // perl opens a file named `rm x|` by running it.
  const opens =
    name.startsWith("perl") && parsed.operands.some((operand) => operand === unknown || /^\||\|$/.test(operand));
  const plain =
    code.every((text) => isPlainCode(name, text)) && !opens && !runsTexts(name, parsed.options, parsed.operands);
  return { files: files.filter((file) => file !== unknown), untold: !plain || files.includes(unknown) };
}

/** Modules of Python that run a text they are given. */
function runsTexts(
  name: string,
  options: readonly { readonly name: string; readonly value: string | undefined }[],
  operands: readonly string[],
): boolean {
  if (name.startsWith("perl")) return options.some((option) => option.name === "M" || option.name === "m");
  const module = options.find((option) => option.name === "m")?.value ?? "";
  return (
    /^(timeit|pdb|cProfile|profile|trace|code|runpy|doctest)$/.test(module) &&
    operands.some((text) => !/^[\w./-]+$/.test(text))
  );
}

const unknown = "\0";

/** What follows `-m MODULE` belongs to the module; node reads `-pe` as -p. */
function optionWords(words: readonly string[], name: string, { ends }: Interpreter): readonly string[] {
  if (name.startsWith("node")) return words.map((word) => (word === "-pe" || word === "-ep" ? "-p" : word));
  const first = words.findIndex((word) => !word.startsWith("-"));
  const at = ends === undefined ? -1 : words.findIndex((word) => /^-[a-zA-Z]*m$/.test(word));
  if (at < 0 || (first >= 0 && at > first)) return words;
  return [...words.slice(0, at + 2), "--", ...words.slice(at + 2)];
}

const awkSpec: OptionSpec = {
  short: "F:v:f:e:i:l:E:W:bcCghIkMnNOPrsStV",
  long: "field-separator= assign= file= source= include= load= exec= version help posix traditional sandbox csv re-interval characters-as-bytes non-decimal-data",
  stopAtOperand: true,
};

function awkScripts(found: Found): Scripted {
  const parsed = parseOptions(
    found.words.slice(1).map((item) => item.value ?? unknown),
    awkSpec,
  );
  if ("unknown" in parsed) return untold;
  const given = (...names: readonly string[]) =>
    parsed.options.flatMap(({ name, value = unknown }) => (names.includes(name) ? [value] : []));
  const files = given("f", "file", "i", "include", "E", "exec");
  const fed = files.find((file) => file !== unknown && (file === "-" || isFedPath(file, found.cwds)));
  if (fed !== undefined) return { ...nothing, hidden: "awk runs what it is fed" };
  const sources = given("e", "source");
  const [script] = parsed.operands;
  const code = files.length + sources.length > 0 ? sources : script === undefined ? [] : [script];
  const loads = given("l", "load", "W").length > 0;
  return {
    files: files.filter((file) => file !== unknown),
    untold: loads || files.includes(unknown) || code.some((text) => text === unknown || awkEffect(text) === "runs"),
  };
}

const sedSpec: OptionSpec = {
  short: "nEruszbl:e:f:i?",
  long: "quiet silent expression= file= in-place? regexp-extended separate unbuffered null-data posix line-length= debug sandbox follow-symlinks binary help version",
};

function sedScripts(found: Found): Scripted {
  const parsed = parseOptions(
    found.words.slice(1).map((item) => item.value ?? unknown),
    sedSpec,
  );
  if ("unknown" in parsed) return untold;
  const given = (...names: readonly string[]) =>
    parsed.options.flatMap(({ name, value = unknown }) => (names.includes(name) ? [value] : []));
  const files = given("f", "file");
  if (files.some((file) => file !== unknown && (file === "-" || isFedPath(file, found.cwds))))
    return { ...nothing, hidden: "sed runs what it is fed" };
  const expressions = given("e", "expression");
  const script = files.length + expressions.length > 0 ? expressions : parsed.operands.slice(0, 1);
  if (script.includes(unknown)) return untold;
  const effect = sedEffect(script.join("\n"));
  if (effect === "runs") return { ...nothing, hidden: "the sed script runs a program" };
  return { files: files.filter((file) => file !== unknown), untold: effect === "unknown" || files.includes(unknown) };
}

function makeScripts(found: Found): Scripted {
  const words = found.words.slice(1).map((item) => item.value);
  const files: (string | undefined)[] = [];
  for (const [index, word = ""] of words.entries()) {
    const glued = /^(?:-[A-Za-z]*f|--(?:make)?file=)(.+)$/s.exec(word)?.[1];
    if (glued !== undefined && !word.startsWith("--eval")) files.push(glued);
    else if (/^(-[A-Za-z]*f|--(make)?file)$/.test(word)) files.push(words[index + 1]);
  }
  if (files.some((file) => file !== undefined && (file === "-" || isFedPath(file, found.cwds))))
    return { ...nothing, hidden: "make runs what it is fed" };
  return { files: files.filter((file) => file !== undefined), untold: files.includes(undefined) };
}

/** A path to a descriptor or a device, however it is written. What is read there is not a file. */
export function isFedPath(path: string, cwds: readonly string[]): boolean {
  const leads = (cwds.length === 0 ? ["/"] : cwds).map((cwd) => resolveReal(path, cwd) ?? "/dev");
  // `/proc/self/fd/0` leads to whatever is open in this process now, so the text of the path counts as well.
  return [...leads, normal(path)].some((real) => /^\/(dev|proc)(\/|$)/.test(real));
}

function normal(path: string): string {
  const kept: string[] = [];
  for (const step of path.split("/"))
    if (step === "..") kept.pop();
    else if (step !== "" && step !== ".") kept.push(step);
  return path.startsWith("/") ? `/${kept.join("/")}` : kept.join("/");
}

function isFile(path: string, cwds: readonly string[]): boolean {
  return cwds.length > 0 && cwds.every((cwd) => statOf(resolveReal(path, cwd) ?? "")?.isFile() === true);
}
