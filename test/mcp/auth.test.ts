/** Logins against a real OAuth server on loopback: what is stored, what is renewed, what is never done. */
import { existsSync, mkdtempSync, readFileSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { createConnection } from "../../src/mcp/client/connection.ts";
import { createTokenStore, readServers, type ServerAuth } from "../../src/mcp/index.ts";
import { startOAuthServer } from "./oauth-server.ts";

const cleanups: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
});

async function start(options: Parameters<typeof startOAuthServer>[0] = {}) {
  const server = await startOAuthServer(options);
  cleanups.push(server.close);
  const stateDir = mkdtempSync(join(tmpdir(), "callgate-auth-"));
  const config = readServers({ s: { url: server.url } }).servers[0]!;
  const tokens = createTokenStore({ stateDir, patienceMs: 5_000 });
  const connect = (authProvider: ServerAuth | undefined) => {
    const connection = createConnection({
      config,
      cwd: stateDir,
      env: process.env,
      version: "0",
      onToolsChanged: () => undefined,
      ...(authProvider ? { authProvider } : {}),
    });
    cleanups.push(connection.close);
    return connection;
  };
  const pages: URL[] = [];
  /** A person whose browser follows the login page straight back to us. */
  const browse = async (page: URL) => {
    pages.push(page);
    void fetch(page);
  };
  return { server, stateDir, config, tokens, connect, pages, browse, file: join(stateDir, "mcp", "logins", "s.json") };
}

const add = { signal: new AbortController().signal };

test("a login finds the server, registers, proves itself and keeps its tokens for the owner alone", async () => {
  const { server, tokens, config, connect, pages, browse, file } = await start();
  const listed = await connect(tokens.interactive(config, browse)).listTools();
  expect(listed.map(({ name }) => name)).toContain("add");
  expect(pages).toHaveLength(1);
  expect(pages[0]?.searchParams.get("code_challenge_method")).toBe("S256");
  expect(pages[0]?.searchParams.get("redirect_uri")).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/callback$/);
  expect(server.log).toEqual(expect.arrayContaining(["/register", "/authorize", "authorization_code"]));
  expect(statSync(file).mode & 0o777).toBe(0o600);
  // The next connection needs nobody.
  const later = await connect(tokens.providerFor(config)).callTool("add", { a: 1, b: 2 }, add);
  expect(later.structuredContent).toEqual({ sum: 3 });
});

test("without a login the server is left out, with the command that logs in; nothing is registered", async () => {
  const { server, tokens, config, connect } = await start();
  await expect(connect(tokens.providerFor(config)).listTools()).rejects.toThrow("callgate mcp login s");
  expect(server.log).toEqual([]);
});

test("a token that is no longer taken is renewed once, however many connections notice", async () => {
  const { server, stateDir, tokens, config, connect, browse } = await start();
  await connect(tokens.interactive(config, browse)).listTools();
  server.expire();
  const others = Array.from({ length: 4 }, () => createTokenStore({ stateDir }).providerFor(config));
  const sums = await Promise.all(others.map((auth) => connect(auth).callTool("add", { a: 2, b: 2 }, add)));
  expect(sums.map(({ structuredContent }) => structuredContent)).toEqual(others.map(() => ({ sum: 4 })));
  expect(server.log.filter((what) => what === "refresh_token")).toHaveLength(1);
});

test("a token about to end is renewed before it is used", async () => {
  const { server, tokens, config, connect, browse } = await start({ expiresIn: 10 });
  await connect(tokens.interactive(config, browse)).listTools();
  await connect(tokens.providerFor(config)).listTools();
  expect(server.log.filter((what) => what === "refresh_token").length).toBeGreaterThan(0);
});

test("a server that wants a wider token gets it from the person, and only from the person", async () => {
  const { server, tokens, config, connect, pages, browse } = await start();
  const connection = connect(tokens.interactive(config, browse));
  await connection.listTools();
  server.demand("write");
  await expect(connect(tokens.providerFor(config)).listTools()).rejects.toThrow("callgate mcp login s");
  expect((await connection.callTool("add", { a: 1, b: 1 }, add)).structuredContent).toEqual({ sum: 2 });
  expect(pages[1]?.searchParams.get("scope")?.split(" ").toSorted()).toEqual(["tools", "write"]);
});

test("a login is for one address: the same name elsewhere gets no token", async () => {
  const { tokens, config, connect, browse, file } = await start();
  await connect(tokens.interactive(config, browse)).listTools();
  const elsewhere = readServers({ s: { url: "http://127.0.0.1:9/mcp" } }).servers[0]!;
  expect(await tokens.providerFor(elsewhere)?.token()).toBeUndefined();
  expect(await tokens.forget(config)).toBe(true);
  expect(existsSync(file)).toBe(false);
  expect(await tokens.forget(config)).toBe(false);
});

test("nobody who does not know the login's state can answer it", async () => {
  const { tokens, config, connect, file } = await start();
  const answered: number[] = [];
  const impatient = createTokenStore({ stateDir: file.replace("/mcp/logins/s.json", ""), patienceMs: 300 });
  void tokens;
  const login = impatient.interactive(config, async (page) => {
    const back = new URL(page.searchParams.get("redirect_uri")!);
    back.search = "?code=stolen&state=guessed";
    answered.push((await fetch(back)).status);
  });
  await expect(connect(login).listTools()).rejects.toThrow("in time");
  expect(answered).toEqual([404]);
  expect(existsSync(file) ? readFileSync(file, "utf8") : "").not.toContain("access_token");
});
