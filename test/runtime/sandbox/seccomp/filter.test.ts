import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { assemble } from "../../../../src/runtime/sandbox/seccomp/assemble.ts";
import { seccompProgram, startFilter } from "../../../../src/runtime/sandbox/seccomp/filter.ts";
import type { SocketRule } from "../../../../src/runtime/sandbox/seccomp/filter.ts";
import {
  refused,
  asked,
  auditArchitecture,
  syscallNumber,
  syscalls,
} from "../../../../src/runtime/sandbox/seccomp/syscalls.ts";
import type { Architecture, SyscallName } from "../../../../src/runtime/sandbox/seccomp/syscalls.ts";
import { runFilter } from "./interpreter.ts";

const EPERM = { errno: 1 };
const ENOSYS = { errno: 38 };
const architectures: readonly Architecture[] = ["x64", "arm64"];

describe.each(architectures)("on %s", (architecture) => {
  const program = (sockets: SocketRule = "private", more = {}) => seccompProgram({ architecture, sockets, ...more });
  const call = (name: SyscallName, ...args: (number | bigint)[]) => ({
    nr: syscallNumber(name, architecture),
    arch: auditArchitecture[architecture],
    args: args.map(BigInt),
  });
  const has = (name: SyscallName) => syscallNumber(name, architecture) >= 0;

  test.each(refused.filter(has))("%s is refused", (name) => {
    expect(runFilter(program(), call(name))).toEqual(EPERM);
  });

  test.each(["clone3", "io_uring_setup", "io_uring_enter", "io_uring_register"] as const)(
    "%s looks as if the kernel had none",
    (name) => {
      expect(runFilter(program(), call(name))).toEqual(ENOSYS);
    },
  );

  test("a call by another architecture's numbers kills", () => {
    const foreign = [0x40000003, 0x40000028, auditArchitecture[architecture === "x64" ? "arm64" : "x64"]];
    for (const arch of foreign) expect(runFilter(program(), { nr: 20, arch })).toBe("kill");
  });

  test("x32 calls are not there", () => {
    const nr = 0x40000000 | syscallNumber("unshare", architecture);
    expect(runFilter(program(), { nr, arch: auditArchitecture[architecture] })).toEqual(
      architecture === "x64" ? ENOSYS : "allow",
    );
  });

  test("processes and threads may be made, namespaces not", () => {
    const thread = 0x3d0f00;
    expect(runFilter(program(), call("clone", 17))).toBe("allow");
    expect(runFilter(program(), call("clone", thread))).toBe("allow");
    for (const flag of [0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000]) {
      expect(runFilter(program(), call("clone", flag | 17))).toEqual(EPERM);
      expect(runFilter(program(), call("unshare", flag))).toEqual(EPERM);
    }
    expect(runFilter(program(), call("unshare", 0x80))).toEqual(EPERM);
    expect(runFilter(program(), call("unshare", 0x400))).toBe("allow");
  });

  test("nothing can be typed into a terminal, whatever the upper half of the request says", () => {
    for (const request of [0x5412n, 0x541cn, 0x100005412n])
      expect(runFilter(program(), call("ioctl", 0, request))).toEqual(EPERM);
    expect(runFilter(program(), call("ioctl", 0, 0x5413))).toBe("allow");
  });

  test.each([
    ["private", [1, 2, 10, 16]],
    ["host", [1, 2, 10, 16]],
    ["inet", [2, 10, 16]],
    ["unix", [1]],
  ] as const)("with %s sockets, of all families only %j", (sockets, families) => {
    for (let family = 0; family < 64; family++) {
      const expected = families.some((one) => one === family) ? "allow" : EPERM;
      expect([family, runFilter(program(sockets), call("socket", family, 1, 0))]).toEqual([family, expected]);
    }
  });

  test("with tcp sockets only streams of the internet families, and only TCP", () => {
    const stream = 1 | 0o2000000 | 0o4000; // SOCK_CLOEXEC and SOCK_NONBLOCK ride along
    for (const family of [2, 10]) {
      expect(runFilter(program("tcp"), call("socket", family, stream, 0))).toBe("allow");
      expect(runFilter(program("tcp"), call("socket", family, stream, 6))).toBe("allow");
      for (const protocol of [132, 262])
        expect(runFilter(program("tcp"), call("socket", family, stream, protocol))).toEqual(EPERM);
      for (const type of [2, 3, 5]) expect(runFilter(program("tcp"), call("socket", family, type, 0))).toEqual(EPERM);
    }
    expect(runFilter(program("tcp"), call("socket", 1, 1, 0))).toEqual(EPERM);
    expect(runFilter(program("tcp"), call("socket", 40, 1, 0))).toEqual(EPERM);
  });

  test("where Landlock overlooks it, a file cannot be cut short by reading it", () => {
    const careful = program("unix", { refuseTruncate: true });
    expect(runFilter(careful, call("truncate"))).toEqual(EPERM);
    expect(runFilter(careful, call("openat2"))).toEqual(ENOSYS);
    expect(runFilter(careful, call("openat", 0, 0, 0x200))).toEqual(EPERM);
    expect(runFilter(careful, call("openat", 0, 0, 0x241))).toBe("allow");
    expect(runFilter(careful, call("openat", 0, 0, 0))).toBe("allow");
    if (has("open")) expect(runFilter(careful, call("open", 0, 0x200))).toEqual(EPERM);
  });

  describe("a file that would run as its owner", () => {
    const [setUid, setGid, plain, create] = [0o4755, 0o2755, 0o1777, 0x41];
    const kinds = [
      ["in namespaces of its own", {}, EPERM],
      ["where starts are judged inside", { judgedInside: true }, EPERM],
      ["where Landlock overlooks truncation", { refuseTruncate: true }, EPERM],
    ] as const;

    test.each(kinds)("cannot be made or become one, %s", (_name, more, no) => {
      const filter = program("private", more);
      for (const mode of [setUid, setGid, 0o6000]) {
        for (const name of ["chmod", "fchmod", "creat", "mknod"] as const)
          if (has(name)) expect([name, runFilter(filter, call(name, 0, mode))]).toEqual([name, no]);
        for (const name of ["fchmodat", "fchmodat2", "mknodat"] as const)
          expect([name, runFilter(filter, call(name, 0, 0, mode))]).toEqual([name, no]);
        if (has("open")) expect(runFilter(filter, call("open", 0, create, mode))).toEqual(no);
        expect(runFilter(filter, call("openat", 0, 0, create, mode))).toEqual(no);
      }
    });

    test.each(kinds)("is the only one that cannot, %s", (_name, more) => {
      const filter = program("private", more);
      for (const name of ["chmod", "fchmod", "creat", "mknod"] as const)
        if (has(name)) expect(runFilter(filter, call(name, 0, plain))).toBe("allow");
      for (const name of ["fchmodat", "fchmodat2", "mknodat"] as const)
        expect(runFilter(filter, call(name, 0, 0, plain))).toBe("allow");
      expect(runFilter(filter, call("openat", 0, 0, create, plain))).toBe("allow");
      // Without O_CREAT there is no mode: whatever stands in its place is nobody's.
      expect(runFilter(filter, call("openat", 0, 0, 1, setUid))).toBe("allow");
      if (has("open")) expect(runFilter(filter, call("open", 0, 1, setUid))).toBe("allow");
    });

    test("is asked about where the launcher answers for modes, and cannot be created there either", () => {
      const shared = program("unix", { hostView: true });
      expect(runFilter(shared, call("fchmodat", 0, 0, setUid))).toBe("ask");
      expect(runFilter(shared, call("openat", 0, 0, create, setUid))).toEqual(EPERM);
      expect(runFilter(shared, call("mknodat", 0, 0, setUid))).toEqual(EPERM);
    });

    test("cannot be hidden in openat2, which only the judge of starts may use, and whose filter then takes it away", () => {
      expect(runFilter(program(), call("openat2"))).toEqual(ENOSYS);
      expect(runFilter(program("private", { judgedInside: true }), call("openat2"))).toBe("allow");
      for (const starts of ["program", "words"] as const)
        expect(runFilter(startFilter(architecture, starts), call("openat2"))).toEqual(ENOSYS);
    });
  });

  describe("starts of programs", () => {
    test.each(["program", "words"] as const)("are asked about, %s", (starts) => {
      for (const filter of [startFilter(architecture, starts), program("unix", { hostView: true, starts })]) {
        for (const name of ["execve", "execveat"] as const) expect(runFilter(filter, call(name))).toBe("ask");
        expect(runFilter(filter, call("set_tid_address"))).toBe(starts === "words" ? "ask" : "allow");
      }
    });

    test("are nobody's question where no rule denies anything", () => {
      for (const name of ["execve", "execveat", "set_tid_address"] as const)
        expect(runFilter(program(), call(name))).toBe("allow");
    });
  });

  test("without namespaces, limits and priorities of other processes stay as they are", () => {
    const shared = program("unix", { hostView: true });
    expect(runFilter(shared, call("prlimit64", 0))).toBe("allow");
    expect(runFilter(shared, call("prlimit64", 1))).toEqual(EPERM);
    for (const name of ["setpriority", "ioprio_set"] as const) {
      expect(runFilter(shared, call(name, 0, 0))).toBe("allow");
      expect(runFilter(shared, call(name, 0, 1))).toEqual(EPERM);
    }
    expect(runFilter(program(), call("prlimit64", 1))).toBe("allow");
  });

  describe("without namespaces", () => {
    const shared = program("unix", { hostView: true });

    test.each([...asked.filter(has), "connect"] as const)("%s is asked about, and nowhere else", (name) => {
      expect(runFilter(shared, call(name))).toBe("ask");
      expect(runFilter(program(), call(name))).toBe("allow");
    });

    test("with the network granted nothing connects by path, so connecting needs no question", () => {
      for (const sockets of ["tcp", "inet"] as const)
        expect(runFilter(program(sockets, { hostView: true }), call("connect"))).toBe("allow");
    });

    test("sockets that name their receiver in each message cannot be made", () => {
      const flags = 0o2000000 | 0o4000;
      for (const name of ["socket", "socketpair"] as const) {
        for (const type of [1, 5]) expect(runFilter(shared, call(name, 1, type | flags, 0))).toBe("allow");
        for (const type of [2, 3, 4]) expect(runFilter(shared, call(name, 1, type | flags, 0))).toEqual(EPERM);
      }
      for (const sockets of ["tcp", "inet"] as const)
        expect(runFilter(program(sockets, { hostView: true }), call("socketpair", 1, 2, 0))).toEqual(EPERM);
    });

    test("attributes beyond the mode are unsupported, by call and by a file's own requests", () => {
      for (const name of ["setxattr", "fsetxattr", "setxattrat", "file_setattr"] as const) {
        expect(runFilter(shared, call(name))).toEqual({ errno: 95 });
        expect(runFilter(program(), call(name))).toBe("allow");
      }
      // FS_IOC_SETFLAGS, FS_IOC_FSSETXATTR, BTRFS_IOC_SUBVOL_CREATE
      for (const request of [0x40086602, 0x401c5820, 0x5000940e])
        expect(runFilter(shared, call("ioctl", 3, request))).toEqual({ errno: 95 });
      for (const request of [0x5401, 0x541b, 0x80045430])
        // TCGETS, FIONREAD, TIOCGPTN
        expect(runFilter(shared, call("ioctl", 0, request))).toBe("allow");
    });

    test("the host's shared memory, semaphores and queues are not there", () => {
      for (const name of ["shmget", "shmat", "semop", "msgsnd", "mq_open"] as const) {
        expect(runFilter(shared, call(name))).toEqual(ENOSYS);
        expect(runFilter(program(), call(name))).toBe("allow");
      }
    });
  });

  test("every call that is not named is allowed", () => {
    const named = new Set(Object.keys(syscalls).map((name) => syscallNumber(name as SyscallName, architecture)));
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 600 }),
        fc.array(fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }), { maxLength: 6 }),
        (nr, args) => {
          fc.pre(!named.has(nr));
          expect(runFilter(program(), { nr, arch: auditArchitecture[architecture], args })).toBe("allow");
        },
      ),
    );
  });

  test("the program fits the kernel's limits and is the same each time", () => {
    expect(program().length % 8).toBe(0);
    expect(program().length / 8).toBeLessThan(128);
    expect(program()).toEqual(program());
  });
});

test("no two names of one architecture share a number", () => {
  for (const architecture of architectures) {
    const numbers = Object.keys(syscalls)
      .map((name) => syscallNumber(name as SyscallName, architecture))
      .filter((nr) => nr >= 0);
    expect(new Set(numbers).size).toBe(numbers.length);
  }
});

test("a jump to nowhere, backwards or too far is a mistake of ours and throws", () => {
  expect(() => assemble([{ test: "eq", k: 1, yes: "nowhere" }])).toThrow(RangeError);
  expect(() => assemble([{ label: "back" }, { ret: 0 }, { test: "eq", k: 1, yes: "back" }])).toThrow(RangeError);
  const far = Array.from({ length: 300 }, () => ({ ret: 0 }));
  expect(() => assemble([{ test: "eq", k: 1, yes: "end" }, ...far, { label: "end" }, { ret: 0 }])).toThrow(RangeError);
});
