/**
 * Programs that run another program or a piece of shell text given to them. What they would run is
 * taken out, however deep it is nested. If it cannot be told, that is stated, and a deny rule then
 * matches.
 */
import { programName } from "../paths.ts";
import { isPlainOverride } from "./git.ts";
import { unknownWord, word, type Found, type ShellWord } from "./found.ts";
import { parseOptions, type OptionsResult, type ParsedOptions } from "./options.ts";
import { handedOn, noneHanded, settingText } from "./handed.ts";
import { isFedPath, noScripts, scriptsOf } from "./scripts.ts";
import { isShell, shellSpec, wrappers, type Wrapper } from "./wrappers.ts";

export interface Unwrapped {
  readonly commands: readonly Found[];
  /** Shell text it would hand to a shell. */
  readonly lines: readonly string[];
  /** Why what it runs cannot be told; undefined if it can, or if it runs nothing. */
  readonly hidden?: string;
  /** Text that may be run. It is read as lines, for deny rules and danger only. */
  readonly maybe: readonly string[];
  /** The same, but only if it can be read as a line. */
  readonly perhaps: readonly string[];
  /** It may start anything, though it need not. Only a deny rule takes that into account. */
  readonly untold: boolean;
  /** Files it runs, as they are written on the line. */
  readonly runs: readonly string[];
  /** The program itself does nothing that matters besides what it runs. */
  readonly transparent: boolean;
}

const nothing: Unwrapped = {
  commands: [],
  lines: [],
  maybe: [],
  perhaps: [],
  untold: false,
  runs: [],
  transparent: false,
};

export function unwrap(found: Found): Unwrapped {
  const inner = unwrapOne(found);
  const typed = found.words[0]?.value;
  if (typed === undefined) return inner;
  const { name, system } = programName(typed);
  const handed = handedOn(found, { name, system, wraps: wrappers.has(name), shell: isShell(name) });
  const scripted = isShell(name) ? noScripts : scriptsOf(found, name);
  if (handed === noneHanded && scripted === noScripts) return inner;
  const hidden = inner.hidden ?? scripted.hidden;
  return {
    ...inner,
    ...(hidden === undefined ? {} : { hidden }),
    maybe: [...inner.maybe, ...handed.texts],
    perhaps: handed.perhaps,
    untold: inner.untold || handed.untold || scripted.untold,
    runs: [...inner.runs, ...handed.files, ...scripted.files],
  };
}

function unwrapOne(found: Found): Unwrapped {
  const typed = found.words[0]?.value;
  if (typed === undefined)
    return { ...nothing, hidden: `only running it tells which program ${found.words[0]?.raw ?? ""} is` };
  const { name, system } = programName(typed);
  // `/dev/fd/9 f` runs whatever was opened there, under a name that says nothing.
  if (!system && isFedPath(typed, found.cwds))
    return { ...nothing, hidden: `only running it tells which program ${typed} is` };
  if (isShell(name)) return unwrapShell(found);
  // `command -v` only prints where a program is.
  if (name === "command" && /^-p?[vV]/.test(found.words[1]?.value ?? "")) return nothing;
  const wrapper = wrappers.get(name);
  if (wrapper !== undefined) return unwrapProgram(found, name, wrapper);
  if (name === "eval") return unwrapText(found.words.slice(found.words[1]?.value === "--" ? 2 : 1), "eval");
  if (name === "trap") {
    const [first, ...rest] = found.words.slice(1);
    return unwrapText(first?.value === "--" ? rest.slice(0, 1) : first === undefined ? [] : [first], "trap");
  }
  if (name === "run-parts") return { ...nothing, hidden: "run-parts runs every program of a folder" };
  if (name === "source" || name === ".") return unwrapSource(found);
  if (name === "alias")
    return { ...nothing, lines: values(found.words.slice(1)).map((item) => item.slice(item.indexOf("=") + 1)) };
  if (name === "find") return unwrapFind(found);
  if (name === "git") return unwrapGit(found);
  return nothing;
}

function unwrapSource(found: Found): Unwrapped {
  const [, file] = found.words;
  const isFile = file !== undefined && !found.fed && isScriptFile(file, found);
  return isFile
    ? { ...nothing, runs: [file.value ?? ""] }
    : { ...nothing, hidden: "it runs what it is fed in this shell" };
}

/** A file given by name is an ordinary script. What comes from input or is made on the way cannot be known. */
function isScriptFile({ value }: ShellWord, found: Found): boolean {
  return value !== undefined && !isFedPath(value, found.cwds);
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
  const operands = args.slice(args.length - parsed.operands.length);
  // A single dash ends the options, as two do: `echo ls | sh -`.
  const [first] = operands[0]?.value === "-" ? operands.slice(1) : operands;
  if (names.has("version") || names.has("help")) return nothing;
  if (names.has("c")) {
    if (first?.value === undefined) return { ...nothing, hidden: "only running it tells what the shell is given" };
    // Words after the text are $0, $1, …. The text is read as it stands, and each use of them is a doubt.
    const startup = [...names].some((name) => ["i", "rcfile", "init-file", "O", "o", "s"].includes(name));
    // Shells other than bash and sh may read the text differently.
    const same = ["bash", "sh", "dash"].includes(programName(found.words[0]?.value ?? "").name);
    return { ...nothing, lines: [first.value], runs: startupFiles(parsed, found), transparent: same && !startup };
  }
  if (first === undefined || names.has("s")) return { ...nothing, hidden: "the shell runs what it is fed" };
  return isScriptFile(first, found)
    ? { ...nothing, runs: [first.value ?? "", ...startupFiles(parsed, found)] }
    : { ...nothing, hidden: "only running it tells which script the shell runs" };
}

/** Files a shell reads before anything else. */
function startupFiles(parsed: ParsedOptions, found: Found): readonly string[] {
  const options = parsed.options.filter(({ name }) => name === "rcfile" || name === "init-file");
  const variables = found.env.filter(({ name }) => name === "ENV" || name === "BASH_ENV");
  return [...options, ...variables].map(({ value }) => value ?? "\0");
}

function unwrapProgram(found: Found, name: string, wrapper: Wrapper): Unwrapped {
  const args = found.words.slice(1);
  const parsed = parseOptions(values(args), wrapper.spec);
  if ("unknown" in parsed) return { ...nothing, hidden: `cannot tell what ${name} runs (${parsed.unknown})` };
  const lines = textOptions(parsed, wrapper);
  let operands = args.slice(args.length - parsed.operands.length);
  // `env -` is `env -i`; the architecture of setarch may be left out.
  if (name === "env" && operands[0]?.value === "-") operands = operands.slice(1);
  const leaveOut = wrapper.optional?.test(operands[0]?.value ?? "") === false;
  const env = [...found.env];
  for (let [item] = operands; wrapper.assignments && item?.raw.includes("="); [item] = operands) {
    env.push({
      name: (item.value ?? item.raw).split("=")[0]!,
      value: item.value?.slice(item.value.indexOf("=") + 1),
    });
    operands = operands.slice(1);
  }
  const inner = operands
    .slice(leaveOut ? 0 : (wrapper.skip ?? 0))
    .map((item) => (isReplaced(item, parsed) ? unknownWord : item));
  if (wrapper.joins && inner.length === 0) return { ...nothing, hidden: "it runs the lines it is fed" };
  // The split string of env has its own escapes and variables.
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
  // A program of many names goes by the one it is started under: `exec -a rm busybox f`.
  const under = name === "exec" ? parsed.options.find((option) => option.name === "a")?.value : undefined;
  if (under !== undefined && inner.length > 0)
    commands.push({ words: [word(under), ...words.slice(1)], cwds, env, fed });
  const joined = wrapper.joins ? joinedLines(name, inner) : [];
  if (joined === undefined) return { ...nothing, hidden: `only running it tells what ${name} makes of its words` };
  // Options may come after the first operand too: `su user -c text`.
  const later = wrapper.text === undefined ? undefined : parseOptions(values(inner), wrapper.spec);
  const risky = parsed.options.some((option) =>
    ["S", "split-string", "o", "output", "a", "append", "C", "chdir"].includes(option.name),
  );
  return {
    ...nothing,
    commands,
    lines: [...lines, ...joined, ...(later === undefined ? [] : textOptions(later, wrapper))],
    transparent: wrapper.transparent === true && !risky && inner.length > 0,
  };
}

/** The lines that the operands make together; behind `:::` stand the values parallel fills in, or whole lines. */
function joinedLines(name: string, words: readonly ShellWord[]): readonly string[] | undefined {
  const at = name === "parallel" ? words.findIndex(({ value }) => /^:::{1,2}\+?$/.test(value ?? "")) : -1;
  if (at < 0) return [values(words).join(" ")];
  if (at > 0) return words[0]?.value?.includes("{") === true ? undefined : [values(words).join(" ")];
  return words[0]?.value === "::::" ? undefined : values(words.slice(1));
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

/** git runs programs named on its command line: aliases, bisect run, rebase --exec and submodule foreach. */
function unwrapGit(found: Found): Unwrapped {
  const args = found.words.slice(1);
  const lines: string[] = [];
  const maybe: string[] = [];
  const commands: Found[] = [];
  args.forEach((item, index) => {
    const value = item.value ?? "";
    if (value === "-c") {
      const setting = args[index + 1]?.value ?? "";
      if (/^alias\./i.test(setting)) lines.push(settingText(setting));
      else if (!isPlainOverride(setting) && !isIdentity(setting)) maybe.push(settingText(setting));
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
    maybe,
    lines: lines.filter((line) => line !== ""),
  };
}

/** Settings for who commits and where to, which git never runs. */
function isIdentity(setting: string): boolean {
  return /^(user|author|committer)\.(name|email)=|^(init\.defaultbranch|commit\.gpgsign|tag\.gpgsign|safe\.directory|core\.autocrlf|pull\.rebase|push\.default|merge\.conflictstyle|diff\.(algorithm|renames)|protocol\.version|http\.(postbuffer|sslverify)|gc\.auto)=/i.test(
    setting,
  );
}

/** A word that cannot be known never looks like an option here. It remains unknown in the words themselves. */
function values(words: readonly ShellWord[]): readonly string[] {
  return words.map((item) => item.value ?? `\u0000${item.raw}`);
}
