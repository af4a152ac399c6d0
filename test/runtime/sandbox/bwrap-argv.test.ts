import { expect, test } from "vitest";
import { bwrapArgv, type BwrapOptions } from "../../../src/runtime/sandbox/bwrap.ts";
import type { Plan } from "../../../src/runtime/sandbox/plan.ts";
import type { Grant } from "../../../src/spec/access.ts";

const grant: Grant = {
  policy: "workspace-write",
  confined: true,
  write: ["/ws"],
  protect: [".git"],
  mask: [],
  network: "off",
};
const plan: Plan = {
  everything: false,
  roots: ["/ws"],
  watched: [],
  entries: [
    { path: "/run", use: "hide", kind: "directory" },
    { path: "/tmp", use: "temp", kind: "directory" },
    { path: "/ws", use: "write", kind: "directory" },
    { path: "/ws/.git", use: "read", kind: "directory" },
    { path: "/home/u/.ssh", use: "hide", kind: "directory" },
    { path: "/home/u/.npmrc", use: "hide", kind: "file" },
  ],
};
const options: BwrapOptions = {
  architecture: "x64",
  program: "/usr/bin/bwrap",
  proc: "fresh",
  disableUserns: true,
  asRoot: false,
};

function words(
  more: {
    readonly grant?: Grant;
    readonly plan?: Plan;
    readonly options?: Partial<BwrapOptions>;
    readonly env?: Record<string, string>;
    readonly tty?: boolean;
    readonly apart?: boolean;
  } = {},
): string {
  const request = {
    argv: ["ls", "-la"],
    cwd: "/ws",
    env: more.env ?? {},
    grant: more.grant ?? grant,
    ...(more.tty ? { tty: { columns: 80, rows: 24 } } : {}),
  };
  return bwrapArgv(more.plan ?? plan, request, { ...options, apart: more.apart ?? false, ...more.options }).join(" ");
}

test("mounts come in the plan's order, the command last", () => {
  const line = words();
  const order = [
    "--ro-bind / /",
    "--dev /dev",
    "--proc /proc",
    "--tmpfs /run",
    "--tmpfs /tmp",
    "--bind /ws /ws",
    "--ro-bind /ws/.git /ws/.git",
    "-- ls -la",
  ];
  const places = order.map((part) => line.indexOf(part));
  expect(places).not.toContain(-1);
  expect(places).toEqual(places.toSorted((a, b) => a - b));
});

test("every capability is dropped, user namespaces are closed, and nothing outlives us", () => {
  expect(words()).toContain("--cap-drop ALL");
  expect(words()).toContain(
    "--unshare-user --unshare-pid --unshare-ipc --unshare-uts --unshare-cgroup-try --die-with-parent --disable-userns --unshare-net --new-session",
  );
});

test("a sandbox made ahead holds no command, keeps its capabilities for its keepers, and is told what each gets for its own", () => {
  const line = words({ apart: true, options: { asRoot: true } });
  expect(line).toContain("--cap-add ALL");
  expect(line).toMatch(/ -- \/proc\/self\/fd\/9 sandbox npr$/);
  expect(line).not.toMatch(/ls -la|--seccomp|--cap-drop|--disable-userns|--chdir \/ws/);
  expect(words({ apart: true, grant: { ...grant, network: "on" }, options: { proc: "bound" } })).toMatch(/ sandbox $/);
});

test("what a sandbox made ahead shows to every command cannot be changed by one of them", () => {
  expect(words({ apart: true })).toMatch(/--dev \/dev .*--remount-ro \/dev .* -- /);
});

test("a workspace in /dev/shm lies on shared memory that no keeper covers with its own", () => {
  const inShm: Plan = { ...plan, entries: [...plan.entries, { path: "/dev/shm/ws", use: "write", kind: "directory" }] };
  const line = words({ apart: true, plan: inShm });
  expect(line).toMatch(/--dev \/dev .*--tmpfs \/dev\/shm .*--bind \/dev\/shm\/ws .*--remount-ro \/dev .* sandbox nps$/);
  expect(words({ apart: true })).not.toContain("/dev/shm");
});

test("only a granted network shares the host's", () => {
  expect(words({ grant: { ...grant, network: "on" } })).not.toContain("--unshare-net");
  expect(words({ grant: { ...grant, network: ["example.org"] } })).toContain("--unshare-net");
});

test("bubblewrap's own reaper cannot be reached through its memory file", () => {
  expect(words()).toContain("--tmpfs /proc/1 --remount-ro /proc/1");
});

test("root cannot write the kernel's switches", () => {
  expect(words({ options: { asRoot: true } })).toMatch(/--remount-ro \/proc /);
  expect(words()).not.toMatch(/--remount-ro \/proc /);
});

test("a bound /proc is read-only as a whole", () => {
  expect(words({ options: { proc: "bound" } })).toContain("--ro-bind /proc /proc");
  expect(words({ options: { proc: "bound" } })).not.toContain("--proc ");
});

test("hidden folders cannot be listed or filled, hidden files are empty", () => {
  expect(words()).toContain("--perms 0000 --tmpfs /home/u/.ssh");
  expect(words()).toContain("--remount-ro /home/u/.ssh");
  expect(words()).toContain("--ro-bind /dev/null /home/u/.npmrc");
});

test("a folder of the host backs the temp folder only while no mount point lies in it", () => {
  expect(words({ options: { tempFolder: "/state/tmp" } })).toContain("--bind /state/tmp /tmp");
  const inTemp: Plan = { ...plan, entries: [...plan.entries, { path: "/tmp/ws", use: "write", kind: "directory" }] };
  expect(words({ plan: inTemp, options: { tempFolder: "/state/tmp" } })).not.toContain("/state/tmp");
});

test("variables that steer the loader reach the command only, never bubblewrap itself", () => {
  expect(words({ env: { LD_PRELOAD: "/ws/evil.so", PATH: "/bin" } })).toContain("--setenv LD_PRELOAD /ws/evil.so");
  expect(words({ env: { PATH: "/bin" } })).not.toContain("--setenv");
});

test("a terminal from outside stays the command's terminal", () => {
  expect(words({ tty: true })).not.toContain("--new-session");
});

test("the same inputs give the same words", () => {
  expect(words()).toBe(words());
});
