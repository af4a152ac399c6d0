import * as fc from "fast-check";
import { expect, test } from "vitest";
import { commandEnvironment, isSecretName, quietEnv, toEnvironmentPolicy } from "../../src/runtime/environment.ts";
import type { EnvironmentPolicy } from "../../src/runtime/environment.ts";

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

const names = fc.oneof(
  fc.constantFrom(...Object.keys(host), "LC_ALL", "NODE_ENV", "__proto__", "constructor", "GOPATH", "DBUS_X", "lower"),
  fc.stringMatching(/^[A-Za-z_.()*?]{1,12}$/),
);
const variables = fc.dictionary(names, fc.string(), { maxKeys: 12 });
const policies: fc.Arbitrary<EnvironmentPolicy> = fc.record(
  {
    inherit: fc.constantFrom("safe", "core", "all", "none"),
    ignoreDefaultExcludes: fc.boolean(),
    exclude: fc.array(names, { maxLength: 3 }),
    set: fc.dictionary(names, fc.string(), { maxKeys: 3 }),
    includeOnly: fc.array(names, { maxLength: 3 }),
  },
  { requiredKeys: [] },
);

test("whatever the policy, a command gets only what was there or was set, with the value it had", () => {
  fc.assert(
    fc.property(variables, policies, (from, policy) => {
      const given = commandEnvironment(from, policy);
      for (const [name, value] of Object.entries(given)) {
        const source = Object.hasOwn(policy.set ?? {}, name) ? policy.set : from;
        expect(Object.hasOwn(source!, name)).toBe(true);
        expect(value).toBe(Object.entries(source!).find(([one]) => one === name)?.[1]);
      }
      for (const name of Object.keys(policy.set ?? {}))
        if ((policy.includeOnly ?? []).length === 0) expect(Object.hasOwn(given, name)).toBe(true);
    }),
    { numRuns: 300 },
  );
});

test("a narrower policy never gives more: none, core, safe, all; with secrets left out or not; with exclusions", () => {
  fc.assert(
    fc.property(variables, fc.array(names, { maxLength: 3 }), (from, exclude) => {
      const given = (policy: EnvironmentPolicy) => Object.keys(commandEnvironment(from, policy));
      const order = ["none", "core", "safe", "all"] as const;
      for (const [index, inherit] of order.entries()) {
        const wider = order[Math.min(index + 1, 3)]!;
        expect(given({ inherit: wider })).toEqual(expect.arrayContaining(given({ inherit })));
        expect(given({ inherit, ignoreDefaultExcludes: true })).toEqual(expect.arrayContaining(given({ inherit })));
        expect(given({ inherit })).toEqual(expect.arrayContaining(given({ inherit, exclude })));
      }
    }),
    { numRuns: 200 },
  );
});

test("no name decides differently in another letter case", () => {
  fc.assert(
    fc.property(names, policies, (name, policy) => {
      const passes = (one: string) => Object.hasOwn(commandEnvironment({ [one]: "x" }, { ...policy, set: {} }), one);
      expect(passes(name.toUpperCase())).toBe(passes(name.toLowerCase()));
    }),
  );
});

test("a star stands for any text, a question mark for one character, everything else for itself", () => {
  const passes = (pattern: string, name: string) =>
    Object.hasOwn(commandEnvironment({ [name]: "x" }, { inherit: "all", includeOnly: [pattern] }), name);
  expect(passes("A*C", "ABBC")).toBe(true);
  expect(passes("A*C", "AC")).toBe(true);
  expect(passes("A*C", "ABCD")).toBe(false);
  expect(passes("A?C", "ABC")).toBe(true);
  expect(passes("A?C", "AC")).toBe(false);
  expect(passes("A?C", "ABBC")).toBe(false);
  expect(passes("*", "ANY\nTHING")).toBe(true);
  for (const special of [".", "+", "^", "$", "{", "}", "(", ")", "|", "[", "]", "\\"]) {
    expect([special, passes(`A${special}B*`, `A${special}BC`)]).toEqual([special, true]);
    expect([special, passes(`A${special}B*`, "AxBC")]).toEqual([special, false]);
  }
});

const secretNames =
  "AWS_SECRET_ACCESS_KEY API_KEY Github_Token DB_PASSWORD MYSQL_PASSWD SSH_PASSPHRASE COOKIE_JAR NPM_AUTH NPM_AUTH_X GH_PAT " +
  "GOOGLE_APPLICATION_CREDENTIALS DATABASE_URL SENTRY_DSN NETRC AZURE_STORAGE_CONNECTION_STRING npm_config__authToken PGPASSFILE";

test.each(secretNames.split(" "))("%s is a secret by its name", (name) => {
  expect(isSecretName(name)).toBe(true);
  expect(commandEnvironment({ [name]: "x" }, { inherit: "all" })).toEqual({});
});

test.each(["PATH", "AUTHOR", "GIT_AUTHOR_NAME", "PATTERN", "DSN", "DATABASE_URLS", "COMPAT", "NODE_ENV"])(
  "%s is no secret",
  (name) => {
    expect(isSecretName(name)).toBe(false);
    expect(commandEnvironment({ [name]: "x" }, { inherit: "all" })).toEqual({ [name]: "x" });
  },
);

test.each(["SSH_AUTH_SOCK", "SSH_AGENT_PID", "GPG_AGENT_INFO", "DOCKER_HOST", "CONTAINER_HOST", "XDG_RUNTIME_DIR"])(
  "%s leads to a socket of the host, and comes along only where everything does",
  (name) => {
    for (const inherit of ["safe", "core", "all", "none"] as const)
      expect(commandEnvironment({ [name]: "x", DBUS_SESSION_BUS_ADDRESS: "y" }, { inherit })).toEqual({});
    expect(commandEnvironment({ [name]: "x" }, { inherit: "safe", ignoreDefaultExcludes: true })).toEqual({});
    expect(commandEnvironment({ [name]: "x" }, { inherit: "all", ignoreDefaultExcludes: true })).toEqual({
      [name]: "x",
    });
  },
);

test("what a file may say is a policy, field by field; anything else is none", () => {
  const none = { exclude: [], includeOnly: [] };
  expect(toEnvironmentPolicy({})).toEqual(none);
  for (const inherit of ["safe", "core", "all", "none"])
    expect(toEnvironmentPolicy({ inherit })).toEqual({ inherit, ...none });
  expect(toEnvironmentPolicy({ includeOnly: ["A"], ignoreDefaultExcludes: false })).toEqual({
    exclude: [],
    includeOnly: ["A"],
    ignoreDefaultExcludes: false,
  });
  expect(toEnvironmentPolicy({ set: {} })).toEqual({ set: {}, ...none });
  for (const wrong of [
    { inherit: null },
    { inherit: "" },
    { exclude: ["A", 1] },
    { exclude: {} },
    { include_only: "A" },
    { include_only: [null] },
    { includeOnly: 1 },
    { set: null },
    { set: "A=1" },
    { set: ["A=1"] },
    { set: 1 },
    { set: { A: "1", B: null } },
    { ignore_default_excludes: 1 },
    { ignoreDefaultExcludes: null },
  ])
    expect([wrong, toEnvironmentPolicy(wrong)]).toEqual([wrong, undefined]);
});

test("nothing that keeps a command quiet is a secret, and nothing of it makes a program run", () => {
  for (const [name, value] of Object.entries(quietEnv)) {
    expect([name, isSecretName(name)]).toEqual([name, false]);
    expect(value).toMatch(/^(?:\d|cat|never|noninteractive|dumb)$/);
  }
});
