import * as fc from "fast-check";
import { expect, test } from "vitest";
import { commandEnvironment, toEnvironmentPolicy } from "../../src/runtime/environment.ts";

const host = {
  PATH: "/bin",
  HOME: "/home/u",
  LANG: "C",
  TERM: "xterm",
  JAVA_HOME: "/jdk",
  OPENAI_API_KEY: "sk",
  GITHUB_TOKEN: "gh",
  AWS_SECRET_ACCESS_KEY: "aws",
  PGPASSWORD: "pg",
  NPM_CONFIG__AUTH: "npm",
  SSH_AUTH_SOCK: "/run/agent",
  DOCKER_HOST: "unix:///run/docker.sock",
  LD_PRELOAD: "evil.so",
  NODE_OPTIONS: "--require evil",
  BASH_ENV: "evil",
  GIT_SSH_COMMAND: "evil",
  MY_SETTING: "1",
};

test("by default only harmless names are inherited", () => {
  expect(commandEnvironment(host)).toEqual({
    PATH: "/bin",
    HOME: "/home/u",
    LANG: "C",
    TERM: "xterm",
    JAVA_HOME: "/jdk",
  });
});

test("core is what a shell needs", () => {
  expect(commandEnvironment(host, { inherit: "core" })).toEqual({ PATH: "/bin", HOME: "/home/u", LANG: "C" });
});

test("all is everything but secrets and the host's sockets", () => {
  const all = commandEnvironment(host, { inherit: "all" });
  expect(Object.keys(all).toSorted()).toEqual([
    "BASH_ENV",
    "GIT_SSH_COMMAND",
    "HOME",
    "JAVA_HOME",
    "LANG",
    "LD_PRELOAD",
    "MY_SETTING",
    "NODE_OPTIONS",
    "PATH",
    "TERM",
  ]);
});

test("secrets come along only where somebody says so", () => {
  expect(commandEnvironment(host, { inherit: "all", ignoreDefaultExcludes: true })).toEqual(host);
});

test("none is nothing, and set comes on top", () => {
  expect(commandEnvironment(host, { inherit: "none", set: { A: "1" } })).toEqual({ A: "1" });
});

test("exclude and include_only are globs in any letter case; include_only has the last word", () => {
  expect(commandEnvironment(host, { inherit: "all", exclude: ["my_*", "git*"] })).not.toHaveProperty("MY_SETTING");
  expect(commandEnvironment(host, { inherit: "all", set: { A: "1", B: "2" }, includeOnly: ["path", "?"] })).toEqual({
    PATH: "/bin",
    A: "1",
    B: "2",
  });
});

test("what is set may be a secret: somebody wrote it down", () => {
  expect(commandEnvironment(host, { set: { API_KEY: "x" } })).toMatchObject({ API_KEY: "x" });
});

test("a pattern's special characters mean themselves", () => {
  expect(commandEnvironment({ "A.B": "1", AxB: "2" }, { inherit: "all", includeOnly: ["A.B"] })).toEqual({
    "A.B": "1",
  });
});

test("no policy lets a variable through whose name says secret, unless it was set or allowed", () => {
  const word = fc.constantFrom("KEY", "SECRET", "TOKEN", "PASSWORD", "CREDENTIAL");
  const around = fc.stringMatching(/^[A-Z_]{0,5}$/);
  fc.assert(
    fc.property(
      around,
      word,
      around,
      fc.constantFrom("all", "safe", "core", "none"),
      (before, secret, after, inherit) => {
        const name = `${before}${secret}${after}`;
        expect(commandEnvironment({ [name]: "x" }, { inherit: inherit as "all" })).toEqual({});
      },
    ),
  );
});

test("config files may use codex's spelling; anything else is no policy", () => {
  expect(
    toEnvironmentPolicy({
      inherit: "core",
      exclude: ["A"],
      include_only: ["B"],
      set: { C: "1" },
      ignore_default_excludes: true,
    }),
  ).toEqual({
    inherit: "core",
    exclude: ["A"],
    includeOnly: ["B"],
    set: { C: "1" },
    ignoreDefaultExcludes: true,
  });
  for (const wrong of [{ inherit: "some" }, { exclude: "A" }, { set: { A: 1 } }, { ignore_default_excludes: "yes" }]) {
    expect(toEnvironmentPolicy(wrong)).toBeUndefined();
  }
});
