import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeEach, expect, test } from "vitest";
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
