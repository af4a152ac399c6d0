/** A plan as Landlock rules: a right that is given to a folder holds for everything below it, and cannot be taken back. */
import { existsSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { expect, test } from "vitest";
import { landlockRules } from "../../../src/runtime/sandbox/landlock-rules.ts";
import type { RulesetOptions } from "../../../src/runtime/sandbox/landlock-rules.ts";
import { contains } from "../../../src/runtime/sandbox/plan.ts";
import type { Plan, PlanEntry } from "../../../src/runtime/sandbox/plan.ts";
import type { Grant } from "../../../src/spec/access.ts";
import { freshFolder } from "./folder.ts";

const right = { execute: 1, writeFile: 2, readFile: 4, readDir: 8, makeChar: 64, makeReg: 256, makeBlock: 2048 };
const [refer, truncate, ioctlDev] = [1 << 13, 1 << 14, 1 << 15];

function rulesFor(root: string, more: Partial<RulesetOptions> & { entries?: readonly PlanEntry[] } = {}) {
  const grant: Grant = {
    policy: "workspace-write",
    confined: true,
    write: [root],
    protect: [],
    mask: [],
    network: "off",
  };
  const plan: Plan = { everything: false, roots: [root], watched: [], entries: more.entries ?? [] };
  return landlockRules({ abi: 6, plan, grant, cwd: root, tempFolder: undefined, ...more });
}

/** What the kernel would allow: the rights of every rule at or above the path. */
function rightsAt(path: string, { rules }: ReturnType<typeof rulesFor>): number {
  return rules.filter((rule) => contains(rule.path, path)).reduce((all, rule) => all | rule.access, 0);
}

test("only the granted folder may be changed; everything else may be read and run", () => {
  const root = freshFolder("/var/tmp");
  const rules = rulesFor(root);
  for (const use of [right.writeFile, right.makeReg, right.readFile, right.execute, truncate, refer])
    expect(rightsAt(join(root, "a"), rules) & use).toBe(use);
  for (const path of ["/etc/passwd", "/usr/bin/env", "/var/tmp/other"]) {
    const rights = rightsAt(path, rules);
    expect([path, rights & (right.readFile | right.execute)]).toEqual([path, right.readFile | right.execute]);
    expect([path, rights & (right.writeFile | right.makeReg | truncate | refer)]).toEqual([path, 0]);
  }
  // A device could be made in a writable folder, and read as the disk that it is.
  expect(rightsAt(join(root, "a"), rules) & (right.makeChar | right.makeBlock)).toBe(0);
});

test("of the devices only the harmless ones are there", () => {
  const rules = rulesFor(freshFolder("/var/tmp"));
  for (const path of ["/dev/null", "/dev/urandom", "/dev/tty", "/dev/pts/3"])
    expect([path, rightsAt(path, rules) & (right.readFile | right.writeFile)]).toEqual([path, 6]);
  for (const path of ["/dev/sda", "/dev/mem", "/dev/kmsg", "/dev/nullx"])
    expect([path, rightsAt(path, rules) & (right.readFile | right.writeFile)]).toEqual([path, 0]);
});

test("what is hidden gets no right but to be listed, and what lies beside it keeps its own", () => {
  const root = freshFolder("/var/tmp");
  mkdirSync(join(root, "keys", "old"), { recursive: true });
  mkdirSync(join(root, "src"));
  writeFileSync(join(root, "keys", "old", "id"), "");
  writeFileSync(join(root, "keys", "readme"), "");
  const rules = rulesFor(root, { entries: [{ path: join(root, "keys", "old"), use: "hide", kind: "directory" }] });
  expect(rightsAt(join(root, "keys", "old", "id"), rules)).toBe(right.readDir);
  expect(rightsAt(join(root, "keys", "readme"), rules) & right.writeFile).toBe(right.writeFile);
  expect(rightsAt(join(root, "src", "new"), rules) & right.writeFile).toBe(right.writeFile);
});

test("no link beside something hidden becomes a rule, because the rule would hold for its target", () => {
  const [root, outside] = [freshFolder("/var/tmp"), freshFolder("/var/tmp")];
  writeFileSync(join(root, "secret"), "");
  symlinkSync(outside, join(root, "link"));
  const { rules } = rulesFor(root, { entries: [{ path: join(root, "secret"), use: "hide", kind: "file" }] });
  expect(rules.filter(({ path }) => path.startsWith(root)).map(({ path }) => path)).not.toContain(join(root, "link"));
});

test("where the way to something hidden cannot be looked at, nothing on it is opened", () => {
  const root = freshFolder("/var/tmp");
  writeFileSync(join(root, "file"), "");
  const { rules } = rulesFor(root, {
    entries: [{ path: join(root, "file", "below"), use: "hide", kind: "file" }],
  });
  for (const { path } of rules) expect(typeof path).toBe("string");
  expect(rules.some(({ path }) => path === join(root, "file"))).toBe(false);
});

test("whatever is hidden, nothing of it may be read or written, and no rule is wider than the plan", () => {
  const root = freshFolder("/var/tmp");
  const names = ["a", "b", "a/x", "a/y", "a/x/1", "b/z"];
  for (const name of names) mkdirSync(join(root, name), { recursive: true });
  for (const name of names) writeFileSync(join(root, name, "file"), "");
  fc.assert(
    fc.property(fc.subarray(names), fc.boolean(), (hidden, everything) => {
      const entries = hidden.map((name): PlanEntry => ({ path: join(root, name), use: "hide", kind: "directory" }));
      const plan: Plan = { everything, roots: [everything ? "/" : root], watched: [], entries };
      const rules = rulesFor(root, { plan });
      for (const name of names) {
        const path = join(root, name, "file");
        const isHidden = hidden.some((one) => contains(join(root, one), path));
        const open = right.readFile | right.writeFile;
        expect([name, rightsAt(path, rules) & open]).toEqual([name, isHidden ? 0 : open]);
      }
    }),
    { numRuns: 40 },
  );
});

test("a folder that is granted inside a hidden one can be read", () => {
  const root = freshFolder("/var/tmp");
  mkdirSync(join(root, "state", "kept"), { recursive: true });
  const rules = rulesFor(freshFolder("/var/tmp"), {
    entries: [
      { path: join(root, "state"), use: "hide", kind: "directory" },
      { path: join(root, "state", "kept"), use: "read", kind: "directory" },
    ],
  });
  expect(rightsAt(join(root, "state", "journal"), rules)).toBe(right.readDir);
  expect(rightsAt(join(root, "state", "kept", "out"), rules) & (right.readFile | right.writeFile)).toBe(right.readFile);
  expect(rules.held).toEqual([join(root, "state", "kept")]);
});

test("rights that this kernel does not know are left out of every rule and of the whole", () => {
  const root = freshFolder("/var/tmp");
  for (const [abi, unknown] of [
    [1, refer | truncate | ioctlDev],
    [2, truncate | ioctlDev],
    [3, ioctlDev],
    [4, ioctlDev],
    [5, 0],
    [6, 0],
  ] as const) {
    const { handledFs, rules } = rulesFor(root, { abi });
    expect([abi, handledFs & unknown, handledFs | unknown]).toEqual([abi, 0, 0xffff]);
    for (const { access } of rules) expect([abi, access & unknown]).toEqual([abi, 0]);
  }
});

test("connections are limited from ABI 4 on, signals and abstract sockets from 6 on, and the proxy's port is open", () => {
  const root = freshFolder("/var/tmp");
  expect([3, 4].map((abi) => rulesFor(root, { abi }).handledNet)).toEqual([0, 3]);
  expect([5, 6].map((abi) => rulesFor(root, { abi }).scoped)).toEqual([0, 3]);
  expect(rulesFor(root).netRules).toEqual([]);
  expect(rulesFor(root, { proxyPort: 4_128 }).netRules).toEqual([{ port: 4_128, access: 2 }]);
  const grant: Grant = { policy: "read-only", confined: true, write: [], protect: [], mask: [], network: "on" };
  expect(rulesFor(root, { grant }).handledNet).toBe(0);
});

test.skipIf(!existsSync("/dev/shm"))(
  "shared memory may be written, unless a workspace or something hidden lies in it",
  () => {
    const elsewhere = freshFolder("/var/tmp");
    const [inShm, beside] = [freshFolder("/dev/shm"), freshFolder("/dev/shm")];
    writeFileSync(join(inShm, "key"), "");
    expect(rightsAt("/dev/shm/new", rulesFor(elsewhere)) & right.makeReg).toBe(right.makeReg);
    const own = rulesFor(inShm, { entries: [{ path: join(inShm, "key"), use: "hide", kind: "file" }] });
    expect(rightsAt(join(inShm, "key"), own)).toBe(right.readDir);
    expect(rightsAt(join(beside, "file"), own) & (right.readFile | right.writeFile)).toBe(right.readFile);
    const readOnly = rulesFor(inShm, { plan: { everything: false, roots: [], watched: [], entries: [] } });
    expect(rightsAt(join(inShm, "key"), readOnly) & (right.writeFile | right.makeReg | truncate)).toBe(0);
  },
);

test("the private temp folder may be written", () => {
  const temp = freshFolder("/var/tmp");
  const rules = rulesFor(freshFolder("/var/tmp"), { tempFolder: temp });
  expect(rightsAt(join(temp, "x"), rules) & right.makeReg).toBe(right.makeReg);
});
