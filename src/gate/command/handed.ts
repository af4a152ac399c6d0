/**
 * Text that a command passes on to be run: by an option (`tar --to-command=…`), a variable
 * (`GIT_SSH_COMMAND=…`) or a setting (`git -c core.pager=…`). It is read as a shell line of its own,
 * for deny rules and danger. If it cannot be read, nobody can tell what runs.
 */
import { programName } from "../paths.ts";
import type { Assigned, Found } from "./found.ts";
import { readers } from "./readers.ts";
import { specials } from "./specials.ts";
import { isShell, packageRunners } from "./wrappers.ts";

export interface Handed {
  /** Shell lines, or programs with their words. */
  readonly texts: readonly string[];
  /** Texts that may be lines. Those that cannot be read as a line are ignored. */
  readonly perhaps: readonly string[];
  /** Files that are run, or read as settings. */
  readonly files: readonly string[];
  /** Something is passed on that cannot be known without running the line. */
  readonly untold: boolean;
}

/** Options whose value is run. Single letters are short options, the rest long ones (any beginning counts). */
const running: ReadonlyMap<string, readonly string[]> = new Map(
  Object.entries({
    "tar gtar bsdtar":
      "I F use-compress-program to-command checkpoint-action info-script new-volume-script rsh-command rmt-command",
    split: "filter",
    "strace ltrace": "o output",
    dpkg: "pre-invoke post-invoke status-logger",
    sort: "compress-program",
    zip: "TT unzip-command",
    cpio: "rsh-command",
    "man apropos whatis": "P H pager html preprocessor",
    rg: "pre hostname-bin",
    "ssh scp sftp": "o S D",
    rsync: "e rsh rsync-path",
    "nc ncat netcat socat": "e c exec sh-exec lua-exec",
    "make gmake": "E eval",
    "gcc g++ cc c++ clang clang++": "wrapper",
    "npx bunx pnpx": "c call shell",
    "npm pnpm yarn": "c call script-shell shell-mode",
    go: "exec toolexec vettool",
    cargo: "config",
    svn: "diff-cmd diff3-cmd editor-cmd",
    hg: "config",
    tcpdump: "z",
    wget: "use-askpass e execute",
    install: "strip-program",
    "apt apt-get aptitude": "o option",
    "vi vim nvim view ex": "c cmd S",
    emacs: "eval execute f funcall l load",
    "gdb lldb": "ex eval-command iex init-eval-command o one-line O one-line-before-file",
    fzf: "preview bind execute",
    "complete compgen": "C F",
    "mapfile readarray": "C",
    bind: "x",
    "xterm konsole gnome-terminal alacritty kitty": "e command",
    "docker podman nerdctl": "entrypoint",
    "screen tmux": "X c",
    ansible: "a args",
    expect: "c",
    sendmail: "C",
    "less more": "+",
    git: "upload-pack receive-pack exec extcmd x O u open-files-in-pager index-filter tree-filter msg-filter env-filter commit-filter parent-filter tag-name-filter sendmail-cmd to-cmd cc-cmd header-cmd smtp-server tool-cmd editor httpd",
  }).flatMap(([names, stems]) => names.split(" ").map((name) => [name, stems.split(" ")] as const)),
);

/** Variables whose value programs run, or read as settings that run something. */
const runningVariable =
  /^(GIT_(?!AUTHOR|COMMITTER|DIR$|WORK_TREE$|INDEX_FILE$|TERMINAL_PROMPT$|PAGER_IN_USE|OPTIONAL_LOCKS|TRACE|DEPTH|BRANCH|SHA|COMMIT|TAG|REF|URL|REPO)\w+|\w*(PAGER|EDITOR|BROWSER|_COMMAND|_CMD|_ASKPASS|_WRAPPER|_LAUNCHER|SHELL|VISUAL)|SSH_ASKPASS|LESSOPEN|LESSCLOSE|PROMPT_COMMAND|PS[0-4]|BASH_FUNC_.*|MAKEFLAGS|GNUMAKEFLAGS|MFLAGS|CC|CXX|CPP|LD|AR|AS|FC|RSYNC_RSH|CVS_RSH|TAR_OPTIONS|PERL5OPT|PERL5DB|RUBYOPT|PYTHONSTARTUP|PYTHONINSPECT|NODE_OPTIONS|JAVA_TOOL_OPTIONS|_JAVA_OPTIONS|VIMINIT|EXINIT|FZF_DEFAULT_COMMAND|FZF_DEFAULT_OPTS|npm_config_script_shell|LD_PRELOAD|LD_AUDIT)$/i;

/** Programs whose arguments are not commands, besides the ones that only read. */
export const notWrappers: ReadonlySet<string> = new Set(
  "git docker podman kubectl npm pnpm yarn bun pip pip3 cargo rustup go gem apt apt-get brew dnf yum pacman systemctl gh hg svn cp mv mkdir rmdir touch ln chmod chown chgrp rm tee tar zip unzip gzip gunzip bzip2 xz dd curl wget gcc cc g++ clang ld ar ninja tsc eslint prettier vitest jest pytest mocha kill pkill truncate install export unset set alias mktemp useradd usermod".split(
    " ",
  ),
);

/** Nothing is handed on. */
export const noneHanded: Handed = { texts: [], perhaps: [], files: [], untold: false };

/** What a program is made to run by its own options and by variables set in front of it. */
export function handedOn(
  found: Found,
  program: { readonly name: string; readonly system: boolean; readonly wraps: boolean; readonly shell: boolean },
): Handed {
  const { name } = program;
  const odd = takesCommands(program) && !program.wraps && !program.shell;
  if (found.env.length === 0 && !odd && !running.has(name)) return noneHanded;
  const args = found.words.slice(1, 201).map((item) => item.value);
  const all = [
    optionTexts(name, args),
    ...(name === "git" ? [gitSettings(found.env, args)] : []),
    ...(packageRunners.has(name) ? [packageTexts(args)] : []),
    ...(odd ? [shellTexts(args)] : []),
    // Variables set in front of a wrapper reach the command inside it, and are judged there.
    ...found.env.filter((item) => !program.wraps || item.name === "SHELL").map(variableTexts),
  ];
  return {
    texts: all.flatMap((each) => each.texts),
    untold: all.some((each) => each.untold),
    perhaps: [...all.flatMap((each) => each.perhaps), ...(odd ? lineLike(args) : [])],
    files: all.flatMap((each) => each.files),
  };
}

/** True if nobody knows whether this program runs its arguments. */
export function takesCommands({ name, system }: { readonly name: string; readonly system: boolean }): boolean {
  return !system || !(notWrappers.has(name) || readers.has(name) || specials.has(name));
}

/** A shell with its text among the arguments of a program that may start it: `valgrind sh -c '…'`. */
function shellTexts(args: readonly (string | undefined)[]): Handed {
  const shell = args.findIndex((arg) => arg !== undefined && isShell(programName(arg).name));
  const at = shell < 0 ? -1 : args.findIndex((arg, index) => index > shell && /^-[a-zA-Z]*c$/.test(arg ?? ""));
  if (at < 0 || at + 1 >= args.length) return noneHanded;
  const text = args[at + 1];
  return text === undefined ? { ...noneHanded, untold: true } : { ...noneHanded, texts: [text] };
}

/** Scripts and settings that a package manager writes down, or runs in a package's folder. */
function packageTexts(args: readonly (string | undefined)[]): Handed {
  const at = args.findIndex((arg) => /^(pkg|set|set-script|config|explore)$/.test(arg ?? ""));
  if (at < 0) return noneHanded;
  const rest = args.slice(at + 1);
  return {
    ...noneHanded,
    texts: rest.flatMap((arg) => (arg === undefined ? [] : variants(arg))),
    untold: rest.includes(undefined),
  };
}

/** Arguments that could be a line: several words in one, or a spelling that only a shell would undo. */
function lineLike(args: readonly (string | undefined)[]): readonly string[] {
  return args.flatMap((arg) => {
    if (arg === undefined || !/[\s"'\\$`]/.test(arg)) return [];
    return arg.startsWith("-") && arg.includes("=") ? [arg.slice(arg.indexOf("=") + 1)] : [arg];
  });
}

function variableTexts({ name, value }: Assigned): Handed {
  // git's settings in variables come as pairs of key and value, and are read together below.
  if (/^GIT_CONFIG_(COUNT|KEY_\d+|VALUE_\d+)$/.test(name)) return noneHanded;
  if (/^(GIT_CONFIG(_GLOBAL|_SYSTEM)?|HOME|XDG_CONFIG_HOME|BASH_ENV|ENV|PYTHONSTARTUP|ZDOTDIR)$/.test(name))
    // A shell expands the name of its start-up file before it opens it.
    return { ...noneHanded, files: [value ?? "\0"], untold: name.endsWith("ENV") && /[$`]/.test(value ?? "") };
  if (/^LD_(PRELOAD|AUDIT)$/.test(name)) return { ...noneHanded, files: value?.split(/[: ]/) ?? ["\0"] };
  if (name === "LD_LIBRARY_PATH") return { ...noneHanded, untold: value?.startsWith("/") !== true };
  if (!runningVariable.test(name)) return { ...noneHanded, perhaps: value === undefined ? [] : [value] };
  if (value === undefined) return { ...noneHanded, untold: true };
  // A shell function from the environment, or settings in a format of their own.
  if (
    /^(BASH_FUNC_|GIT_CONFIG_PARAMETERS$|PERL5|RUBYOPT|NODE_OPTIONS|_?JAVA|MAKEFLAGS|GNUMAKE|MFLAGS|TAR_OPTIONS|LD_)/.test(
      name,
    )
  )
    return {
      ...noneHanded,
      untold: !/^[\w\s=.,/:-]*$/.test(value) || /exec|command|eval|-[eE]|require|import|agent/.test(value),
    };
  return { ...noneHanded, texts: variants(value) };
}

/** The value itself, after a `!` or a `|`, and after the key of `key=value` and `key value`. */
function variants(value: string): readonly string[] {
  const text = value
    .replace(/^[!|]+\s*/, "")
    // `% ` is how a blank is written in git's own form.
    .replace(/^ext::(.*)$/s, (_, line: string) => line.replace(/%(.)/gs, "$1"))
    .replace(/^(EXEC|SYSTEM|SHELL):/i, "");
  const equals = /^[\w.:-]+=(.*)$/s.exec(text)?.[1];
  const after = /^(\w*Command|exec|command|:?!|shell|system)\s+(.*)$/is.exec(text)?.[2];
  const inner = equals === undefined ? undefined : equals.replace(/^["'!]+/, "");
  return [text, equals, inner, after].flatMap((item) => (item === undefined || item === "" ? [] : [item]));
}

function optionTexts(name: string, args: readonly (string | undefined)[]): Handed {
  const stems = running.get(name);
  if (stems === undefined) return noneHanded;
  const values: (string | undefined)[] = [];
  const isMake = name === "make" || name === "gmake";
  for (const [index, arg] of args.entries()) {
    if (arg === undefined) continue;
    if (arg === "--") break;
    const value = optionValue(arg, args[index + 1], index + 1 < args.length, stems);
    // The marks in front of a recipe's line are make's own.
    if (value !== none) values.push(isMake ? value?.replace(/([:;\n]\s*)[@+-]+/g, "$1") : value);
    if (/^(ext::|EXEC:|SYSTEM:|SHELL:)/i.test(arg)) values.push(arg);
    if (isMake && /^[\w.]+[:+?!]*=/.test(arg)) values.push(arg);
  }
  return {
    ...noneHanded,
    texts: values.flatMap((value) => (value === undefined ? [] : variants(value))),
    untold: values.includes(undefined),
  };
}

const none = Symbol("not such an option");

function optionValue(
  arg: string,
  next: string | undefined,
  hasNext: boolean,
  stems: readonly string[],
): string | undefined | typeof none {
  if (stems.includes("+") && arg.startsWith("+")) return arg.slice(1);
  if (!arg.startsWith("-") || arg === "-") return none;
  const long = /^--?([\w-]{2,})(?:=(.*))?$/s.exec(arg);
  if (long !== null && stems.some((stem) => stem.length > 1 && (stem.startsWith(long[1]!) || stem === long[1]))) {
    if (long[2] !== undefined) return long[2];
    return hasNext ? next : none;
  }
  if (arg.startsWith("--")) return none;
  for (let at = 1; at < arg.length; at++) {
    if (!stems.includes(arg[at]!)) continue;
    const glued = arg.slice(at + 1);
    if (glued !== "") return glued.replace(/^=/, "");
    return hasNext ? next : none;
  }
  return none;
}

/** `-c key=value`, `--config-env=key=NAME` and their like in variables. */
function gitSettings(env: readonly Assigned[], args: readonly (string | undefined)[]): Handed {
  const byName = new Map(env.map(({ name, value }) => [name, value]));
  const settings: (string | undefined)[] = [...byName].flatMap(([name, key]) => {
    const number = /^GIT_CONFIG_KEY_(\d+)$/.exec(name)?.[1];
    if (number === undefined) return [];
    const value = byName.get(`GIT_CONFIG_VALUE_${number}`);
    return [key === undefined || value === undefined ? undefined : `${key}=${value}`];
  });
  for (const [index, arg] of args.entries()) {
    const given = /^--config-env(?:=(.*))?$/s.exec(arg ?? "");
    if (given === null) continue;
    const [key = "", name = ""] = (given[1] ?? args[index + 1] ?? "").split(/=(?=[^=]*$)/);
    const value = byName.get(name);
    settings.push(value === undefined ? undefined : `${key}=${value}`);
  }
  return {
    ...noneHanded,
    texts: settings.flatMap((setting) => (setting === undefined ? [] : [settingText(setting)])),
    // With another folder of programs its subcommands can be anything.
    untold: settings.includes(undefined) || args.some((arg) => arg?.startsWith("--exec-path=") === true),
  };
}

/** What a setting of git may run: an alias is a subcommand unless it begins with `!`. */
export function settingText(setting: string): string {
  const value = setting.slice(setting.indexOf("=") + 1);
  if (value.startsWith("!")) return value.slice(1);
  return /^alias\./i.test(setting) && value !== "" ? `git ${value}` : value;
}
