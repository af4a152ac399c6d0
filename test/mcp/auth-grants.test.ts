/** Logins nobody has to be asked for: secrets, keys and identity tokens, and where they never go. */
import { generateKeyPairSync } from "node:crypto";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { createAuthFetch } from "../../src/mcp/auth/fetch.ts";
import { createConnection } from "../../src/mcp/client/connection.ts";
import { createTokenStore, readServers } from "../../src/mcp/index.ts";
import { startOAuthServer, type OAuthServerOptions } from "./oauth-server.ts";

const cleanups: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
});

async function start(options?: OAuthServerOptions) {
  const server = await startOAuthServer(options);
  cleanups.push(server.close);
  return server;
}

/** A server with these settings, connected as the command would without a person. */
function connect(url: string, oauth: object, setup: { env?: NodeJS.ProcessEnv; stateDir?: string } = {}) {
  const { servers, problems } = readServers({ s: { url, oauth } });
  expect(problems).toEqual([]);
  const { env = {}, stateDir = mkdtempSync(join(tmpdir(), "callgate-grants-")) } = setup;
  const authProvider = createTokenStore({ stateDir, env }).providerFor(servers[0]!)!;
  const connection = createConnection({
    config: servers[0]!,
    authProvider,
    cwd: stateDir,
    env,
    version: "0",
    onToolsChanged: () => undefined,
  });
  cleanups.push(connection.close);
  return { connection, file: join(stateDir, "mcp", "logins", "s.json"), stateDir };
}

const claims = (jwt: string, part: 0 | 1 = 1): unknown =>
  JSON.parse(Buffer.from(jwt.split(".")[part] ?? "", "base64url").toString());

test("a client secret goes to the token endpoint, and never to disk", async () => {
  const server = await start();
  const oauth = { client_id: "me", client_secret_env_var: "S", grant_type: "client_credentials" };
  const { connection, file } = connect(server.url, oauth, { env: { S: "hush" } });
  expect(await connection.listTools()).not.toHaveLength(0);
  expect(server.log).toContain("client_credentials");
  expect(readFileSync(file, "utf8")).not.toContain("hush");
});

test.each([
  ["ec", "ES256"],
  ["rsa", "RS256"],
  ["ed25519", "EdDSA"],
] as const)("a private key (%s) from a file signs the login", async (kind, alg) => {
  const server = await start();
  const { privateKey } =
    kind === "ec"
      ? generateKeyPairSync("ec", { namedCurve: "P-256" })
      : kind === "rsa"
        ? generateKeyPairSync("rsa", { modulusLength: 2048 })
        : generateKeyPairSync("ed25519");
  const pem = join(mkdtempSync(join(tmpdir(), "callgate-key-")), "key.pem");
  writeFileSync(pem, privateKey.export({ type: "pkcs8", format: "pem" }), { mode: 0o600 });
  const oauth = { client_id: "me", private_key_file: pem, grant_type: "client_credentials" };
  expect(await connect(server.url, oauth).connection.listTools()).not.toHaveLength(0);
  const assertion = server.asked[0]?.params.get("client_assertion") ?? "";
  expect(claims(assertion, 0)).toMatchObject({ alg });
  expect(claims(assertion)).toMatchObject({ iss: "me", sub: "me", aud: new URL(server.url).origin });
});

test("an identity token from a program is borne as it is, or exchanged at the company's login first", async () => {
  const server = await start();
  const company = await start();
  const identity = { client_id: "me", identity_token_command: [process.execPath, "-e", "console.log('who I am')"] };
  await connect(server.url, identity).connection.listTools();
  expect(server.asked[0]?.params.get("assertion")).toBe("who I am");
  const exchange = { identity_client_id: "us", identity_token_endpoint: company.url.replace("/mcp", "/token") };
  await connect(server.url, { ...identity, ...exchange }).connection.listTools();
  expect(Object.fromEntries(company.asked[0]!.params)).toMatchObject({
    subject_token: "who I am",
    audience: new URL(server.url).origin,
    resource: server.url,
    client_id: "us",
  });
  expect(server.asked[1]?.params.get("assertion")).toBe("exchanged");
});

test("a token bound to a key is used with a proof, also by the next process", async () => {
  const server = await start({ tokenType: "DPoP" });
  const oauth = { client_id: "me", client_secret_env_var: "S", grant_type: "client_credentials", dpop: true };
  const first = connect(server.url, oauth, { env: { S: "x" } });
  await first.connection.listTools();
  const proof = String(server.asked[0]?.headers["dpop"]);
  expect(claims(proof)).toMatchObject({ htm: "POST", htu: server.url.replace("/mcp", "/token") });
  const key = (claims(proof, 0) as { jwk: object }).jwk;
  expect(key).not.toHaveProperty("d");
  server.expire();
  await connect(server.url, oauth, { env: { S: "x" }, stateDir: first.stateDir }).connection.listTools();
  expect(claims(String(server.asked[1]?.headers["dpop"]), 0)).toMatchObject({ jwk: key });
});

test("credentials of our own go to the issuer that was named, or that took them first, and to no other", async () => {
  const other = await start();
  const env = { S: "hush" };
  const oauth = { client_id: "me", client_secret_env_var: "S", grant_type: "client_credentials" };
  const turned = await start({ issuer: new URL(other.url).origin });
  const pinned = connect(turned.url, { ...oauth, issuer: "https://login.example" }, { env });
  await expect(pinned.connection.listTools()).rejects.toThrow();
  expect(other.asked).toEqual([]);
  // First use: the server's own issuer takes the secret; later the server names another one.
  const options = { issuer: undefined as string | undefined };
  const server = await start(options as OAuthServerOptions);
  const first = connect(server.url, oauth, { env });
  await first.connection.listTools();
  options.issuer = new URL(other.url).origin;
  server.expire();
  await expect(connect(server.url, oauth, { env, stateDir: first.stateDir }).connection.listTools()).rejects.toThrow();
  expect(other.asked).toEqual([]);
});

test.each([
  [{ client_secret: "x" }, "name the variable"],
  [{ private_key: "-----BEGIN" }, "name the variable"],
  [{ grant_type: "password" }, "grant_type is one of"],
  [{ grant_type: "jwt_bearer" }, "identity_token"],
  [{ grant_type: "client_credentials" }, "client_id"],
])("settings that would leak a secret or mean nothing are refused: %j", (oauth, reason) => {
  const { problems } = readServers({ s: { url: "https://x.example/mcp", oauth } });
  expect(problems).toEqual([{ server: "s", what: expect.stringContaining(reason) }]);
});

test("a secret that is not there is named, and nothing is sent", async () => {
  const server = await start();
  const { connection } = connect(server.url, { client_id: "me", identity_token_file: "/no/such/token" });
  await expect(connection.listTools()).rejects.toThrow("/no/such/token cannot be read");
  expect(server.asked).toEqual([]);
});

test.each([
  "http://127.0.0.1:9/",
  "https://127.0.0.1/",
  "https://169.254.169.254/latest/meta-data/",
  "https://[::1]/",
  "https://10.0.0.1/",
  "https://localhost/",
  "http://93.184.216.34/",
  "file:///etc/passwd",
])("a server on the internet cannot send a login to %s", async (url) => {
  await expect(createAuthFetch("https://93.184.216.34/mcp")(url)).rejects.toThrow(/inside our own network|no address/);
});

test("a login's documents may be elsewhere; what is posted goes nowhere else", async () => {
  const seen: string[] = [];
  const server = createServer((request, response) => {
    seen.push(`${request.method} ${request.url}`);
    if (request.url === "/there") return void response.end("here");
    response.writeHead(307, { location: "/there" }).end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  cleanups.push(async () => void server.close());
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const fetch = createAuthFetch(base);
  expect(await (await fetch(`${base}/`)).text()).toBe("here");
  expect((await fetch(`${base}/`, { method: "POST", body: "secret" })).status).toBe(307);
  expect(seen).toEqual(["GET /", "GET /there", "POST /"]);
});
