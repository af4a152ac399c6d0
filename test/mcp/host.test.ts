/** What servers ask of us, through server-everything over stdio and HTTP, and the limits of what they may do. */
import { spawn, type ChildProcess } from "node:child_process";
import { copyFileSync, existsSync, mkdtempSync, writeFileSync } from "node:fs";
import { createServer as createTcpServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createResourceTools, readServers, type Elicitation, type McpHost } from "../../src/mcp/index.ts";
import { approvalRules } from "../../src/mcp/client/approval-rules.ts";
import { call, hostile, marked, names, program, stdio, useConnections } from "./connect.ts";

const { cleanups, connect } = useConnections();

const everything = (...args: readonly string[]) => stdio(program("@modelcontextprotocol/server-everything"), ...args);

async function freePort(): Promise<number> {
  const server = createTcpServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** server-everything as an HTTP server, until the test ends. */
async function startEverything(mode: "sse" | "streamableHttp"): Promise<number> {
  const port = await freePort();
  const { command, args } = everything(mode);
  const child: ChildProcess = spawn(command, args, {
    env: { ...process.env, PORT: String(port) },
    stdio: ["ignore", "ignore", "pipe"],
  });
  cleanups.push(() => void child.kill("SIGKILL"));
  await new Promise<void>((resolve, reject) => {
    child.stderr?.on("data", (chunk: Buffer) => /(listening|running) on port/.test(String(chunk)) && resolve());
    child.once("exit", () => reject(new Error("server-everything ended")));
  });
  return port;
}

test("a server's question reaches the host, and the answer the server; pages are shown as addresses", async () => {
  const questions: Elicitation[] = [];
  const host: McpHost = {
    async elicit(question) {
      questions.push(question);
      return question.mode === "form"
        ? { action: "accept", content: { name: "Ada", check: true } }
        : { action: "accept" };
    },
    roots: () => ["/workspace/one"],
  };
  const { engine } = await connect({ e: everything("stdio") }, { clients: { host } });
  const form = await call(engine, "e/trigger-elicitation-request");
  expect(form.text).toContain("Ada");
  expect(questions[0]).toMatchObject({ server: "e", mode: "form", schema: { type: "object" } });

  const page = { url: "https://example.test/pay", message: "Pay\u202e here" };
  expect((await call(engine, "e/trigger-url-elicitation", page)).ok).toBe(true);
  expect(questions[1]).toMatchObject({ mode: "url", url: page.url, message: "Pay\\u{202e} here" });
  // The same through a refusal that is lifted once the person was there.
  const later = await call(engine, "e/trigger-url-elicitation", { ...page, elicitationId: "x", errorPath: true });
  expect(later.ok).toBe(true);
  expect(questions.length).toBeGreaterThan(2);

  expect((await call(engine, "e/get-roots-list")).text).toContain("file:///workspace/one");
});

test("nothing is offered that the host does not give: no questions, no roots, no model", async () => {
  const { engine } = await connect({ e: everything("stdio") });
  expect(names(engine)).toContain("e/echo");
  for (const tool of ["trigger-elicitation-request", "get-roots-list", "trigger-sampling-request"])
    expect(names(engine)).not.toContain(`e/${tool}`);
});

test("a server gets a model's words only where its settings allow it", async () => {
  const host: McpHost = {
    sample: async () => ({ role: "assistant", model: "m", content: { type: "text", text: "forty-two" } }),
  };
  const { engine } = await connect(
    { asks: { ...everything("stdio"), sampling: true }, silent: everything("stdio") },
    { clients: { host } },
  );
  const answer = await call(engine, "asks/trigger-sampling-request", { prompt: "?", maxTokens: 5 });
  expect(answer.text).toContain("forty-two");
  expect(names(engine)).not.toContain("silent/trigger-sampling-request");
});

test.each([
  ["streamable HTTP", "streamableHttp", "mcp"],
  ["the older SSE form", "sse", "sse"],
] as const)("a real server over %s works, questions included", async (_what, mode, path) => {
  const port = await startEverything(mode);
  const host: McpHost = { elicit: async () => ({ action: "decline" }) };
  const { engine, warnings } = await connect({ e: { url: `http://127.0.0.1:${port}/${path}` } }, { clients: { host } });
  expect(warnings).toEqual([]);
  expect((await call(engine, "e/echo", { message: "over the wire" })).text).toContain("over the wire");
  expect((await call(engine, "e/trigger-elicitation-request")).text).toContain("decline");
});

test("each call and start is told with its duration, and counted by server", async () => {
  const { engine, clients, events } = await connect({ s: { ...stdio(hostile, "plain"), tool_timeout_ms: 200 } });
  await call(engine, "s/ping");
  await call(engine, "s/never");
  expect(events.map(({ type }) => type)).toEqual([
    "server.started",
    "server.call.started",
    "server.call.ended",
    "server.call.started",
    "server.call.ended",
  ]);
  const last = events.at(-1)!;
  expect(last).toMatchObject({ server: "s", tool: "never", ok: false });
  expect("durationMs" in last && last.durationMs).toBeGreaterThan(150);
  expect(clients.metrics().get("s")).toMatchObject({ starts: 1, failedStarts: 0, calls: 2, failedCalls: 1 });
});

test("a result of a hundred megabytes ends as an error, and the server works again afterwards", async () => {
  const { engine } = await connect({ s: stdio(hostile, "plain") });
  expect(await call(engine, "s/flood")).toMatchObject({
    ok: false,
    code: "mcp",
    text: expect.stringContaining("more than 32 MB"),
  });
  await expect.poll(async () => (await call(engine, "s/ping")).ok, { timeout: 8_000, interval: 300 }).toBe(true);
});

test("words nobody can see are written out for the model as for the person", async () => {
  const { engine } = await connect({ s: stdio(hostile, "plain", "Answers pong.\u200b\u{e0041}") });
  const tool = engine.registry.list().find(({ name }) => name === "s/ping");
  expect(tool?.description).toBe("Answers pong.\\u{200b}\\u{e0041}");
});

test("without a required server nothing starts, and the error says which and why", async () => {
  await expect(connect({ must: { ...stdio(hostile, "exit-at-start"), required: true } })).rejects.toMatchObject({
    code: "mcp",
    message: expect.stringMatching(/'must'.*cannot find my database/s),
  });
});

test("a server told to run in the sandbox cannot write outside what the policy grants", async () => {
  const outside = join(mkdtempSync(join(tmpdir(), "callgate-outside-")), "written.txt");
  // Not from the checkout: that may lie below the temp folder, which a sandbox has of its own.
  const visible = join(mkdtempSync("/var/tmp/callgate-test-"), "server.mjs");
  copyFileSync(hostile, visible);
  const server = stdio(visible, "plain", outside);
  const setup = (sandbox: boolean) => connect({ s: { ...server, sandbox } }, { clients: { grant: confinedGrant } });
  const { engine } = await setup(true);
  expect((await call(engine, "s/ping")).text).toBe("pong");
  expect((await call(engine, "s/write_file")).text).not.toBe("written");
  expect(existsSync(outside)).toBe(false);
  const free = await setup(false);
  expect((await call(free.engine, "s/write_file")).text).toBe("written");
});

const confinedGrant = {
  policy: "workspace-write",
  read: [],
  write: [],
  protect: [],
  mask: [],
  network: "off",
  confined: true,
} as never;

test("when we are killed, the servers and what they started are gone with us", async () => {
  const marker = `callgate-killed-${process.pid}-${Date.now()}`;
  const script = join(mkdtempSync(join(tmpdir(), "callgate-kill-")), "run.mjs");
  const dist = (name: string) => new URL(`../../dist/${name}.js`, import.meta.url).href;
  writeFileSync(
    script,
    `import { createEngine } from ${JSON.stringify(dist("index"))};
import { createMcpClients, readServers } from ${JSON.stringify(dist("mcp"))};
const engine = createEngine({ workspace: process.cwd(), approval: "never", sandbox: "full-access" });
const { servers } = readServers({ s: { command: process.execPath, args: [${JSON.stringify(hostile)}, "plain", ${JSON.stringify(marker)}] } });
const clients = createMcpClients({ servers, registry: engine.registry, stateDir: process.argv[2], cwd: process.cwd(), env: process.env, sandbox: engine.sandbox(), version: "0", warn() {} });
await clients.start({ waitMs: 20000 });
await engine.call("s/fork_helper", {});
process.stdout.write("ready\\n");
setInterval(() => {}, 1000);`,
  );
  const child = spawn(process.execPath, [script, mkdtempSync(join(tmpdir(), "callgate-state-"))], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  await new Promise<void>((resolve) => child.stdout.once("data", () => resolve()));
  expect(marked(marker).length).toBeGreaterThan(1);
  child.kill("SIGKILL");
  await expect.poll(() => marked(marker), { timeout: 5_000 }).toEqual([]);
});

test("approval modes of servers and tools become rules, and the tool's own mode wins over the server's", async () => {
  const table = {
    s: {
      ...stdio(hostile, "plain"),
      default_tools_approval_mode: "prompt",
      tools: { ping: { approval_mode: "approve" }, die: { approval_mode: "deny" } },
    },
  };
  const rules = approvalRules(readServers(table).servers);
  const { engine } = await connect(table, { engine: { approval: "on-request", gate: { rules } } });
  expect(await call(engine, "s/ping")).toMatchObject({ ok: true });
  expect(await call(engine, "s/add_tool")).toMatchObject({ ok: false, code: "needs_approval" });
  expect(await call(engine, "s/die")).toMatchObject({ ok: false, code: "denied" });
  expect(readServers({ s: { ...table.s, default_tools_approval_mode: "sometimes" } }).problems).toMatchObject([
    { server: "s", what: expect.stringContaining("default_tools_approval_mode") },
  ]);
});

test("a server that asks for it is told what the sandbox allows; others are told nothing", async () => {
  const sandboxState = () => ({ policy: "workspace-write", network: "off" });
  const table = { curious: stdio(hostile, "curious"), plain: stdio(hostile, "plain") };
  const { engine } = await connect(table, { clients: { sandboxState } });
  expect(JSON.parse((await call(engine, "curious/told")).text)).toEqual(sandboxState());
  expect((await call(engine, "plain/told")).text).toBe("null");
});

test("a dead server does not spoil the list of the others' resources", async () => {
  const { engine, clients } = await connect({ e: everything("stdio"), dead: { command: "/nonexistent/server" } });
  engine.registry.add(...createResourceTools(clients));
  const { text } = await call(engine, "list_mcp_resources");
  expect(text).toContain("demo://");
  expect(text).toContain("'dead' is");
  expect((await call(engine, "read_mcp_resource", { server: "nobody", uri: "x" })).text).toContain(
    "There are: e, dead",
  );
});
