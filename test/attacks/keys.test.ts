/** A key is planted wherever a server could repeat it; it stands in nothing that is shown, told to a model or kept. */
import { mkdtempSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { ensureBuilt, run, tempFolder } from "../cli/run.ts";
import { call, stdio, useConnections } from "../mcp/connect.ts";

const { cleanups, connect } = useConnections();
/** Of no provider's shape: it can only be found by being known. Quoted otherwise in JSON and in an address. */
const key = 'planted/"key"-of 2026';

async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  cleanups.push(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString("utf8");
}

function expectNoKey(text: string): void {
  for (const form of [key, encodeURIComponent(key), JSON.stringify(key).slice(1, -1)]) expect(text).not.toContain(form);
}

function everythingIn(folder: string): string {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .map((name) => join(folder, name))
    .filter((path) => statSync(path).isFile())
    .map((path) => readFileSync(path, "latin1"))
    .join("\n");
}

describe("a model's server", () => {
  beforeAll(() => ensureBuilt());

  const error = JSON.stringify({ error: { message: `wrong key: ${key} (${encodeURIComponent(key)})`, type: key } });
  test.each([
    ["refuses it by name", 401, "application/json", error],
    ["fails with it", 500, "text/plain", `no account for ${key}`],
    ["breaks off with it", 200, "text/event-stream", `data: ${error}\n\n`],
    ["ends with it before anything is said", 200, "text/event-stream", `: ${key}\n\n`],
    ["is no API at all", 200, "text/html", `<html>Hello ${key}</html>`],
  ])("%s", async (_how, status, type, body) => {
    const at = await serve((_request, response) => void response.writeHead(status, { "content-type": type }).end(body));
    const state = tempFolder("keys");
    const args = ["exec", "--json", "--base-url", `${at}/v1`, "--model", "m", "hi"];
    const env = { CALLGATE_HOME: state, CALLGATE_API_KEY: key, CALLGATE_RETRIES: "0" };
    const { stdout, stderr } = await run(args, { env });
    expect(`${stdout}${stderr}`).not.toBe("");
    expectNoKey(stdout);
    expectNoKey(stderr);
    expectNoKey(everythingIn(state));
  });
});

/** Speaks MCP as far as needed, and repeats the key in whatever is asked for. */
function answer({ id, method, params }: { id?: number; method: string; params?: { name?: string } }, said: string) {
  if (method === "initialize")
    return {
      id,
      result: { protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo: { name: "s", version: said } },
    };
  if (method === "tools/list")
    return {
      id,
      result: {
        tools: ["result", "error"].map((name) => ({ name, description: said, inputSchema: { type: "object" } })),
      },
    };
  if (params?.name === "error") return { id, error: { code: -32000, message: `not with ${said}` } };
  return {
    id,
    result: { content: [{ type: "text", text: `you said ${said}` }], structuredContent: { [id ?? 0]: said } },
  };
}

describe("an MCP server", () => {
  async function expectQuiet({ engine, warnings, events }: Awaited<ReturnType<typeof connect>>) {
    for (const tool of ["s/result", "s/error"]) {
      const { text, ended } = await call(engine, tool);
      expect(text).toContain("[key]");
      expectNoKey(JSON.stringify(ended));
    }
    expectNoKey(JSON.stringify(engine.registry.list()));
    expectNoKey(JSON.stringify([warnings, events]));
  }

  test("over HTTP, told by a variable", async () => {
    const url = await serve(async (request, response) => {
      if (request.method !== "POST") return void response.writeHead(405).end();
      const said = request.headers["x-api-key"] ?? "nothing";
      const message = JSON.parse(await bodyOf(request)) as Parameters<typeof answer>[0];
      if (message.id === undefined) return void response.writeHead(202).end();
      if (message.method === "server/discover") return void response.writeHead(405).end();
      response.writeHead(200, { "content-type": "application/json" });
      response.end(JSON.stringify({ jsonrpc: "2.0", ...answer(message, String(said)) }));
    });
    const table = { s: { url, env_http_headers: { "X-Api-Key": "PLANTED" } } };
    await expectQuiet(await connect(table, { clients: { env: { ...process.env, PLANTED: key } } }));
  });

  test("over HTTP, refusing every request with it", async () => {
    const url = await serve((request, response) => {
      response.writeHead(500).end(`no: ${request.headers.authorization}`);
    });
    const table = { s: { url, bearer_token_env_var: "PLANTED" } };
    const { warnings } = await connect(table, { clients: { env: { ...process.env, PLANTED: key } } });
    expect(warnings.join()).toMatch(/\bs\b/);
    expectNoKey(warnings.join("\n"));
  });

  const program = join(mkdtempSync(join(tmpdir(), "callgate-keys-")), "server.mjs");
  writeFileSync(
    program,
    `import { createInterface } from "node:readline";
     const answer = ${answer.toString()};
     process.stderr.write("my key is " + process.env.PLANTED_KEY + "\\n");
     if (process.argv[2] === "exit") process.exit(3);
     for await (const line of createInterface({ input: process.stdin })) {
       const message = JSON.parse(line);
       if (message.id !== undefined)
         process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...answer(message, process.env.PLANTED_KEY) }) + "\\n");
     }`,
  );

  test("as a process, told by its environment", async () => {
    await expectQuiet(await connect({ s: { ...stdio(program), env: { PLANTED_KEY: key } } }));
  });

  test("as a process that dies with it as its last words", async () => {
    const { warnings } = await connect({ s: { ...stdio(program, "exit"), env: { PLANTED_KEY: key } } });
    expect(warnings.join()).toContain("my key is [key]");
    expectNoKey(warnings.join("\n"));
  });
});
