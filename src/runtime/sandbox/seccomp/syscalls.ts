/** System call numbers as the kernel headers give them (asm/unistd_64.h, asm-generic/unistd.h). */
export type Architecture = "x64" | "arm64";

/** AUDIT_ARCH_X86_64 and AUDIT_ARCH_AARCH64 of linux/audit.h. */
export const auditArchitecture: Readonly<Record<Architecture, number>> = { x64: 0xc000003e, arm64: 0xc00000b7 };

/** `[x64, arm64]`; -1 where the architecture does not have it. */
export const syscalls = {
  ioctl: [16, 29],
  socket: [41, 198],
  socketpair: [53, 199],
  connect: [42, 203],
  clone: [56, 220],
  clone3: [435, 435],
  unshare: [272, 97],

  open: [2, -1],
  openat: [257, 56],
  openat2: [437, 437],
  truncate: [76, 45],
  creat: [85, -1],
  mknod: [133, -1],
  mknodat: [259, 33],

  execve: [59, 221],
  execveat: [322, 281],
  set_tid_address: [218, 96],

  prlimit64: [302, 261],
  setpriority: [141, 140],
  ioprio_set: [251, 30],

  setxattr: [188, 5],
  lsetxattr: [189, 6],
  fsetxattr: [190, 7],
  setxattrat: [463, 463],
  removexattr: [197, 14],
  lremovexattr: [198, 15],
  fremovexattr: [199, 16],
  removexattrat: [466, 466],
  file_setattr: [469, 469],

  chmod: [90, -1],
  fchmod: [91, 52],
  fchmodat: [268, 53],
  fchmodat2: [452, 452],
  chown: [92, -1],
  lchown: [94, -1],
  fchown: [93, 55],
  fchownat: [260, 54],
  utimensat: [280, 88],
  utime: [132, -1],
  utimes: [235, -1],
  futimesat: [261, -1],

  shmget: [29, 194],
  shmat: [30, 196],
  shmctl: [31, 195],
  semget: [64, 190],
  semop: [65, 193],
  semtimedop: [220, 192],
  semctl: [66, 191],
  msgget: [68, 186],
  msgsnd: [69, 189],
  msgrcv: [70, 188],
  msgctl: [71, 187],
  mq_open: [240, 180],
  mq_unlink: [241, 181],

  io_uring_setup: [425, 425],
  io_uring_enter: [426, 426],
  io_uring_register: [427, 427],

  ptrace: [101, 117],
  process_vm_readv: [310, 270],
  process_vm_writev: [311, 271],
  kcmp: [312, 272],
  pidfd_getfd: [438, 438],
  perf_event_open: [298, 241],
  bpf: [321, 280],
  userfaultfd: [323, 282],
  keyctl: [250, 219],
  add_key: [248, 217],
  request_key: [249, 218],

  setns: [308, 268],
  mount: [165, 40],
  umount2: [166, 39],
  pivot_root: [155, 41],
  chroot: [161, 51],
  open_tree: [428, 428],
  move_mount: [429, 429],
  fsopen: [430, 430],
  fsconfig: [431, 431],
  fsmount: [432, 432],
  fspick: [433, 433],
  mount_setattr: [442, 442],
  open_tree_attr: [467, 467],
  open_by_handle_at: [304, 265],
  fanotify_init: [300, 262],
  quotactl: [179, 60],
  quotactl_fd: [443, 443],

  swapon: [167, 224],
  swapoff: [168, 225],
  reboot: [169, 142],
  kexec_load: [246, 104],
  kexec_file_load: [320, 294],
  init_module: [175, 105],
  finit_module: [313, 273],
  delete_module: [176, 106],
  acct: [163, 89],
  syslog: [103, 116],
  settimeofday: [164, 170],
  clock_settime: [227, 112],
  clock_adjtime: [305, 266],
  sethostname: [170, 161],
  setdomainname: [171, 162],
  vhangup: [153, 58],
  lookup_dcookie: [212, 18],
  nfsservctl: [180, 42],
  iopl: [172, -1],
  ioperm: [173, -1],
  uselib: [134, -1],
} as const satisfies Record<string, readonly [number, number]>;

export type SyscallName = keyof typeof syscalls;

export function syscallNumber(name: SyscallName, architecture: Architecture): number {
  return syscalls[name][architecture === "x64" ? 0 : 1];
}

/** If tools are told that the file system does not support these, they continue without complaint. */
export const attributes: readonly SyscallName[] = [
  "setxattr",
  "lsetxattr",
  "fsetxattr",
  "setxattrat",
  "removexattr",
  "lremovexattr",
  "fremovexattr",
  "removexattrat",
  "file_setattr",
];

/** The C library has used utimensat instead for years. Shared memory and queues of System V belong to the host. */
export const absent: readonly SyscallName[] = [
  "utime",
  "utimes",
  "futimesat",
  "shmget",
  "shmat",
  "shmctl",
  "semget",
  "semop",
  "semtimedop",
  "semctl",
  "msgget",
  "msgsnd",
  "msgrcv",
  "msgctl",
  "mq_open",
  "mq_unlink",
];

/**
 * A command of root must not leave behind a file that runs as its owner. openat2 hides its mode, so it is
 * reported as missing.
 */
export const setIdCalls: readonly (readonly [readonly SyscallName[], string])[] = [
  [["chmod", "fchmod", "creat", "mknod"], "mode-second"],
  [["fchmodat", "fchmodat2", "mknodat"], "mode-third"],
  [["open"], "create-second"],
  [["openat"], "create-third"],
  [["openat2"], "nosys"],
];

/** Calls that change things which Landlock does not check, by path or by descriptor. */
export const asked: readonly SyscallName[] = [
  "chmod",
  "fchmod",
  "fchmodat",
  "fchmodat2",
  "chown",
  "lchown",
  "fchown",
  "fchownat",
  "utimensat",
];

/** Refused outright with EPERM: everything in the table that is neither inspected nor answered with ENOSYS. */
export const refused: readonly SyscallName[] = [
  "ptrace",
  "process_vm_readv",
  "process_vm_writev",
  "kcmp",
  "pidfd_getfd",
  "perf_event_open",
  "bpf",
  "userfaultfd",
  "keyctl",
  "add_key",
  "request_key",
  "setns",
  "mount",
  "umount2",
  "pivot_root",
  "chroot",
  "open_tree",
  "move_mount",
  "fsopen",
  "fsconfig",
  "fsmount",
  "fspick",
  "mount_setattr",
  "open_tree_attr",
  "open_by_handle_at",
  "fanotify_init",
  "quotactl",
  "quotactl_fd",
  "swapon",
  "swapoff",
  "reboot",
  "kexec_load",
  "kexec_file_load",
  "init_module",
  "finit_module",
  "delete_module",
  "acct",
  "syslog",
  "settimeofday",
  "clock_settime",
  "clock_adjtime",
  "sethostname",
  "setdomainname",
  "vhangup",
  "lookup_dcookie",
  "nfsservctl",
  "iopl",
  "ioperm",
  "uselib",
];
