/**
 * Programs that run another program or a piece of shell text given to them. What they would run is
 * taken out, as deep as it goes; where that cannot be told, it is said, and a deny rule then holds.
 */
import { programName } from "../paths.ts";
import { isPlainOverride } from "./git.ts";
import { unknownWord, type Found, type ShellWord } from "./found.ts";
import { parseOptions, type OptionsResult, type ParsedOptions } from "./options.ts";
import { isInterpreter, isShell, shellSpec, wrappers, type Wrapper } from "./wrappers.ts";

export interface Unwrapped {
  readonly commands: readonly Found[];
  /** Shell text it would hand to a shell. */
  readonly lines: readonly string[];
  /** Why what it runs cannot be told; undefined if it can, or if it runs nothing. */
  readonly hidden?: string;
  /** Beside what it runs, the program itself does nothing that matters. */
  readonly transparent: boolean;
}

const nothing: Unwrapped = { commands: [], lines: [], transparent: false };

export function unwrap(found: Found): Unwrapped {
  const typed = found.words[0]?.value;
  if (typed === undefined)
    return { ...nothing, hidden: `only running it tells which program ${found.words[0]?.raw ?? ""} is` };
  const { name } = programName(typed);
  if (isShell(name)) return unwrapShell(found);
  // `command -v` only says where a program is.
  if (name === "command" && /^-p?[vV]/.test(found.words[1]?.value ?? "")) return nothing;
  const wrapper = wrappers.get(name);
  if (wrapper !== undefined) return unwrapProgram(found, name, wrapper);
  if (name === "eval") return unwrapText(found.words.slice(1), "eval");
  if (name === "trap") return unwrapText(found.words.slice(1, 2), "trap");
  if (name === "source" || name === ".") return unwrapSource(found);
  if (name === "alias")
    return { ...nothing, lines: values(found.words.slice(1)).map((item) => item.slice(item.indexOf("=") + 1)) };
  if (isFedCode(found, name)) return { ...nothing, hidden: `${name} runs what it is fed` };
  if (name === "find") return unwrapFind(found);
  if (name === "git") return unwrapGit(found);
  return nothing;
}

function unwrapSource(found: Found): Unwrapped {
  const [, file] = found.words;
  const isFile = file !== undefined && !found.fed && isScriptFile(file);
  return isFile ? nothing : { ...nothing, hidden: "it runs what it is fed in this shell" };
}

/** A file by its name is a script like any other; what is fed or made on the way is not to be told. */
function isScriptFile({ value }: ShellWord): boolean {
  return value !== undefined && !/^\/(dev|proc)\//.test(value);
}

/** An interpreter without a script takes its input for one. */
function isFedCode(found: Found, name: string): boolean {
  if (name === "at" || name === "batch") return true;
  // These take commands from their input whatever file they are given.
  if (/^(crontab|ed|ex|ftp|sftp|psql|mysql|sqlite3|gdb|lldb|dc)$/.test(name)) return found.fed;
  if (/^g?make$/.test(name))
    return found.words.some(({ value = "" }) => /^(-|-f-|--(make)?file=-|.*\/dev\/stdin)$/.test(value));
  if (!found.fed || !isInterpreter(name) || /^(bc|[gmn]?awk)$/.test(name)) return false;
  return found.words.slice(1).every((item) => item.value === undefined || item.value.startsWith("-"));
}

function unwrapText(words: readonly ShellWord[], name: string): Unwrapped {
  const values = words.map((item) => item.value);
  if (values.includes(undefined)) return { ...nothing, hidden: `only running it tells what ${name} evaluates` };
  return { ...nothing, lines: [values.join(" ")] };
}

function unwrapShell(found: Found): Unwrapped {
  const args = found.words.slice(1);
  const known = values(args);
  const parsed = parseOptions(
    known.map((arg) => arg.replace(/^\+/, "-")),
    shellSpec,
  );
  if ("unknown" in parsed) return { ...nothing, hidden: `cannot tell what the shell is given (${parsed.unknown})` };
  const names = new Set(parsed.options.map((option) => option.name));
  const [first] = args.slice(args.length - parsed.operands.length);
  if (names.has("version") || names.has("help")) return nothing;
  if (names.has("c")) {
    if (first?.value === undefined) return { ...nothing, hidden: "only running it tells what the shell is given" };
    // Words after the text are $0, $1, …: the text is then read as it stands, and uses of them are doubts there.
    const startup = [...names].some((name) => ["i", "rcfile", "init-file", "O", "o", "s"].includes(name));
    // Another shell than bash or sh may read the text differently.
    const same = ["bash", "sh", "dash"].includes(programName(found.words[0]?.value ?? "").name);
    return { commands: [], lines: [first.value], transparent: same && !startup };
  }
  if (first === undefined) return { ...nothing, hidden: "the shell runs what it is fed" };
  return isScriptFile(first) ? nothing : { ...nothing, hidden: "only running it tells which script the shell runs" };
}

function unwrapProgram(found: Found, name: string, wrapper: Wrapper): Unwrapped {
  const args = found.words.slice(1);
  const parsed = parseOptions(values(args), wrapper.spec);
  if ("unknown" in parsed) return { ...nothing, hidden: `cannot tell what ${name} runs (${parsed.unknown})` };
  const lines = textOptions(parsed, wrapper);
  let operands = args.slice(args.length - parsed.operands.length);
  const env = [...found.env];
  for (let [item] = operands; wrapper.assignments && item?.raw.includes("="); [item] = operands) {
    env.push({
      name: (item.value ?? item.raw).split("=")[0]!,
      value: item.value?.slice(item.value.indexOf("=") + 1),
    });
    operands = operands.slice(1);
  }
  const inner = operands.slice(wrapper.skip ?? 0).map((item) => (isReplaced(item, parsed) ? unknownWord : item));
  if (wrapper.joins && inner.length === 0) return { ...nothing, hidden: "it runs the lines it is fed" };
  // The split string of env has escapes and variables of its own.
  const odd = lines.find((line) => name === "env" && /[\\$]/.test(line));
  if (odd !== undefined) return { ...nothing, hidden: `only running it tells what env makes of ${odd}` };
  const cwds = parsed.options.some((option) =>
    ["C", "chdir", "D", "R", "chroot", "wd", "root", "working-directory"].includes(option.name),
  )
    ? []
    : found.cwds;
  const fed = found.fed || wrapper.appends === true;
  const words = wrapper.appends ? [...inner, unknownWord] : inner;
  const commands = inner.length === 0 ? [] : [{ words, cwds, env, fed }];
  const joined = wrapper.joins ? [values(inner).join(" ")] : [];
  // Options may come after the first operand too: `su user -c text`.
  const later = wrapper.text === undefined ? undefined : parseOptions(values(inner), wrapper.spec);
  const risky = parsed.options.some((option) =>
    ["S", "split-string", "o", "output", "a", "append", "C", "chdir"].includes(option.name),
  );
  return {
    commands,
    lines: [...lines, ...joined, ...(later === undefined ? [] : textOptions(later, wrapper))],
    transparent: wrapper.transparent === true && !risky && inner.length > 0,
  };
}

/** Values of options that are shell text. */
function textOptions(parsed: OptionsResult, wrapper: Wrapper): readonly string[] {
  if ("unknown" in parsed) return [];
  return parsed.options.filter((option) => wrapper.text?.includes(option.name)).map((option) => option.value ?? "");
}

/** A word of xargs -I that is filled in from the input. */
function isReplaced(item: ShellWord, { options }: ParsedOptions): boolean {
  return options.some(
    ({ name, value = "{}" }) => ["I", "i", "replace"].includes(name) && item.value?.includes(value) === true,
  );
}

function unwrapFind(found: Found): Unwrapped {
  const commands: Found[] = [];
  const { words } = found;
  for (let index = 1; index < words.length; index++) {
    if (!/^-(exec|execdir|ok|okdir)$/.test(words[index]?.value ?? "")) continue;
    const end = words.findIndex((item, at) => at > index && (item.value === ";" || item.value === "+"));
    const inner = words
      .slice(index + 1, end < 0 ? undefined : end)
      .map((item) => (item.value?.includes("{}") ? unknownWord : item));
    if (inner.length > 0) commands.push({ ...found, words: inner, cwds: [] });
  }
  return { ...nothing, commands };
}

/** git runs programs named on its command line: aliases, bisect run, rebase --exec, submodule foreach. */
function unwrapGit(found: Found): Unwrapped {
  const args = found.words.slice(1);
  const lines: string[] = [];
  const commands: Found[] = [];
  args.forEach((item, index) => {
    const value = item.value ?? "";
    if (value === "-c" || value === "--config-env") {
      const setting = args[index + 1]?.value ?? "";
      if (!isPlainOverride(setting)) lines.push(settingText(setting));
    }
    if (/^alias\./i.test(value) && args[index - 1]?.value !== "-c")
      lines.push(settingText(`${value}=${args[index + 1]?.value ?? ""}`));
    if (value === "--exec" || value === "-x") lines.push(args[index + 1]?.value ?? "");
    if (value.startsWith("--exec=")) lines.push(value.slice("--exec=".length));
    if ((value === "run" && args[index - 1]?.value === "bisect") || value === "foreach")
      commands.push({ ...found, words: args.slice(index + 1).filter((next) => !next.raw.startsWith("--")), cwds: [] });
    if (value === "foreach") lines.push(values(args.slice(index + 1)).join(" "));
  });
  return {
    ...nothing,
    commands: commands.filter((command) => command.words.length > 0),
    lines: lines.filter((line) => line !== ""),
  };
}

/** What a setting of git may run: an alias is a subcommand unless it begins with `!`. */
function settingText(setting: string): string {
  const value = setting.slice(setting.indexOf("=") + 1);
  if (value.startsWith("!")) return value.slice(1);
  return /^alias\./i.test(setting) && value !== "" ? `git ${value}` : value;
}

/** A word nobody can know never looks like an option here; the unknown stays visible in the words themselves. */
function values(words: readonly ShellWord[]): readonly string[] {
  return words.map((item) => item.value ?? `\u0000${item.raw}`);
}
