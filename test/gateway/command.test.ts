/** `callgate gateway` as a program and a person use it. */
import { spawn } from "node:child_process";
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { cli, ensureBuilt, run, tempFolder } from "../cli/run.ts";
import { ask, question, rawUpstream, scripted } from "./gateways.ts";

beforeAll(ensureBuilt, 60_000);

interface Started {
  readonly url: string;
  readonly key?: string;
  readonly lines: string[];
  readonly ended: Promise<number | null>;
  stop(): void;
}

async function start(args: readonly string[], env: Record<string, string> = {}): Promise<Started> {
  const child = spawn(process.execPath, [cli, "gateway", "--port", "0", "--json", ...args], {
    cwd: tempFolder("work"),
    env: { PATH: process.env["PATH"] ?? "", HOME: tempFolder("home"), CALLGATE_HOME: tempFolder("state"), ...env },
    stdio: ["ignore", "pipe", "inherit"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  const lines: string[] = [];
  let rest = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    const parts = (rest + text).split("\n");
    rest = parts.pop() ?? "";
    lines.push(...parts);
  });
  const ended = new Promise<number | null>((resolve) => child.on("close", resolve));
  await expect.poll(() => lines.length, { timeout: 20_000 }).toBeGreaterThan(0);
  const { url, key } = JSON.parse(lines[0] ?? "{}") as { url: string; key?: string };
  return { url, lines, ended, stop: () => void child.kill("SIGTERM"), ...(key === undefined ? {} : { key }) };
}

test("--port 0 --json prints where it listens and with which key, then a line a request", async () => {
  const model = await scripted([{ text: "hello" }]);
  const started = await start(["--base-url", model.baseUrl, "--model", "mine", "--wire", "chat"]);
  expect(started.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
  expect((await ask(started.url, "messages")).status).toBe(401);
  const { status, answer } = await ask(started.url, "messages", question("messages", true), {
    "x-api-key": started.key ?? "",
  });
  expect([status, answer.items]).toMatchObject([200, [{ type: "message" }]]);
  await expect.poll(() => started.lines.length).toBe(2);
  expect(JSON.parse(started.lines[1] ?? "")).toMatchObject({
    type: "request",
    wire: "messages",
    status: 200,
    outcome: "ok",
  });
  expect(model.requests[0]?.model).toBe("mine");
});

test("SIGTERM lets a running answer end, a second one does not wait", async () => {
  const upstream = await rawUpstream((_request, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write('data: {"choices":[{"index":0,"delta":{"content":"slow"}}]}\n\n');
    setTimeout(
      () => response.end('data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'),
      700,
    );
  });
  const started = await start(["--base-url", upstream.baseUrl, "--model", "x", "--wire", "chat", "--no-key"]);
  const asked = ask(started.url, "messages");
  await expect.poll(() => upstream.requests.length).toBe(1);
  started.stop();
  expect((await asked).answer).toMatchObject({ outcome: "ok" });
  expect(await started.ended).toBe(0);
});

test("with no model the built-in planner answers", async () => {
  const started = await start(["--no-key"]);
  const { status, answer } = await ask(started.url, "chat", {
    model: "any",
    stream: true,
    messages: [{ role: "user", content: "hello" }],
  });
  expect([status, answer.outcome]).toEqual([200, "ok"]);
});

test("--enforce keeps a command from the client that the user's rules deny", async () => {
  const home = tempFolder("state");
  writeFileSync(join(home, "rules.toml"), '[[rules]]\ncommand = "git push"\ndecision = "deny"\n');
  const bash = (command: string) => ({ calls: [{ name: "Bash", input: { command } }] });
  const model = await scripted([bash("cd /tmp && git push --force"), bash("git status")]);
  const flags = ["--base-url", model.baseUrl, "--model", "x", "--wire", "chat", "--no-key", "--enforce"];
  const started = await start(flags, { CALLGATE_HOME: home });
  const { answer } = await ask(started.url, "messages", {
    ...question("messages", true),
    tools: [{ name: "Bash", input_schema: { type: "object", properties: { command: { type: "string" } } } }],
  });
  expect(answer.items).toMatchObject([{ type: "call", arguments: JSON.stringify({ command: "git status" }) }]);
  await expect.poll(() => started.lines.length).toBe(2);
  expect(JSON.parse(started.lines[1] ?? "")).toMatchObject({ refused: [{ call: "Bash" }] });
});

describe("for people", () => {
  test.each([
    [["--model", "qwen3-coder"], /who runs 'qwen3-coder'/],
    [["--base-url", "http://127.0.0.1:9/v1", "--model", "x"], /cannot reach 127\.0\.0\.1:9: .*--base-url/],
    [["--base-url", "http://127.0.0.1:9/v1", "--model", "offline"], /'offline' is the built-in planner/],
    [["--provider", "openai", "--model", "gpt-5"], /OPENAI_API_KEY is not set/],
  ])("run %j says what is wrong and does not start the client", async (flags, message) => {
    const bin = tempFolder("bin");
    writeFileSync(join(bin, "claude"), "#!/bin/sh\necho started\n", { mode: 0o755 });
    const env = { PATH: `${bin}:${process.env["PATH"]}` };
    const { code, stdout, stderr } = await run(["gateway", "run", "claude", ...flags], { env });
    expect([code, stdout]).toEqual([2, ""]);
    expect(stderr).toMatch(message);
  });

  test("run starts the client on a name that the server does not list, and says so", async () => {
    const bin = tempFolder("bin");
    writeFileSync(join(bin, "claude"), "#!/bin/sh\necho started\n", { mode: 0o755 });
    const upstream = await rawUpstream((_request, response) => response.end('{"data":[{"id":"qwen3-coder"}]}'));
    const { stdout, stderr } = await run(
      ["gateway", "run", "claude", "--base-url", upstream.baseUrl, "--model", "qwen3-code"],
      { env: { PATH: `${bin}:${process.env["PATH"]}` } },
    );
    expect([stdout, stderr]).toEqual(["started\n", expect.stringContaining("did you mean 'qwen3-coder'?")]);
  });

  const noWords = { HOME: tempFolder("home"), CALLGATE_CONTEXT_WINDOW: "" };
  test.each([
    ["claude", 'echo "$CLAUDE_CODE_MAX_CONTEXT_TOKENS"', noWords, "40960\n"],
    ["claude", 'echo "$CLAUDE_CODE_MAX_CONTEXT_TOKENS"', { ...noWords, CALLGATE_CONTEXT_WINDOW: "32000" }, "32000\n"],
    ["codex", 'echo "$@"', noWords, "model_context_window=40960"],
    ["opencode", 'echo "$OPENCODE_CONFIG_CONTENT"', noWords, '"limit":{"context":40960,"output":10240}'],
    ["pi", 'cat "$PI_CODING_AGENT_DIR/models.json"', noWords, '"contextWindow": 40960'],
  ])("run %s tells the client how much the model takes: %s", async (client, line, env, expected) => {
    const bin = tempFolder("bin");
    writeFileSync(join(bin, client), `#!/bin/sh\n${line}\n`, { mode: 0o755 });
    const list = '{"data":[{"id":"qwen3-coder","max_model_len":40960}]}';
    const upstream = await rawUpstream((_request, response) => response.end(list));
    const { stdout } = await run(["gateway", "run", client, "--base-url", upstream.baseUrl, "--model", "qwen3-coder"], {
      env: { ...env, PATH: `${bin}:${process.env["PATH"]}` },
    });
    expect(stdout).toContain(expected);
  });

  test.each(["codex", "claude", "gemini", "opencode", "pi", "env"])("print %s names the address", async (client) => {
    const { code, stdout } = await run(["gateway", "print", client, "--url", "http://127.0.0.1:4000"]);
    expect([code, stdout]).toEqual([0, expect.stringContaining("http://127.0.0.1:4000")]);
  });

  test("keys are shown once, listed by name and taken back", async () => {
    const env = { CALLGATE_HOME: tempFolder("state") };
    const added = await run(["gateway", "key", "add", "laptop"], { env });
    expect(added.stdout).toMatch(/^cgk_\S+\n$/);
    const model = await scripted([{ text: "hello" }]);
    const started = await start(["--base-url", model.baseUrl, "--model", "x", "--wire", "chat"], env);
    expect(
      (await ask(started.url, "chat", question("chat", true), { authorization: `Bearer ${added.stdout.trim()}` }))
        .status,
    ).toBe(200);
    expect((await run(["gateway", "key", "list"], { env })).stdout).toContain("laptop");
    expect((await run(["gateway", "key", "remove", "laptop"], { env })).code).toBe(0);
    expect(
      (await ask(started.url, "chat", question("chat", true), { authorization: `Bearer ${added.stdout.trim()}` }))
        .status,
    ).toBe(401);
    expect((await run(["gateway", "key", "remove", "laptop"], { env })).code).toBe(2);
  });

  test.each([
    ["gemini", 'cat "$GEMINI_CLI_SYSTEM_SETTINGS_PATH"', '"selectedType": "gemini-api-key"'],
    ["pi", 'cat "$PI_CODING_AGENT_DIR/models.json" "$PI_CODING_AGENT_DIR/settings.json"', '"callgate": {'],
  ])("run %s gives the program a file of its own and leaves its user's alone", async (client, line, expected) => {
    const [bin, home] = [tempFolder("bin"), tempFolder("home")];
    writeFileSync(join(bin, client), `#!/bin/sh\n${line}\n`, { mode: 0o755 });
    mkdirSync(join(home, ".pi", "agent"), { recursive: true });
    writeFileSync(join(home, ".pi", "agent", "settings.json"), "settings of the user");
    const env = { PATH: `${bin}:${process.env["PATH"]}`, HOME: home, CALLGATE_HOME: tempFolder("state") };
    const { code, stdout } = await run(["gateway", "run", client, "--model", "offline"], { env });
    expect([code, stdout]).toEqual([0, expect.stringContaining(expected)]);
    if (client === "pi") expect(stdout).toContain("settings of the user");
    expect(readdirSync(join(home, ".pi", "agent"))).toEqual(["settings.json"]);
    expect(readdirSync(join(env.CALLGATE_HOME, "gateway")).filter((name) => name.startsWith("run-"))).toEqual([]);
  });

  test("run passes on what ends it, and clears up after its client", async () => {
    const [bin, state] = [tempFolder("bin"), tempFolder("state")];
    const script =
      '#!/bin/sh\ntrap "exit 7" TERM\necho "$GEMINI_CLI_SYSTEM_SETTINGS_PATH"\nwhile :; do sleep 0.1; done\n';
    writeFileSync(join(bin, "gemini"), script, { mode: 0o755 });
    const child = spawn(process.execPath, [cli, "gateway", "run", "gemini", "--model", "offline"], {
      env: { PATH: `${bin}:${process.env["PATH"]}`, HOME: tempFolder("home"), CALLGATE_HOME: state },
      stdio: ["ignore", "pipe", "ignore"],
    });
    onTestFinished(() => void child.kill("SIGKILL"));
    let printed = "";
    child.stdout.setEncoding("utf8").on("data", (words: string) => (printed += words));
    const ended = new Promise<number | null>((resolve) => child.on("close", resolve));
    await expect.poll(() => printed, { timeout: 20_000 }).toContain("settings.json");
    child.kill("SIGINT"); // at a terminal the client gets its own
    child.kill("SIGTERM");
    expect(await ended).toBe(7);
    expect(readdirSync(join(state, "gateway")).filter((name) => name.startsWith("run-"))).toEqual([]);
  });

  test("print puts in the key it is given, and says what to put in where it has none", async () => {
    const given = await run(["gateway", "print", "claude", "--url", "http://127.0.0.1:4000/", "--key", "cgk_x"]);
    expect(given.stdout).toContain("ANTHROPIC_BASE_URL=http://127.0.0.1:4000\n");
    expect(given.stdout).toContain("ANTHROPIC_AUTH_TOKEN=cgk_x\n");
    expect((await run(["gateway", "print", "pi"])).stderr).toContain("gateway key add");
  });

  test("mistakes are told with what is right", async () => {
    expect(await run(["gateway", "print", "claude", "--url", "nowhere"])).toMatchObject({ code: 2 });
    expect(await run(["gateway", "--base-url", "nowhere", "--model", "x"])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("'nowhere' is not the address of a server"),
    });
    expect(await run(["gateway", "run"])).toMatchObject({ code: 2, stderr: expect.stringContaining("which client?") });
    expect(await run(["gateway", "print", "claud"])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("claude"),
    });
    expect(await run(["gateway", "--wire", "morse", "--base-url", "http://127.0.0.1:9/v1"])).toMatchObject({
      code: expect.any(Number),
      stderr: expect.stringContaining("morse"),
    });
    expect(await run(["gateway", "--host", "0.0.0.0", "--no-key", "--model", "x"])).toMatchObject({ code: 2 });
  });
});
