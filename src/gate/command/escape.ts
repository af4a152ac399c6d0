/**
 * A user who allows `tar` means tar's own work, not every program that tar can be made to start. This
 * lists such ways out, so that an allow rule never covers them unless it spells them out.
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
    "less more": "o O k t + log-file lesskey-file lesskey-src lesskey-content cmd",
    rg: "pre hostname-bin",
    unzip: ": d",
    ssh: "o F E J S W L R D w proxyCommand",
    scp: "o F S J D",
    sftp: "o F S J D b",
    rsync: "e rsh rsync-path files-from include-from exclude-from daemon M remote-option",
    curl: "K T o O F d config upload-file output remote-name form data data-binary data-raw data-urlencode data-ascii json url-query netrc-file proxy preproxy socks4 socks4a socks5 socks5-hostname engine @ x unix-socket output-dir create-dirs",
    wget: "O e i P execute input-file output-document post-file post-data body-file body-data method use-askpass config directory-prefix",
    "nc ncat netcat socat": "e c exec sh-exec lua-exec",
    make: "f C I E file makefile eval directory include-dir",
    cmake: "P E C build",
    ninja: "f C t",
    "gcc g++ cc c++ clang clang++": "wrapper fplugin specs B T Xclang load @",
    java: "javaagent agentlib agentpath jar cp XX @",
    javac: "processor processorpath J d @",
    "npx bunx": "c p call package node-options shell",
    npm: "script-shell userconfig globalconfig node-options prefix call c onload-script",
    "yarn pnpm": "script-shell use-yarnrc cwd C dir node-options config",
    cargo: "config Z C manifest-path",
    go: "exec toolexec vettool ldflags gcflags asmflags gccgoflags C modfile overlay w",
    "ld ar as tsc": "plugin @",
    ant: "f file buildfile lib",
    gradle: "I init-script b c p include-build",
    "pip pip3": "i index-url extra-index-url target prefix root config-settings t global-option trusted-host",
    pytest: "p c rootdir confcutdir override-ini pdbcls o @",
    "eslint prettier": "c config plugin rulesdir resolve-plugins-relative-to format f parser",
    "jest vitest mocha":
      "c config r require globalSetup globalTeardown setupFiles setupFilesAfterEnv testEnvironment environment runner testRunner transform resolver reporters ui",
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

/** Subcommands of large programs that only read. A rule must spell out the others. */
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

/** Subcommands that start something, whatever the program. */
const runningSubcommands = new Set("exec eval shell ssh console repl dlx ruby run-script".split(" "));

/** Long options that run something, whatever the program. */
const runningOptions = ["eval", "exec", "execute"];

/** Programs made to run what they are given, and builtins that evaluate. Only a longer rule may cover them. */
const neverByName = new Set(
  "let declare typeset local export readonly unset read mapfile readarray eval source . trap alias unalias enable hash bind complete compgen compopt shopt set exec getopts wait builtin command coproc fc history pushd popd dirs env printenv watch parallel entr screen tmux at batch crontab expect gdb lldb strace ltrace script vi vim nvim view ex ed emacs nano pico busybox toybox ssh-keygen rpm chsh mount umount insmod modprobe sysctl iptables nft sqlite3 psql mysql deno bun valgrind perf rr hyperfine nodemon ts-node tsx pm2 foreman dotenv cross-env concurrently npm-run-all wait-on doppler aws-vault op chronic unbuffer faketime cpulimit numactl xvfb-run dbus-run-session xterm gnome-terminal konsole alacritty kitty rlwrap tini dumb-init gosu su-exec s6-setuidgid chpst softlimit envdir daemonize start-stop-daemon ssh-agent dbus-launch sg newgrp scl bwrap firejail proot fakechroot qemu-user systemd-nspawn machinectl lxc-attach ip arch linux32 linux64 i386 x86_64 uv poetry pipenv bundle rbenv pyenv nvm asdf mise direnv nix nix-shell guix conda mamba npx bunx pnpx".split(
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
  if (covered === 1 && sub !== undefined && runningSubcommands.has(sub)) return `${name} ${sub} runs what follows`;
  return containerWayOut(name, extra) ?? optionWayOut(name, extra);
}

/** The text after -c is judged by itself. A script file may contain anything. */
function shellWayOut(name: string, args: readonly string[]): string | undefined {
  return args.some((arg) => /^-[a-z]*c$/.test(arg)) ? undefined : `${name} runs a script; a rule has to name it`;
}

function optionWayOut(name: string, args: readonly string[]): string | undefined {
  const stems = [...(waysOut.get(name) ?? []), ...runningOptions];
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

/** The options in these words that name a program, a file or a host, each with the word after it. */
export function optionsOut(name: string, args: readonly string[]): readonly string[] {
  const stems = waysOut.get(name) ?? [];
  return args.flatMap((arg, index) =>
    stems.some((stem) => isSpelling(arg, stem)) ? [arg, args[index + 1] ?? ""] : [],
  );
}

function isSpelling(arg: string, stem: string): boolean {
  if (stem === "+" || stem === "@") return arg.startsWith(stem);
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
