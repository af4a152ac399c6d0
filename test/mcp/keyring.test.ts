/** Logins in the system's keyring, with a `secret-tool` of our own on the PATH: a real program, reached as the real one is. */
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createLoginFile } from "../../src/mcp/auth/file.ts";
import { findKeyring } from "../../src/mcp/auth/keyring.ts";
import { installSecretTool, secretTool } from "./secret-tool.ts";

function setUp(more: NodeJS.ProcessEnv = {}, script = secretTool) {
  const { folder, kept, env: own } = installSecretTool(script);
  const env = { ...own, ...more };
  const url = "https://s.example/mcp";
  const open = () => createLoginFile(folder, "s", url, findKeyring(env, "linux"));
  const file = join(folder, "mcp", "logins", "s.json");
  return { env, kept, open, file, login: { url, tokens: { access_token: "hush", token_type: "Bearer" } } };
}

test("a login is in the keyring, and nothing secret in the file or on a command line", async () => {
  const { kept, open, file, login } = setUp();
  const mine = open();
  await mine.write(login);
  expect(await mine.read()).toEqual(login);
  expect(await open().read()).toEqual(login);
  expect(readFileSync(file, "utf8")).not.toContain("hush");
  expect(statSync(file).mode & 0o777).toBe(0o600);
  const secret = Buffer.from(JSON.stringify(login)).toString("base64");
  expect(readFileSync(join(kept, "log"), "utf8")).not.toContain(secret);
  expect(readdirSync(kept).map((name) => readFileSync(join(kept, name), "utf8"))).toContain(secret);
});

test("a login that another process renewed is noticed; one that did not change is not looked up again", async () => {
  const { kept, open, login } = setUp();
  const [mine, other] = [open(), open()];
  await mine.write(login);
  await other.read();
  const lines = () => readFileSync(join(kept, "log"), "utf8").split("\n").length;
  const before = lines();
  for (let n = 0; n < 5; n++) await other.read();
  expect(lines()).toBe(before);
  const renewed = { ...login, tokens: { ...login.tokens, access_token: "new" } };
  await mine.write(renewed);
  expect(await other.read()).toEqual(renewed);
});

test("a login that is given up is gone from both", async () => {
  const { kept, open, file, login } = setUp();
  await open().write(login);
  expect(await open().remove()).toBe(true);
  expect(existsSync(file)).toBe(false);
  expect(readdirSync(kept)).toEqual(["log"]);
  expect(await open().remove()).toBe(false);
});

test.each([
  ["cuts what it is given", { CUTS: "1" }, secretTool],
  ["has no service to talk to", {}, "#!/bin/sh\ncat > /dev/null\necho 'Cannot autolaunch D-Bus' >&2\nexit 1\n"],
  ["reads nothing", {}, "#!/bin/sh\nexit 1\n"],
])("a keyring that %s leaves the login in the file, for its owner alone", async (_how, more, script) => {
  const { open, file, login } = setUp(more, script);
  await open().write(login);
  expect(JSON.parse(readFileSync(file, "utf8"))).toEqual(login);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(await open().read()).toEqual(login);
});

test("a system without one has none", () => {
  expect(findKeyring({ PATH: "/nowhere" }, "linux")).toBeUndefined();
  expect(findKeyring(setUp().env, "win32")).toBeUndefined();
});
