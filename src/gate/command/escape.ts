/**
 * A user who allows `tar` means tar's work, not every program tar can be made to start. This is the
 * list of such ways out, so that an allow rule never covers them unless it spells them out.
 */
import { judge } from "./harmless.ts";
import { judgeGit } from "./git.ts";
import { readers } from "./readers.ts";
import { specials, versionOnly } from "./specials.ts";
import { isInterpreter, isShell } from "./wrappers.ts";

/** Single letters are short options, the rest long ones (any beginning of them counts too). */
const waysOut: ReadonlyMap<string, readonly string[]> = new Map(
  Object.entries({
    tar: "I F P use-compress-program to-command checkpoint-action info-script new-volume-script rsh-command rmt-command absolute-names files-from T",
    bsdtar: "I P use-compress-program",
    zip: "T TT unzip-command test",
    cpio: "rsh-command I O absolute-filenames",
    "sort uniq": "o T output compress-program files0-from temporary-directory",
    split: "filter",
    man: "P H C pager html preprocessor path-cmd",
    "less more": "o O k t + log-file lesskey-file",
    ssh: "o F E J S W L R D w proxyCommand",
    "scp sftp": "o F S J D",
    rsync: "e rsh rsync-path files-from include-from exclude-from daemon M remote-option",
    curl: "K T o O F d config upload-file output remote-name form data data-binary data-raw data-urlencode netrc-file proxy x unix-socket output-dir create-dirs",
    wget: "O e i P execute input-file output-document post-file body-file use-askpass config directory-prefix",
    "nc ncat netcat socat": "e c exec sh-exec lua-exec",
    make: "f C I E file makefile eval directory include-dir",
    cmake: "P E C build",
    ninja: "f C t",
    "gcc g++ cc c++ clang clang++": "wrapper fplugin specs B Xclang load",
    java: "javaagent agentlib agentpath jar cp XX",
    javac: "processor processorpath J d",
    "npx bunx": "c p call package node-options shell",
    npm: "script-shell userconfig globalconfig node-options prefix call c onload-script",
    "yarn pnpm": "script-shell use-yarnrc cwd C dir node-options config",
    cargo: "config Z C manifest-path",
    go: "exec toolexec vettool C modfile overlay w",
    "pip pip3": "i index-url extra-index-url target prefix root config-settings t global-option trusted-host",
    pytest: "p c rootdir confcutdir override-ini o",
    "eslint prettier": "c config plugin rulesdir resolve-plugins-relative-to format f parser",
    "jest vitest mocha": "c config r require globalSetup setupFiles reporters ui",
    svn: "diff-cmd diff3-cmd editor-cmd config-option config-dir",
    hg: "config cwd R repository",
    tcpdump: "z w Z r",
    nmap: "script oN oX oA oG datadir",
    openssl: "engine out config provider-path",
    ffmpeg: "i f y filter_complex_script",
    sqlite3: "init cmd",
    "psql mysql": "c e f o command execute file output",
    gh: "exec",
    systemctl: "H M root image",
    kubectl: "kubeconfig f filename",
    date: "f s r file set reference",
    install: "strip-program s",
    xz: "files files0",
    "latex pdflatex xelatex lualatex tex pdftex": "shell-escape enable-write18 output-directory",
    "cp mv ln": "S backup",
    ctags: "options e o",
    dpkg: "admindir root instdir pre-invoke post-invoke i install",
    "apt apt-get": "o c option config-file",
  }).flatMap(([names, stems]) => names.split(" ").map((name) => [name, stems.split(" ")] as const)),
);

/** Subcommands of big programs that only look; the others must be spelled out by the rule. */
const lookingSubcommands: ReadonlyMap<string, ReadonlySet<string>> = new Map(
  Object.entries({
    "docker podman nerdctl": "ps images version info inspect logs top port history stats diff search",
    kubectl: "get describe logs version explain api-resources top",
    systemctl: "status list-units is-active is-enabled show cat",
    gh: "status",
    npm: "ls list view outdated why root prefix test run install ci audit explain fund",
    go: "version env list doc vet build test fmt mod",
    ip: "addr link route",
    "yarn pnpm": "test run install list ls why outdated audit info build lint",
  }).flatMap(([names, subs]) => names.split(" ").map((name) => [name, new Set(subs.split(" "))] as const)),
);

/** Programs made to run what they are given, and builtins that evaluate: only a longer rule may cover them. */
const neverByName = new Set(
  "let declare typeset local export readonly unset read mapfile readarray eval source . trap alias unalias enable hash bind complete compgen compopt shopt set exec getopts wait builtin command coproc fc history pushd popd dirs env printenv watch parallel entr screen tmux at batch crontab expect gdb lldb strace ltrace script vi vim nvim view ex ed emacs nano pico busybox toybox ssh-keygen rpm chsh mount umount insmod modprobe sysctl iptables nft sqlite3 psql mysql deno bun".split(
    " ",
  ),
);

/** Why an allow rule of `covered` words does not reach this command, or undefined. `args` follow the program. */
export function wayOut(name: string, args: readonly string[], covered: number, fed: boolean): string | undefined {
  const code = args.slice(covered - 1).find((arg) => /^[|!]|`|\$\(|%pipe%/.test(arg));
  if (code !== undefined && !readers.has(name) && !(specials.has(name) && !versionOnly.has(name)))
    return `${code} may be run by ${name}`;
  const spelled = args.slice(0, covered - 1);
  const extra = args.slice(covered - 1);
  if (covered === 1 && neverByName.has(name)) return `${name} can run or change anything; a rule has to spell out more`;
  if (isShell(name)) return shellWayOut(name, extra);
  if (name === "git") return gitWayOut(args, spelled);
  if (readers.has(name) || (specials.has(name) && !versionOnly.has(name))) {
    const judged = judge(name, extra);
    return "why" in judged ? judged.why : undefined;
  }
  if (versionOnly.has(name) && !("why" in judge(name, args))) return undefined;
  if (isInterpreter(name)) return interpreterWayOut(name, extra, fed) ?? optionWayOut(name, extra);
  const looking = lookingSubcommands.get(name);
  const sub = args.find((arg) => !arg.startsWith("-"));
  if (looking !== undefined && covered === 1 && sub !== undefined && !looking.has(sub))
    return `${name} ${sub} has to be allowed by name`;
  return containerWayOut(name, extra) ?? optionWayOut(name, extra);
}

/** The text after -c is judged by itself; a script file is whatever stands in it. */
function shellWayOut(name: string, args: readonly string[]): string | undefined {
  return args.some((arg) => /^-[a-z]*c$/.test(arg)) ? undefined : `${name} runs a script; a rule has to name it`;
}

function optionWayOut(name: string, args: readonly string[]): string | undefined {
  const stems = waysOut.get(name) ?? [];
  const bad = args.find(
    (arg, index) =>
      stems.some((stem) => isSpelling(arg, stem)) ||
      (name === "tar" && index === 0 && /^[a-zA-Z]+$/.test(arg) && /[IFPT]/.test(arg)),
  );
  // Without a dash, e makes ps show every process's environment.
  if (name === "ps" && args.some((arg) => /^[a-zA-Z]*e[a-zA-Z]*$/.test(arg) || arg === "-E"))
    return "ps shows environments";
  const scheme = name === "curl" || name === "wget" ? args.find((arg) => /^(?!https?:)[a-z]+:/i.test(arg)) : undefined;
  const found = bad ?? scheme;
  return found === undefined ? undefined : `${name} ${found} can run or touch something else`;
}

function isSpelling(arg: string, stem: string): boolean {
  if (stem === "+") return arg.startsWith("+");
  if (stem.length === 1) return /^-[^-]/.test(arg) && arg.includes(stem);
  const name = arg.replace(/^--?/, "").replace(/=.*/s, "");
  return (
    arg.startsWith("-") &&
    (name.length > 1 || arg.startsWith("--")) &&
    name !== "" &&
    (stem.startsWith(name) || (arg.startsWith("-") && !arg.startsWith("--") && name.startsWith(stem)))
  );
}

function containerWayOut(name: string, args: readonly string[]): string | undefined {
  if (!["docker", "podman", "nerdctl", "docker-compose"].includes(name)) return undefined;
  const bad = args.find(
    (arg) =>
      /^(-v|-H|--(v|mount|priv|dev|pid|net|ipc|uts|userns|cap|security|env-file|host|con|volumes|add-host|cgroup|runtime|entrypoint|user))/.test(
        arg,
      ) || /^-[a-zA-Z]*v/.test(arg),
  );
  return bad === undefined ? undefined : `${name} ${bad} opens the container to the host`;
}

function interpreterWayOut(name: string, args: readonly string[], fed: boolean): string | undefined {
  const script = args.findIndex((arg) => !arg.startsWith("-"));
  const before = script < 0 ? args : args.slice(0, script);
  if (name === "make" || name === "gmake")
    return args.some((arg) => arg.includes("=")) ? "make takes variables that name programs" : undefined;
  const bad = before.find((arg) => !/^(-u|-B|-O|-v|-V|--version|--help|-h|-s|-S|--test|--check)$/.test(arg));
  if (bad !== undefined) return `${name} ${bad} can run any code`;
  return script < 0 && (fed || args.length === 0) ? `${name} runs what it is fed` : undefined;
}

const gitWriting = new Set(
  "add commit checkout switch restore branch tag stash merge rebase cherry-pick revert reset fetch pull push mv rm clone init remote worktree notes clean apply am config".split(
    " ",
  ),
);
const gitProgramKeys =
  /^(core\.(fsmonitor|hookspath|pager|editor|sshcommand|askpass|gitproxy|worktree|attributesfile|excludesfile|alternaterefscommand)|alias\.|pager\.|diff\.|difftool|mergetool|merge\.|filter\.|credential|gpg|include|sequence|interactive|uploadpack|receive|remote\..*\.(uploadpack|receivepack|vcs)|submodule|url\.|http\.|protocol|browser|man\.|web\.|instaweb|sendemail|trailer|init\.templatedir|commit\.template|extensions)/i;

function gitWayOut(args: readonly string[], spelled: readonly string[]): string | undefined {
  const judged = judgeGit(args);
  if (!("why" in judged)) return undefined;
  const sub = args.find((arg) => !arg.startsWith("-"));
  const globals = args.slice(0, sub === undefined ? args.length : args.indexOf(sub));
  const risky = globals.find((arg) => !["--no-pager", "-P"].includes(arg));
  if (risky !== undefined) return `git ${risky} can change what git runs`;
  if (sub === undefined || (!gitWriting.has(sub) && !spelled.includes(sub)))
    return `git ${sub ?? ""} has to be allowed by name`;
  const rest = args.slice(args.indexOf(sub) + 1);
  if (
    sub === "config" &&
    rest.some((arg) => gitProgramKeys.test(arg) || /^(-f|--f|--global|--sys|--bl|-e|--edit|edit)/.test(arg))
  )
    return "this git setting can run a program";
  const bad = rest.find(
    (arg) =>
      /^(--(exec|upload|receive|templ|ext|textc|out|edit|recurse|config|work|git-d|open|track-all|no-ver.*=|interactive|patch|file|pathspec-from)|-x|-u$|-c$|-O|-e$|-i$|-p$|-F|-t)/.test(
        arg,
      ) || /^(ext|fd)::|::/.test(arg),
  );
  if (bad !== undefined && !spelled.includes(bad)) return `git ${sub} ${bad} can run or touch something else`;
  return undefined;
}
