import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeEach, expect, test, vi } from "vitest";
import { createLoginEnv } from "../../../src/runtime/process/login-env.ts";

const home = mkdtempSync(join(tmpdir(), "callgate-login-"));
const base = { HOME: home, PATH: "/usr/bin:/bin", KEPT: "yes" };
const profile = (text: string) => writeFileSync(join(home, ".bash_profile"), text);
beforeEach(() => profile(""));
afterAll(() => rmSync(home, { recursive: true, force: true }));

test("the login files are read once, and what they say is laid over the environment", async () => {
  profile(`echo greeting; echo x >> ${home}/count; export FROM_LOGIN="two\nlines" PATH="$PATH:/opt/mine"`);
  const login = createLoginEnv();
  const [first, second] = await Promise.all([login.read("/bin/bash", base), login.read("/bin/bash", base)]);
  await login.read("/bin/bash", { ...base, CHANGED: "no matter" });
  expect(first).toMatchObject({ KEPT: "yes", FROM_LOGIN: "two\nlines", PATH: expect.stringMatching(/:\/opt\/mine$/) });
  expect(second).toEqual(first);
  expect(Object.keys(first)).not.toContain("SHLVL");
  expect(readFileSync(join(home, "count"), "utf8")).toBe("x\n");
});

test("login files that hang, fail or wait do not: the environment stays as it was", async () => {
  profile("sleep 60");
  const started = performance.now();
  expect(await createLoginEnv({ timeoutMs: 200 }).read("/bin/bash", base)).toEqual(base);
  expect(performance.now() - started).toBeLessThan(20_000);
  profile("exit 3");
  expect(await createLoginEnv().read("/bin/bash", base)).toEqual(base);
  profile("sleep 60 & read -r x");
  expect(await createLoginEnv().read("/bin/bash", base)).toMatchObject({ KEPT: "yes" });
});

test("a shell that is not there, or is none, changes nothing", async () => {
  expect(await createLoginEnv().read("/no/such/bash", base)).toEqual(base);
  expect(await createLoginEnv().read("/usr/bin/python3", base)).toEqual(base);
});

/** As pyenv does: a lock while it works, removed at the end or when it is asked to stop. */
const locking = (seconds: number) =>
  `touch ${home}/lock; trap 'rm -f ${home}/lock; exit 1' TERM; sleep ${seconds} & wait; rm -f ${home}/lock; export LATE=yes`;

test("slow login files are left to end by themselves: no lock stays, and the next command has their answer", async () => {
  profile(locking(1));
  const warnings: string[] = [];
  const login = createLoginEnv({ timeoutMs: 100, onWarning: (text) => warnings.push(text) });
  expect(await login.read("/bin/bash", base)).toEqual(base);
  expect(warnings).toEqual([expect.stringContaining("login files take more than 0.1 s")]);
  expect(existsSync(join(home, "lock"))).toBe(true);
  for (let tries = 0; existsSync(join(home, "lock")) && tries < 200; tries++) await sleep(50);
  await sleep(200);
  expect(await login.read("/bin/bash", base)).toMatchObject({ LATE: "yes" });
});

test("login files that do not end are asked to, so that they can take their lock away", async () => {
  profile(locking(600));
  const login = createLoginEnv({ timeoutMs: 50, patienceMs: 400 });
  expect(await login.read("/bin/bash", base)).toEqual(base);
  for (let tries = 0; existsSync(join(home, "lock")) && tries < 200; tries++) await sleep(50);
  expect(existsSync(join(home, "lock"))).toBe(false);
});

test("the answer is kept for the next process until a login file changes, and never with a secret in it", async () => {
  const file = join(home, "state", "login-env.json");
  rmSync(join(home, "count"), { force: true });
  const isSafe = (login: Readonly<Record<string, string>>) => login["TOKEN"] === undefined;
  const next = () => createLoginEnv({ kept: { file, isSafe } }).read("/bin/bash", { ...base });
  profile(`echo x >> ${home}/count; export SET=1`);
  expect(await next()).toMatchObject({ SET: "1" });
  expect(await next()).toMatchObject({ SET: "1" });
  expect(readFileSync(join(home, "count"), "utf8")).toBe("x\n");
  expect(statSync(file).mode & 0o777).toBe(0o600);
  await sleep(20);
  profile(`echo x >> ${home}/count; export SET=2 TOKEN=secret`);
  expect(await next()).toMatchObject({ SET: "2", TOKEN: "secret" });
  expect(readFileSync(file, "utf8")).not.toContain("secret");
});

test("the next process does not wait for slow login files again, and has their answer once they gave one", async () => {
  const file = join(home, "state", "slow-login-env.json");
  profile("sleep 2; export LATE=yes");
  const warnings: string[] = [];
  const next = (timeoutMs: number) =>
    createLoginEnv({ timeoutMs, kept: { file, isSafe: () => true }, onWarning: (text) => warnings.push(text) });
  expect(await next(100).read("/bin/bash", { ...base })).toEqual(base);
  expect(JSON.parse(readFileSync(file, "utf8"))).toMatchObject({ slow: true });
  // A patience without end: only one that does not wait at all comes back before the files have ended.
  const second = next(3_600_000);
  const own = { ...base };
  expect(await second.read("/bin/bash", own)).toEqual(base);
  expect(warnings).toHaveLength(2);
  await vi.waitFor(async () => expect(await second.read("/bin/bash", own)).toMatchObject({ LATE: "yes" }), 20_000);
  expect(await next(3_600_000).read("/bin/bash", { ...base })).toMatchObject({ LATE: "yes" });
});

test("login files can be left out", async () => {
  profile("export SET=1");
  expect(await createLoginEnv({ enabled: false }).read("/bin/bash", base)).toEqual(base);
});
