/**
 * Which system calls a confined command may not make. Default allow: what is refused is what reaches
 * around mounts and namespaces (new namespaces, mounts, kernel modules, other processes' memory,
 * io_uring, vsock), so that compilers, test runners and servers on loopback go on working.
 */
import { assemble } from "./assemble.ts";
import type { Step } from "./assemble.ts";
import { absent, asked, attributes, auditArchitecture, refused, setIdCalls, syscallNumber } from "./syscalls.ts";
import type { Architecture, SyscallName } from "./syscalls.ts";

/**
 * Which sockets are allowed. `private`: the command has its own network namespace, so loopback and unix
 * sockets are harmless. `host`: the network is granted, and the host's sockets are hidden. The others are
 * for commands that can see the host's sockets. `unix`: nothing of the network. `tcp`: only streams, because
 * Landlock limits their ports. `inet`: the network is granted, but no socket that connects by path.
 */
export type SocketRule = "private" | "host" | "unix" | "tcp" | "inet";

export interface FilterOptions {
  readonly architecture: Architecture;
  readonly sockets: SocketRule;
  /**
   * True if no namespace separates the command from the host's files and shared memory (Landlock). System
   * calls that take a path and that Landlock does not check are then put to the launcher
   * (native/supervisor.c), and calls that nobody needs are refused.
   */
  readonly hostView?: boolean;
  /** Ask the launcher about every program start (native/starts.c). */
  readonly starts?: StartQuestions;
  /**
   * The launcher judges starts under this filter and finds files with openat2, which is therefore allowed
   * here. `startFilter` forbids it.
   */
  readonly judgedInside?: boolean;
  /**
   * Files outside may only be opened for reading, and opening must not truncate them. For kernels whose
   * Landlock does not check truncation.
   */
  readonly refuseTruncate?: boolean;
}

/**
 * `words`: the launcher looks once more when the program has been loaded, because its arguments could be
 * changed before that.
 */
export type StartQuestions = "program" | "words";

const action = { allow: 0x7fff0000, kill: 0x80000000, errno: 0x00050000, ask: 0x7fc00000 } as const;
const errno = { EPERM: 1, ENOSYS: 38, EOPNOTSUPP: 95 } as const;
const family = { unix: 1, inet: 2, inet6: 10, netlink: 16 } as const;

const families: Readonly<Record<SocketRule, readonly number[]>> = {
  private: [family.unix, family.inet, family.inet6, family.netlink],
  unix: [],
  tcp: [],
  inet: [family.inet, family.inet6, family.netlink],
  host: [family.unix, family.inet, family.inet6, family.netlink],
};

/** CLONE_NEW*: ns, cgroup, uts, ipc, user, pid, net. CLONE_NEWTIME shares its bit with clone's exit signal. */
const newNamespaces = 0x7e020000;
const newTimeNamespace = 0x80;
/** Both put words into a terminal's input as if typed. */
const TIOCSTI = 0x5412;
const TIOCLINUX = 0x541c;
/** socket()'s type without SOCK_CLOEXEC and SOCK_NONBLOCK; the same numbers on both architectures. */
const socketType = { bits: 0xf, stream: 1, sequence: 5 } as const;
/** The letters of file systems' own requests: flags, labels, encryption, snapshots; some need no more than an open file. */
const fileRequests = { bits: 0xff00, letters: [0x6600, 0x5800, 0x7600, 0x9400, 0xf500] } as const;

/** ENOSYS makes libc and language runtimes fall back silently. */
const fallBack: readonly SyscallName[] = ["clone3", "io_uring_setup", "io_uring_enter", "io_uring_register"];
const inspected: readonly SyscallName[] = ["ioctl", "socket", "clone", "unshare"];

/** Offsets in `struct seccomp_data`; arguments are 64 bit, their low words come first. */
const offset = { nr: 0, arch: 4, arg: (index: number) => 16 + 8 * index } as const;

/** The program as bytes for `bwrap --seccomp` and for the launcher. Pure, about 70 instructions. */
export function seccompProgram({
  architecture,
  sockets,
  refuseTruncate = false,
  hostView = false,
  judgedInside = false,
  starts,
}: FilterOptions): Uint8Array {
  const number = (name: SyscallName) => syscallNumber(name, architecture);
  const each = (names: readonly SyscallName[], yes: string): readonly Step[] =>
    names
      .map(number)
      .filter((nr) => nr >= 0)
      .map((k) => ({ test: "eq", k, yes }));
  return assemble([
    { load: offset.arch },
    { test: "eq", k: auditArchitecture[architecture], no: "kill" },
    { load: offset.nr },
    // The x32 twin of every call would slip past the numbers below.
    ...(architecture === "x64" ? ([{ test: "atLeast", k: 0x40000000, yes: "nosys" }] as const) : []),
    ...inspected.flatMap((name) => each([name], name)),
    ...(refuseTruncate ? truncations(number) : []),
    // Where the launcher is asked about a mode, it looks at these bits too.
    ...setIdCalls.flatMap(([names, label]) =>
      each(
        names.filter((one) => !(hostView && asked.includes(one)) && !(judgedInside && one === "openat2")),
        label,
      ),
    ),
    ...each(starts === undefined ? [] : startCalls[starts], "ask"),
    ...(hostView
      ? [
          ...each(asked, "ask"),
          ...each(sockets === "unix" ? ["connect"] : [], "ask"),
          ...each(["socketpair"], "socketpair"),
          ...each(["prlimit64"], "of-first"),
          ...each(["setpriority", "ioprio_set"], "of-second"),
          ...each(attributes, "unsupported"),
          ...each(absent, "nosys"),
        ]
      : []),
    ...each(fallBack, "nosys"),
    ...each(refused, "refuse"),
    { ret: action.allow },
    ...inspections(sockets, hostView),
    ...(refuseTruncate ? truncatingOpens : []),
    ...setIdTests,
    { label: "allow" },
    { ret: action.allow },
    { label: "refuse" },
    { ret: action.errno | errno.EPERM },
    { label: "nosys" },
    { ret: action.errno | errno.ENOSYS },
    { label: "ask" },
    { ret: action.ask },
    { label: "unsupported" },
    { ret: action.errno | errno.EOPNOTSUPP },
    { label: "kill" },
    { ret: action.kill },
  ]);
}

const setIdBits = 0o6000;
const O_CREAT = 0x40;

const setIdTests: readonly Step[] = [
  { label: "mode-second" },
  { load: offset.arg(1) },
  { test: "anyBit", k: setIdBits, yes: "refuse", no: "allow" },
  { label: "create-second" },
  { load: offset.arg(1) },
  { test: "anyBit", k: O_CREAT, no: "allow" },
  { label: "mode-third" },
  { load: offset.arg(2) },
  { test: "anyBit", k: setIdBits, yes: "refuse", no: "allow" },
  { label: "create-third" },
  { load: offset.arg(2) },
  { test: "anyBit", k: O_CREAT, no: "allow" },
  { load: offset.arg(3) },
  { test: "anyBit", k: setIdBits, yes: "refuse", no: "allow" },
];

const startCalls: Readonly<Record<StartQuestions, readonly SyscallName[]>> = {
  program: ["execve", "execveat"],
  words: ["execve", "execveat", "set_tid_address"],
};

/**
 * Asks the launcher about program starts. It is installed on top of the filter of a shared sandbox, which it
 * completes (`judgedInside`).
 */
export function startFilter(architecture: Architecture, starts: StartQuestions): Uint8Array {
  return assemble([
    { load: offset.nr },
    ...startCalls[starts].map((name): Step => ({ test: "eq", k: syscallNumber(name, architecture), yes: "ask" })),
    { test: "eq", k: syscallNumber("openat2", architecture), yes: "nosys" },
    { ret: action.allow },
    { label: "nosys" },
    { ret: action.errno | errno.ENOSYS },
    { label: "ask" },
    { ret: action.ask },
  ]);
}

function inspections(sockets: SocketRule, hostView: boolean): readonly Step[] {
  return [
    { label: "ioctl" },
    { load: offset.arg(1) },
    { test: "eq", k: TIOCSTI, yes: "refuse" },
    { test: "eq", k: TIOCLINUX, yes: "refuse" },
    ...(hostView ? refuseFileRequests : []),
    { ret: action.allow },
    { label: "clone" },
    { load: offset.arg(0) },
    { test: "anyBit", k: newNamespaces, yes: "refuse", no: "allow" },
    { label: "unshare" },
    { load: offset.arg(0) },
    { test: "anyBit", k: newNamespaces | newTimeNamespace, yes: "refuse", no: "allow" },
    { label: "socket" },
    { load: offset.arg(0) },
    ...families[sockets].map((k): Step => ({ test: "eq", k, yes: "allow" })),
    ...(sockets === "tcp" ? internetStreams : []),
    ...(sockets === "unix" ? ([{ test: "eq", k: family.unix, no: "refuse" }, ...connecting] as const) : []),
    { ret: action.errno | errno.EPERM },
    ...(hostView ? ([{ label: "socketpair" }, ...connecting, ...ofItselfOnly] as const) : []),
  ];
}

const refuseFileRequests: readonly Step[] = [
  { and: fileRequests.bits },
  ...fileRequests.letters.map((k): Step => ({ test: "eq", k, yes: "unsupported" })),
];

/**
 * Socket types that reach nobody before they connect. A datagram may name a new receiver each time, which no
 * filter can see.
 */
const connecting: readonly Step[] = [
  { load: offset.arg(1) },
  { and: socketType.bits },
  { test: "eq", k: socketType.stream, yes: "allow" },
  { test: "eq", k: socketType.sequence, yes: "allow", no: "refuse" },
];

/**
 * Limits and priorities may be set for the caller only: without a process namespace, any other number may be
 * somebody else's process.
 */
const ofItselfOnly: readonly Step[] = [
  { label: "of-second" },
  { load: offset.arg(1) },
  { test: "eq", k: 0, yes: "allow", no: "refuse" },
  { label: "of-first" },
  { load: offset.arg(0) },
  { test: "eq", k: 0, yes: "allow", no: "refuse" },
];

const internetStreams: readonly Step[] = [
  { test: "eq", k: family.inet, yes: "stream" },
  { test: "eq", k: family.inet6, no: "refuse" },
  { label: "stream" },
  { load: offset.arg(1) },
  { and: socketType.bits },
  { test: "eq", k: socketType.stream, no: "refuse" },
  { load: offset.arg(2) },
  // Only IPPROTO_IP and TCP, because Landlock's TCP rules do not cover other stream protocols (SCTP, MPTCP).
  { test: "eq", k: 0, yes: "allow" },
  { test: "eq", k: 6, yes: "allow", no: "refuse" },
];

const O_TRUNC = 0x200;
const O_WRONLY_or_RDWR = 3;

/**
 * Truncating by path, and the two forms of open whose flags a filter can see. openat2 hides its flags, so it
 * is reported as missing.
 */
function truncations(number: (name: SyscallName) => number): readonly Step[] {
  const jumps = [
    ["truncate", "refuse"],
    ["openat2", "nosys"],
    ["open", "open"],
    ["openat", "openat"],
  ] as const;
  return jumps.filter(([name]) => number(name) >= 0).map(([name, yes]): Step => ({ test: "eq", k: number(name), yes }));
}

/** Landlock decides what may be opened for writing. What remains may still create a file with a mode. */
const truncatingOpens: readonly Step[] = [
  { label: "open" },
  { load: offset.arg(1) },
  { test: "anyBit", k: O_TRUNC, no: "create-second" },
  { test: "anyBit", k: O_WRONLY_or_RDWR, yes: "create-second", no: "refuse" },
  { label: "openat" },
  { load: offset.arg(2) },
  { test: "anyBit", k: O_TRUNC, no: "create-third" },
  { test: "anyBit", k: O_WRONLY_or_RDWR, yes: "create-third", no: "refuse" },
];
