/** What a new user meets first: choosing a model, adding a server, piping something in, looking at what was recorded. */
import { readdirSync as readdir, readFileSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { guessProvider } from "../../src/model/providers.ts";
import { partsToText } from "../../src/base/content.ts";
import type { ModelRequest } from "../../src/spec/model.ts";
import { createScriptedModel, serveModel, type ModelServer } from "../../src/testing/index.ts";
import { ensureBuilt, lines, run, tempFolder } from "./run.ts";

const requests: ModelRequest[] = [];
let server: ModelServer;
let list: Server;
let listUrl: string;

beforeAll(async () => {
  ensureBuilt();
  const say = (request: ModelRequest) => {
    requests.push(request);
    return { text: "heard" };
  };
  server = await serveModel(
    createScriptedModel(
      Array.from({ length: 50 }, () => say),
      "scripted",
    ),
  );
  // A provider that takes one key and lists two models.
  list = createServer((request, response) => {
    const isRight = request.headers.authorization === "Bearer right";
    response.writeHead(isRight ? 200 : 401, { "content-type": "application/json" });
    response.end(JSON.stringify(isRight ? { data: [{ id: "big-1" }, { id: "small-1" }] } : { error: "no" }));
  });
  await new Promise<void>((resolve) => list.listen(0, "127.0.0.1", resolve));
  const address = list.address();
  listUrl = `http://127.0.0.1:${typeof address === "object" ? address?.port : ""}/v1`;
}, 60_000);
afterAll(async () => {
  await server.close();
  list.close();
});

const lastWords = () => {
  const item = requests.at(-1)!.input.at(-1)!;
  return item.type === "message" ? partsToText(item.content) : "";
};
const scripted = () => ["--base-url", server.baseUrl, "--wire", "responses", "--model", "scripted"];

test.each([
  ["gpt-5-mini", "openai"],
  ["o3", "openai"],
  ["claude-sonnet-4-5", "anthropic"],
  ["gemini-2.5-pro", "gemini"],
  ["deepseek-chat", "deepseek"],
  ["codestral-latest", "mistral"],
  ["qwen3:8b", "ollama"],
  ["meta-llama/llama-3.3-70b:free", "openrouter"],
  ["opus", undefined],
  ["my-model", undefined],
])("the name %s tells %s", (model, provider) => expect(guessProvider(model)).toBe(provider));

test("a model without a provider is asked about, and a missing key is said before anything is sent", async () => {
  const unknown = await run(["exec", "--model", "my-model", "hi"]);
  expect(unknown).toMatchObject({ code: 2, stderr: expect.stringContaining("who runs 'my-model'?") });
  const guessed = await run(["exec", "-m", "gpt-5", "hi"]);
  expect(guessed).toMatchObject({ code: 2, stderr: expect.stringContaining("OPENAI_API_KEY is not set") });
});

describe("doctor looks at model and key", { timeout: 60_000 }, () => {
  const find = async (config: string, env: Record<string, string> = {}) => {
    const home = tempFolder("state");
    writeFileSync(join(home, "callgate.toml"), config);
    const { stdout } = await run(["doctor", "--json"], { env: { CALLGATE_HOME: home, ...env } });
    const { findings } = JSON.parse(stdout) as { findings: readonly { name: string; state: string; detail: string }[] };
    return findings.find(({ name }) => name === "model");
  };
  test("none, one without a key, one whose key is refused, one that is not listed, one that is", async () => {
    const at = (model: string) => `model = "${model}"\nbase_url = "${listUrl}"\n`;
    expect(await find("")).toMatchObject({ state: "ok", detail: expect.stringContaining("offline planner") });
    expect(await find('model = "claude-x"\n')).toMatchObject({
      state: "broken",
      detail: expect.stringContaining("ANTHROPIC_API_KEY is not set"),
    });
    expect(await find(at("big-1"), { CALLGATE_API_KEY: "wrong" })).toMatchObject({
      state: "broken",
      detail: expect.stringContaining("refuses the key (401)"),
    });
    expect(await find(at("bog-1"), { CALLGATE_API_KEY: "right" })).toMatchObject({
      state: "broken",
      detail: expect.stringContaining("did you mean 'big-1'?"),
    });
    expect(await find(at("big-1"), { CALLGATE_API_KEY: "right" })).toMatchObject({ state: "ok" });
    expect(await find('model = "x"\nbase_url = "http://127.0.0.1:9/v1"\n')).toMatchObject({
      state: "broken",
      detail: expect.stringContaining("cannot reach 127.0.0.1:9"),
    });
  });
});

test("what is piped in goes with the prompt, or is the prompt", async () => {
  await run(["exec", ...scripted(), "summarize this"], { input: "some data\n" });
  expect(lastWords()).toBe("summarize this\n\n<stdin>\nsome data\n</stdin>");
  await run(["exec", ...scripted(), "only this"], { input: "" });
  expect(lastWords()).toBe("only this");
  await run(["exec", ...scripted(), "-"], { input: "from the pipe" });
  expect(lastWords()).toBe("from the pipe");
  expect(await run(["exec", ...scripted()], { input: "  " })).toMatchObject({ code: 2 });
});

test("exec --resume goes on with the session's model, unless another one is named", async () => {
  const at = { cwd: tempFolder("work"), env: { CALLGATE_HOME: tempFolder("state") } };
  await run(["exec", ...scripted(), "first"], at);
  const again = await run(["exec", "--json", "--resume", "last", "second"], at);
  expect(lines(again.stdout)[0]).toMatchObject({ model: "scripted", wire: "responses", base_url: server.baseUrl });
  expect(lastWords()).toBe("second");
  const other = await run(
    ["exec", "--json", "--resume", "last", "--model", "offline", "--wire", "chat", "say third"],
    at,
  );
  expect(lines(other.stdout)[0]).toMatchObject({ model: "offline", provider: "offline" });
});

test.each([
  ['{"type":"objekt"}', 'there is no type "objekt"; did you mean "object"?'],
  ['{"type":"object","properties":{"a":{"type":"nmber"}}}', 'did you mean "number"?'],
  ['{"type":"object","required":"a"}', '"required" is a list of names'],
  ['{"$ref":"#/nowhere"}', "nowhere"],
])("a schema that is none is refused: %s", async (schema, words) => {
  const file = join(tempFolder("schema"), "schema.json");
  writeFileSync(file, schema);
  const { code, stderr } = await run(["exec", "--output-schema", file, "say {}"]);
  expect(code).toBe(2);
  expect(stderr).toContain(words);
});

test("replay shows every answer, the last one and one that was said twice", async () => {
  const at = { cwd: tempFolder("work"), env: { CALLGATE_HOME: tempFolder("state") } };
  await run(["exec", "run echo hi"], at);
  const { stdout } = await run(["replay", "last", "--speed", "0"], at);
  expect(stdout).toMatch(
    /^› run echo hi\nI run: echo hi\n {2}✓ shell_command echo hi.*\nDone\.\n1\. shell_command: hi\n$/,
  );
  await run(["exec", "--resume", "last", ...scripted(), "again"], at);
  await run(["exec", "--resume", "last", ...scripted(), "again"], at);
  const twice = await run(["replay", "last", "--speed", "0"], at);
  expect(twice.stdout.match(/^heard$/gm)).toHaveLength(2);
});

test("sessions says how many it does not show", async () => {
  const at = { env: { CALLGATE_HOME: tempFolder("state") } };
  await run(["exec", "say one"], at);
  const [month] = readdir(join(at.env.CALLGATE_HOME, "sessions"));
  const folder = join(at.env.CALLGATE_HOME, "sessions", month!);
  const first = readdir(folder).find((name) => name.endsWith(".jsonl"));
  const text = readFileSync(join(folder, first!), "utf8");
  for (let n = 0; n < 24; n++)
    writeFileSync(join(folder, `20200101-0000${String(n).padStart(2, "0")}-aaaaaa.jsonl`), text);
  const { stdout } = await run(["sessions"], at);
  expect(stdout.trim().split("\n")).toHaveLength(21);
  expect(stdout).toContain("… and 5 more (--all)");
});

describe("MCP servers in the settings", { timeout: 60_000 }, () => {
  const home = tempFolder("state");
  const at = { env: { CALLGATE_HOME: home } };
  const file = join(home, "callgate.toml");

  test("none is no mistake; add, list and remove leave the rest of the file as it is", async () => {
    expect(await run(["mcp", "list"], at)).toMatchObject({
      code: 0,
      stdout: expect.stringContaining("No MCP server is configured"),
    });
    writeFileSync(file, '# mine\napproval = "never"\n\n[prices."x"]\ninput = 1\noutput = 2\n');
    const added = await run(["mcp", "add", "mem", "--env", "A=b c", "--", "node", "-e", 'process.exit(3) // "x"'], at);
    expect(added).toMatchObject({ code: 0, stdout: expect.stringContaining("[mcpServers.mem]") });
    expect((await run(["mcp", "add", "mem", "--", "node"], at)).stderr).toContain("--force");
    await run(["mcp", "add", "far", "--url", "https://example.com/mcp", "--bearer-token-env", "TOKEN"], at);
    const text = readFileSync(file, "utf8");
    expect(text).toContain('args = ["-e", "process.exit(3) // \\"x\\""]\nenv = { "A" = "b c" }');
    expect(text).toContain('bearer_token_env_var = "TOKEN"');
    await run(["mcp", "remove", "mem"], at);
    const after = readFileSync(file, "utf8");
    expect(after).toMatch(/^# mine\napproval = "never"\n\n\[prices/);
    expect(after).not.toContain("mem");
    expect(await run(["mcp", "remove", "mom"], at)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("no server 'mom'"),
    });
    await run(["mcp", "remove", "far"], at);
    expect((await run(["mcp", "add", "x"], at)).code).toBe(2);
    expect((await run(["mcp", "add", "x", "--url", "ftp://x"], at)).code).toBe(2);
  });

  test("list waits for a slow server; a missing program is told in our words", async () => {
    const slow = `setTimeout(() => process.stdin.on("data", (line) => { for (const one of String(line).trim().split("\\n")) { const { id, method } = JSON.parse(one); if (id === undefined) continue; const result = method === "initialize" ? { protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo: { name: "slow", version: "1" } } : { tools: [{ name: "wait", inputSchema: { type: "object" } }] }; console.log(JSON.stringify({ jsonrpc: "2.0", id, result })); } }), 6000)`;
    await run(["mcp", "add", "slow", "--", "node", "-e", slow], at);
    await run(["mcp", "add", "gone", "--", "nope-prog"], at);
    const { stdout } = await run(["mcp", "list"], at);
    expect(stdout).toMatch(/slow +ready +1 tools/);
    expect(stdout).toMatch(/gone +failed +0 tools .*there is no program 'nope-prog'/);
    expect(stdout).not.toContain("bwrap");
  });

  test.each([
    ['[mcpServers.x]\ncomand = "node"\n', "did you mean 'command'?"],
    ['[mcpServers.x]\ncommand = "node"\nwobble = 1\n', "there is no setting 'wobble'"],
    ["[mcpServers.x]\n", "it needs a command"],
  ])("a mistake stops the start: %j", async (text, words) => {
    const own = tempFolder("state");
    writeFileSync(join(own, "callgate.toml"), text);
    const { code, stderr } = await run(["exec", "say hi"], { env: { CALLGATE_HOME: own } });
    expect(code).toBe(2);
    expect(stderr).toContain(words);
  });
});
