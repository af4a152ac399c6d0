/** Tables of programs that run other programs: how their options are read, and where the command begins. */
import type { OptionSpec } from "./options.ts";

export interface Wrapper {
  readonly spec: OptionSpec;
  /** Operands before the command (timeout's duration, chroot's folder). */
  readonly skip?: number;
  /** The operands before the command may be left out. This pattern recognises one that is there. */
  readonly optional?: RegExp;
  readonly transparent?: boolean;
  /** `NAME=value` operands before the command. */
  readonly assignments?: boolean;
  /** It adds words that come from its input. */
  readonly appends?: boolean;
  /** Options whose value is shell text. */
  readonly text?: readonly string[];
  /** The operands together are shell text. */
  readonly joins?: boolean;
}

const w = (short: string, long: string, more: Omit<Wrapper, "spec"> = {}): Wrapper => ({
  spec: { short, long, stopAtOperand: true },
  ...more,
});

const personality =
  "32bit fdpic-funcptrs short-inode addr-compat-layout addr-no-randomize whole-seconds sticky-timeouts read-implies-exec mmap-page-zero 3gb 4gb uname-2.6 verbose show? list";
const architecture =
  /^(linux(32|64)|uname26|x86_64|i[3-6]86|amd64|athlon|arm\w*|aarch64|ppc\w*|powerpc\w*|s390x?|mips\w*|sparc\w*|riscv\w*|alpha|ia64|parisc\w*)$/;

export const wrappers: ReadonlyMap<string, Wrapper> = new Map(
  Object.entries({
    env: w(
      "i0u:C:S:v",
      "ignore-environment null unset= chdir= split-string= block-signal? default-signal? ignore-signal? debug",
      { assignments: true, transparent: true, text: ["S", "split-string"] },
    ),
    command: w("p", "", { transparent: true }),
    builtin: w("", "", { transparent: true }),
    exec: w("cla:", ""),
    nice: { spec: { short: "n:", long: "adjustment=", digits: true, stopAtOperand: true }, transparent: true },
    ionice: w("c:n:tp:P:u:", "class= classdata= ignore pid=", { transparent: true }),
    timeout: w("k:s:v", "kill-after= signal= preserve-status foreground verbose", { skip: 1, transparent: true }),
    nohup: w("", ""),
    stdbuf: w("i:o:e:", "input= output= error="),
    setsid: w("cfw", "ctty fork wait", { transparent: true }),
    time: w("pvaqo:f:", "portability verbose append output= format= quiet"),
    sudo: w(
      "AbEHnPSkKiseu:g:h:p:C:r:t:T:U:D:R:",
      "askpass background preserve-env? set-home non-interactive preserve-groups stdin user= group= host= prompt= login shell chdir= chroot= reset-timestamp",
      { assignments: true },
    ),
    doas: w("nsLu:C:", ""),
    pkexec: w("", "user= disable-internal-agent keep-cwd"),
    runuser: w("lmpfu:g:G:s:c:w:", "login user= group= command= shell= fast pty preserve-environment", {
      text: ["c", "command"],
    }),
    su: w("lmpfPg:G:s:c:w:", "login command= session-command= shell= fast pty preserve-environment group=", {
      text: ["c", "command", "session-command"],
      skip: 1,
    }),
    chroot: w("", "userspec= groups= skip-chdir", { skip: 1 }),
    unshare: w(
      "fmuinpUCTrcS:G:R:w:",
      "fork mount? uts? ipc? net? pid? user? cgroup? map-root-user map-current-user mount-proc? root= wd= kill-child? setuid= setgid=",
      {},
    ),
    nsenter: w(
      "at:m?u?i?n?p?U?C?T?r?w?FS:G:",
      "all target= mount? uts? ipc? net? pid? user? cgroup? root? wd? no-fork setuid= setgid=",
    ),
    flock: w(
      "sxeonuFvw:E:c:",
      "shared exclusive nonblock unlock close no-fork verbose timeout= wait= conflict-exit-code= command=",
      { skip: 1, text: ["c", "command"] },
    ),
    taskset: w("apc", "all-tasks pid cpu-list", { skip: 1 }),
    chrt: w("abfiormdpRT:P:D:", "all-tasks batch deadline fifo idle other rr max pid", { skip: 1 }),
    prlimit: w("p:o:", "pid= output= raw noheadings verbose"),
    setpriv: w("d", "clear-groups keep-groups init-groups no-new-privs reuid= regid= groups= inh-caps= bounding-set="),
    setarch: w("BFILRSTXZv", personality, { skip: 1, optional: architecture }),
    ...Object.fromEntries(
      ["linux32", "linux64", "i386", "i486", "i586", "i686", "x86_64", "uname26"].map((name) => [
        name,
        w("BFILRSTXZv", personality),
      ]),
    ),
    busybox: w("", ""),
    toybox: w("", ""),
    strace: w("fFcCqvyTtrzZDo:e:s:p:P:a:b:E:I:O:S:u:U:X:", "output= trace= follow-forks"),
    ltrace: w("fcCSrTtiLo:e:s:p:n:a:l:u:", "output="),
    xargs: w(
      "0rtpoxd:a:E:e?I:i?L:l?n:P:s:",
      "null no-run-if-empty verbose interactive open-tty exit delimiter= arg-file= eof? replace? max-lines? max-args= max-procs= max-chars= show-limits process-slot-var=",
      { appends: true },
    ),
    watch: w(
      "bcdegprtwxn:q:s:",
      "beep color no-color differences? errexit chgexit interval= equexit= precise no-title exec no-rerun no-wrap shotsdir=",
      { joins: true },
    ),
    script: w(
      "aefqB:c:E:I:O:T:m:o:t?",
      "append command= echo= flush force log-in= log-out= log-io= logging-format= output-limit= quiet return timing?",
      { text: ["c", "command"], skip: 1 },
    ),
    parallel: w(
      "0kmXuj:n:N:L:S:I:a:d:",
      "dry-run keep-order jobs= halt= colsep= null xargs group ungroup tag bar eta progress",
      { joins: true, appends: true },
    ),
    entr: w("acdnprsz", "", { appends: true, joins: true }),
    fakeroot: w("uhvl:s:i:b:", "lib= faked= unknown-is-real save-file= load-file="),
    catchsegv: w("", ""),
    "systemd-run": w(
      "dPqrtGSu:p:M:H:",
      "user scope pty pipe quiet wait collect unit= property= description= slice= uid= gid= setenv= working-directory= no-block same-dir",
    ),
    proxychains: w("qf:", ""),
    proxychains4: w("qf:", ""),
    torsocks: w("qdiIu:p:a:P:", ""),
    coproc: w("", ""),
    noglob: w("", ""),
    nocorrect: w("", ""),
  }),
);

/** Programs whose `exec` and `run` start a command somewhere else. */
export const containers: ReadonlySet<string> = new Set(
  "docker podman nerdctl docker-compose kubectl oc lxc".split(" "),
);

/** Package managers whose `exec` starts a program. */
export const packageRunners: ReadonlySet<string> = new Set("npm pnpm yarn bun".split(" "));

/** Shells, and the options after which text follows. */
const shells = new Set(["bash", "sh", "zsh", "dash", "ksh", "mksh", "ash", "fish", "rbash", "csh", "tcsh", "yash"]);
export const shellSpec: OptionSpec = {
  short: "abcefhiklmnprstuvxBCDEHPO:o:",
  long: "login norc noprofile posix restricted verbose noediting rcfile= init-file= debugger version help",
  stopAtOperand: true,
};

/** Programs that are given code of another language, which is not read here. */
const interpreters =
  /^(python[\d.]*|pypy[\d.]*|perl[\d.]*|ruby[\d.]*|node|nodejs|deno|bun|php[\d.]*|lua[\d.]*|luajit|tclsh[\d.]*|wish|osascript|julia|Rscript|R|guile|groovy|scala|ghci|runghc|elixir|erl|swift|pwsh|powershell|cmd|expect|gdb|lldb|ed|ex|vi|vim|nvim|emacs|nano|awk|gawk|mawk|nawk|sqlite3|psql|mysql|bc|dc|m4|make|gmake|ssh|tmux|screen|at|batch|crontab)(\.exe)?$/i;

export function isInterpreter(name: string): boolean {
  return interpreters.test(name);
}

export function isShell(name: string): boolean {
  return shells.has(name);
}

export function isWrapper(name: string): boolean {
  return wrappers.has(name) || shells.has(name);
}
