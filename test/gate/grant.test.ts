import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { isWithin, toBaseGrant, widenGrant } from "../../src/gate/grant.ts";
import { createPolicy } from "../../src/gate/options.ts";
import type { Rule } from "../../src/gate/rules.ts";
import type { Grant } from "../../src/spec/access.ts";

const grant: Grant = {
  policy: "workspace-write",
  confined: true,
  write: ["/ws"],
  protect: [".git"],
  mask: ["/home/u/.ssh", "/home/u/.aws", "/run/docker.sock"],
  network: "off",
};

test("a read that was refused opens the one mask over it, and no other", () => {
  const wider = widenGrant(grant, { what: "read", target: "/home/u/.aws/config", reason: "masked" });
  expect(wider).toEqual({ ...grant, mask: ["/home/u/.ssh", "/run/docker.sock"] });
});

test("a write that was refused opens that path; under read-only nothing else with it", () => {
  const wider = widenGrant(
    { ...grant, policy: "read-only", write: [] },
    { what: "write", target: "/out/a", reason: "x" },
  );
  expect(wider).toEqual({ ...grant, write: ["/out/a"] });
  expect(widenGrant(grant, { what: "write", target: "/ws", reason: "x" }).write).toEqual(["/ws"]);
});

test("a host that was refused is added; without a host the network opens", () => {
  const hosts = widenGrant(grant, { what: "network", target: "a.test", reason: "x" });
  expect(hosts).toEqual({ ...grant, network: ["a.test"] });
  expect(widenGrant(hosts, { what: "network", target: "b.test", reason: "x" }).network).toEqual(["a.test", "b.test"]);
  expect(widenGrant(grant, { what: "network", reason: "x" })).toEqual({ ...grant, network: "on" });
});

test("what cannot be opened by a step is opened as a whole, masks kept", () => {
  for (const denied of [
    { what: "command", reason: "x" },
    { what: "write", target: "relative", reason: "x" },
    { what: "write", reason: "x" },
    { what: "read", reason: "x" },
  ] as const)
    expect(widenGrant(grant, denied)).toEqual({
      ...grant,
      policy: "full-access",
      confined: false,
      write: ["/"],
      protect: [],
      network: "on",
    });
});

test("a grant is within another where it is wider in nothing", () => {
  expect(isWithin(grant, grant)).toBe(true);
  const wider: readonly Partial<Grant>[] = [
    { policy: "full-access" },
    { confined: false },
    { write: ["/ws", "/out"] },
    { mask: ["/home/u/.ssh"] },
    { protect: [] },
    { network: "on" },
    { network: ["a.test"] },
  ];
  for (const more of wider) {
    expect(isWithin({ ...grant, ...more }, grant), JSON.stringify(more)).toBe(false);
    expect(isWithin(grant, { ...grant, ...more }), JSON.stringify(more)).toBe(true);
  }
  expect(isWithin({ ...grant, network: ["a.test"] }, { ...grant, network: ["a.test", "b.test"] })).toBe(true);
  expect(isWithin({ ...grant, network: ["c.test"] }, { ...grant, network: ["a.test"] })).toBe(false);
  expect(isWithin({ ...grant, network: "on" }, { ...grant, network: ["a.test"] })).toBe(false);
  expect(isWithin({ ...grant, write: ["/ws/a"] }, grant)).toBe(true);
  expect(isWithin({ ...grant, write: [], protect: [] }, grant)).toBe(true);
  expect(isWithin({ ...grant, write: ["/x"] }, { ...grant, write: ["/"] })).toBe(true);
});

test("more time than was granted is wider, the same or less is not", () => {
  expect(isWithin({ ...grant, patience: 10 }, grant)).toBe(false);
  expect(isWithin(grant, { ...grant, patience: 10 })).toBe(true);
  expect(isWithin({ ...grant, patience: 10 }, { ...grant, patience: 10 })).toBe(true);
  expect(widenGrant({ ...grant, patience: 10 }, { what: "time", reason: "x" }).patience).toBe(100);
});

test("a rule that allows one place opens it for writing; a pattern, a bare name, a read or an ask opens nothing", () => {
  const writable = (rule: Rule) =>
    toBaseGrant(
      createPolicy({
        settings: { approval: "on-request", sandbox: "workspace-write" },
        workspace: "/ws",
        confinement: { name: "test", available: true },
        rules: [rule],
      }),
    ).write.filter((path) => path.startsWith("/data"));
  expect(writable({ path: "/data/out", decision: "allow" })).toEqual(["/data/out"]);
  expect(writable({ path: "/data/out", access: "write", decision: "allow" })).toEqual(["/data/out"]);
  expect(writable({ path: "/data/*", decision: "allow" })).toEqual([]);
  expect(writable({ path: "/data/out", access: "read", decision: "allow" })).toEqual([]);
  expect(writable({ path: "/data/out", decision: "ask" })).toEqual([]);
});

test("what a rule denies to read is hidden from commands: one place, a name anywhere, a pattern", () => {
  const ws = mkdtempSync(join(tmpdir(), "callgate-grant-"));
  const files = [".env", "a/.env", "a/b/x.key", "keys/one.key", "node_modules/p/.env", "plain.txt"];
  for (const file of files) {
    mkdirSync(dirname(join(ws, file)), { recursive: true });
    writeFileSync(join(ws, file), "x");
  }
  const hidden = (rule: Rule) =>
    toBaseGrant(
      createPolicy({
        settings: { approval: "on-request", sandbox: "workspace-write" },
        workspace: ws,
        confinement: { name: "test", available: true },
        rules: [rule],
      }),
    )
      .mask.filter((path) => path.startsWith(`${ws}/`))
      .map((path) => path.slice(ws.length + 1))
      .toSorted();
  expect(hidden({ path: "keys/one.key", decision: "deny" })).toEqual(["keys/one.key"]);
  expect(hidden({ path: "not/there", access: "read", decision: "deny" })).toEqual(["not/there"]);
  // What others wrote (node_modules) is large, and not looked through.
  expect(hidden({ path: ".env", decision: "deny" })).toEqual([".env", "a/.env"]);
  expect(hidden({ path: "*.key", decision: "deny" })).toEqual(["a/b/x.key", "keys/one.key"]);
  expect(hidden({ path: "keys/*.key", decision: "deny" })).toEqual(["keys/one.key"]);
  expect(hidden({ path: ".env", access: "write", decision: "deny" })).toEqual([]);
  expect(hidden({ path: ".env", decision: "ask" })).toEqual([]);
  rmSync(ws, { recursive: true, force: true });
});

test("a file that is made later and that a rule denies to read is hidden too, and each workspace has its own", async () => {
  const [ws, other] = ["one", "two"].map((name) => mkdtempSync(join(tmpdir(), `callgate-grant-${name}-`)));
  const policy = createPolicy({
    workspace: ws!,
    confinement: { name: "test", available: true },
    rules: [{ path: "*.key", decision: "deny" }],
  });
  const hidden = (workspace: string) =>
    toBaseGrant({ ...policy, workspace }).mask.filter((path) => path.startsWith(`${workspace}/`));
  writeFileSync(join(other!, "b.key"), "x");
  expect([hidden(ws!), hidden(other!)]).toEqual([[], [join(other!, "b.key")]]);
  writeFileSync(join(ws!, "a.key"), "x");
  await expect.poll(() => hidden(ws!), { timeout: 5_000 }).toEqual([join(ws!, "a.key")]);
  for (const folder of [ws, other]) rmSync(folder!, { recursive: true, force: true });
});
