import { expect, test } from "vitest";
import { readServers } from "../../src/mcp/config.ts";

test("the common form is read: programs, addresses, limits in seconds or milliseconds", () => {
  const { servers, problems } = readServers({
    files: { command: "npx", args: ["-y", "server"], env: { A: "1" }, startup_timeout_sec: 5, tool_timeout_ms: 700 },
    web: { type: "http", url: "https://example.test/mcp", headers: { "x-a": "b" }, disabled: true },
  });
  expect(problems).toEqual([]);
  expect(servers).toMatchObject([
    {
      name: "files",
      enabled: true,
      startTimeoutMs: 5_000,
      callTimeoutMs: 700,
      transport: { kind: "stdio", command: "npx" },
    },
    { name: "web", enabled: false, transport: { kind: "http", headers: { "x-a": "b" } } },
  ]);
});

test("variables are put in where programs and addresses name them, and nowhere else", () => {
  const { servers, problems } = readServers(
    {
      a: {
        url: "${BASE:-https://example.test}/mcp",
        headers: { authorization: "Bearer ${TOKEN}" },
        enabled_tools: ["${TOKEN}"],
      },
      b: { command: "${NOT_SET}/server" },
    },
    { TOKEN: "t" },
  );
  expect(servers).toMatchObject([
    {
      transport: { url: "https://example.test/mcp", headers: { authorization: "Bearer t" } },
      enabledTools: ["${TOKEN}"],
    },
  ]);
  expect(problems).toEqual([{ server: "b", what: "it names ${NOT_SET}, which is not set", unset: true }]);
});

test("one wrong entry is named and takes no other with it", () => {
  const { servers, problems } = readServers({
    good: { command: "server" },
    "bad name": { command: "server" },
    none: {},
    ftp: { url: "ftp://example.test" },
    text: "server",
    __proto__: { command: "server" },
  });
  expect(servers.map(({ name }) => name)).toEqual(["good"]);
  expect(problems.map(({ server }) => server)).toEqual(["bad name", "none", "ftp", "text"]);
});

test.each([
  [{ sandbox: "true" }, "sandbox is true or false"],
  [{ enabled_tools: "read" }, "enabled_tools is a list of strings"],
  [{ disabledTools: [1] }, "disabledTools is a list of strings"],
  [{ args: "server.js" }, "args is a list of strings"],
])("a setting of the wrong kind leaves the server out rather than mean nothing: %j", (entry, what) => {
  expect(readServers({ s: { command: "server", ...entry } }).problems).toEqual([{ server: "s", what }]);
});

test.each([
  ["env", { command: "npx", env: { PORT: 8080 } }, "env is a table of strings"],
  ["headers", { url: "https://example.test/mcp", headers: { "x-level": 3 } }, "headers is a table of strings"],
  ["oauth.dpop", { url: "https://example.test/mcp", oauth: { dpop: "true" } }, "oauth.dpop is true or false"],
  ["oauth.issuer", { url: "https://example.test/mcp", oauth: { issuer: ["a"] } }, "oauth.issuer is a text"],
  ["oauth.scopes", { url: "https://example.test/mcp", oauth: { scopes: "read" } }, "oauth.scopes is a list"],
  ["oauth.callback_port", { url: "https://example.test/mcp", oauth: { callback_port: "80" } }, "is a number"],
])("%s of another type is told and not ignored: the server is left out", (_name, entry, words) => {
  const { servers, problems } = readServers({ s: entry });
  expect(servers).toEqual([]);
  expect(problems).toEqual([{ server: "s", what: expect.stringContaining(words) as string }]);
});
