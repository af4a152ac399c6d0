// SIGKILL a session at every journal record and at random moments, resume it, and look: no call ran twice, nothing
// recorded is lost, every request pairs each call with exactly one output, no process is left behind.
//   node scripts/kill-test.mjs [KILLS] [--wire WIRE]
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createOfflineModel, serveModel } from "../dist/testing.js";

const kills = Number(process.argv[2] ?? 60);
const wire = process.argv.includes("--wire") ? process.argv[process.argv.indexOf("--wire") + 1] : "responses";
const cli = join(process.cwd(), "dist/cli.cjs");
const steps = 6;
const marker = `callgate-kill-${process.pid}`;
const problems = [];
let done = 0;

const server = await serveModel(createOfflineModel(), { onRequest: (_wire, body) => checkPairs(body) });
while (done < kills) await oneSession();
await server.close();

console.log(`${done} kills over ${wire}: ${problems.length} problems`);
for (const problem of problems.slice(0, 20)) console.log(`  ${problem}`);
process.exit(problems.length === 0 ? 0 : 1);

/** One job, killed again and again until it gets to its end. */
async function oneSession() {
  const root = mkdtempSync(join(tmpdir(), "callgate-kill-"));
  const home = join(root, "home");
  const cwd = join(root, "work");
  mkdirSync(cwd, { recursive: true });
  const job = Array.from(
    { length: steps },
    (_, index) => `run echo step-${index} >> log; sleep 0.05; true ${marker}`,
  ).join("\n");
  let killAt = 1 + (done % 9);
  let seen = 0;
  for (let attempt = 0; ; attempt++) {
    const args = attempt === 0 || seen === 0 ? [job] : ["--resume", "last", "go on"];
    const ended = await runUntil(args, {
      home,
      cwd,
      killAt: seen + killAt,
      randomMs: attempt % 2 === 1 ? Math.random() * 400 : undefined,
    });
    const records = readRecords(home);
    if (records.length < seen) problems.push(`records were lost: ${seen} before, ${records.length} after`);
    seen = records.length;
    if (ended) break;
    done++;
    killAt = 1 + ((killAt * 7 + 3) % 11);
    await checkSurvivors();
  }
  const log = existsSync(join(cwd, "log")) ? readFileSync(join(cwd, "log"), "utf8").trim().split("\n") : [];
  if (new Set(log).size !== log.length) problems.push(`a call ran twice: ${log.join(" ")}`);
  rmSync(root, { recursive: true, force: true });
}

/** True when the command ended by itself, false when it was killed. */
function runUntil(args, { home, cwd, killAt, randomMs }) {
  return new Promise((resolve) => {
    const child = spawn(
      process.execPath,
      [cli, "exec", "--base-url", server.baseUrl, "--wire", wire, "--model", "planner", "--approval", "never", ...args],
      {
        cwd,
        env: { ...process.env, CALLGATE_HOME: home },
        stdio: "ignore",
      },
    );
    let killed = false;
    const kill = () => {
      killed = true;
      child.kill("SIGKILL");
    };
    const timer = randomMs === undefined ? undefined : setTimeout(kill, 150 + randomMs);
    const watch =
      randomMs === undefined ? setInterval(() => readRecords(home).length >= killAt && kill(), 1) : undefined;
    child.on("exit", () => {
      clearTimeout(timer);
      clearInterval(watch);
      resolve(!killed);
    });
  });
}

function readRecords(home) {
  const root = join(home, "sessions");
  if (!existsSync(root)) return [];
  const files = readdirSync(root, { recursive: true }).filter((name) => String(name).endsWith(".jsonl"));
  return files.flatMap((name) =>
    readFileSync(join(root, String(name)), "utf8")
      .split("\n")
      .slice(0, -1),
  );
}

/** What a strict provider checks: one output per call, no orphans. */
function checkPairs(body) {
  const items = body.input ?? body.messages ?? [];
  const calls = items.flatMap((item) =>
    item.type === "function_call" ? [item.call_id] : (item.tool_calls ?? []).map(({ id }) => id),
  );
  const outputs = items.flatMap((item) =>
    item.type === "function_call_output" ? [item.call_id] : item.role === "tool" ? [item.tool_call_id] : [],
  );
  if (calls.length !== new Set(calls).size) problems.push(`a call id twice: ${calls.join(" ")}`);
  if (calls.toSorted().join() !== outputs.toSorted().join())
    problems.push(`calls ${calls.join(" ")} against outputs ${outputs.join(" ")}`);
}

/** Everything a killed session started must be gone within a second. */
async function checkSurvivors() {
  for (let waited = 0; waited < 20; waited++) {
    if (!findMarked()) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  problems.push(`a process survived: ${findMarked()}`);
}

function findMarked() {
  for (const pid of readdirSync("/proc")) {
    if (!/^\d+$/.test(pid) || Number(pid) === process.pid) continue;
    try {
      const line = readFileSync(`/proc/${pid}/cmdline`, "utf8");
      if (line.includes(marker) && !line.includes("kill-test"))
        return `${pid} ${line.replaceAll("\0", " ").slice(0, 200)}`;
    } catch {
      // Gone while we looked.
    }
  }
  return undefined;
}
