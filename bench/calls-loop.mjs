/**
 * Two floors for bench/calls.ts: `node calls-loop.mjs URL bare` is the least loop that calls tools; `governed` does in
 * addition what no call can do without that is to be confined to a folder, decided about, logged and resumable, in the
 * fewest lines, without parsing, rules, a sandbox, limits or a word to anybody about what went wrong.
 */
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import {
  closeSync,
  constants,
  fdatasync,
  fstatSync,
  linkSync,
  mkdtempSync,
  openSync,
  readSync,
  realpathSync,
  renameSync,
  unlinkSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { Agent, request } from "node:http";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

const [address, how] = process.argv.slice(2);
const url = new URL(`${address}/chat/completions`);
const agent = new Agent({ keepAlive: true, maxSockets: 1 });
const text = { type: "string" };
const tool = (name, properties) => ({
  type: "function",
  function: { name, description: name, parameters: { type: "object", properties, required: Object.keys(properties) } },
});
const tools = [
  tool("shell", { command: text }),
  tool("read", { path: text }),
  tool("edit", { path: text, old: text, new: text }),
];

const runIn = (shell, command) =>
  new Promise((resolve) => {
    const child = spawn(shell, ["-c", command], { stdio: ["ignore", "pipe", "pipe"] });
    let output = "";
    const take = (chunk) => (output += chunk);
    child.stdout.on("data", take);
    child.stderr.on("data", take);
    child.on("close", (code) => resolve(`${output}\nexit ${code}`));
  });

const run = {
  shell: ({ command }) => runIn("/bin/sh", command),
  read: ({ path }) => readFile(path, "utf8"),
  async edit({ path, old, new: fresh }) {
    await writeFile(path, (await readFile(path, "utf8")).replace(old, fresh));
    return "ok";
  },
};

// ---- what a governed call does besides

const state = mkdtempSync(join(tmpdir(), "governed-"));
const workspace = realpathSync.native(process.cwd());
const audit = join(state, "audit");
const journal = openSync(join(state, "journal"), "a");
writeFileSync(audit, "");
let previous = "0".repeat(64);
let entries = 0;

const sha = (words) => createHash("sha256").update(words).digest("hex");

/** An entry that names the one before it; the number and hash of the last one stand in a file of their own. */
function log(entry) {
  linkSync(audit, `${audit}.lock`);
  const fd = openSync(audit, "a");
  fstatSync(fd);
  const body = JSON.stringify({ ...entry, n: ++entries, at: Date.now() });
  const hash = sha(previous + body);
  writeSync(fd, `${JSON.stringify({ hash, previous, entry: body })}\n`);
  const head = openSync(`${audit}.head`, constants.O_WRONLY | constants.O_CREAT);
  writeSync(head, `${entries} ${hash}\n`, 0);
  closeSync(head);
  closeSync(fd);
  unlinkSync(`${audit}.lock`);
  previous = hash;
}

function note(record) {
  const line = JSON.stringify(record);
  writeSync(journal, `${sha(line).slice(0, 8)} ${line}\n`);
}

const tell = (event) => writeSync(1, `${JSON.stringify(event)}\n`);
const synced = () => new Promise((resolve) => fdatasync(journal, resolve));

/** Opened once, and what was opened is what is judged and read: a link put there in between leads nowhere. */
function readInside(path) {
  const real = realpathSync.native(path);
  if (!real.startsWith(`${workspace}/`)) throw new Error(`${path} is outside`);
  const fd = openSync(real, constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    const { size } = fstatSync(fd);
    const bytes = Buffer.allocUnsafe(size);
    return bytes.toString("utf8", 0, readSync(fd, bytes, 0, size, 0));
  } finally {
    closeSync(fd);
  }
}

const governed = {
  // The shell that the user has: a model writes lines for it, and it starts half a millisecond slower than sh.
  shell: ({ command }) => runIn("/bin/bash", command),
  read: ({ path }) => readInside(path),
  edit({ path, old, new: fresh }) {
    const changed = readInside(path).replace(old, fresh);
    const beside = join(dirname(path), ".beside");
    const fd = openSync(beside, "wx");
    writeSync(fd, changed);
    closeSync(fd);
    renameSync(beside, path);
    return "ok";
  },
};

async function govern(call, input) {
  const { name } = call.function;
  if (typeof Object.values(input)[0] !== "string") throw new Error("not what the schema says");
  tell({ type: "call.asked", id: call.id, name, input });
  log({ call: call.id, tool: name, decision: "allow", hash: sha(JSON.stringify([name, input])) });
  note({ type: "call.started", id: call.id, name, input });
  if (name !== "read") await synced(); // after a power cut it must be known that it began
  const result = await governed[name](input);
  note({ type: "call.ended", id: call.id, result });
  tell({ type: "call.ended", id: call.id, result });
  return result;
}

// ---- the loop

const messages = [{ role: "user", content: "go" }];

function ask() {
  const body = Buffer.from(JSON.stringify({ model: "m", stream: true, messages, tools }));
  const headers = { "content-type": "application/json", "content-length": body.length };
  return new Promise((resolve, reject) => {
    const outgoing = request(url, { method: "POST", agent, headers }, (response) => {
      let rest = "";
      const found = [];
      response.setEncoding("utf8");
      response.on("data", (chunk) => {
        const lines = (rest + chunk).split("\n");
        rest = lines.pop();
        for (const line of lines) {
          if (!line.startsWith("data: {")) continue;
          for (const { index, ...part } of JSON.parse(line.slice(6)).choices[0].delta.tool_calls ?? [])
            found[index] = part;
        }
      });
      response.on("end", () => resolve(found));
    });
    outgoing.on("error", reject);
    outgoing.end(body);
  });
}

for (;;) {
  const found = await ask();
  if (found.length === 0) break;
  messages.push({ role: "assistant", content: null, tool_calls: found });
  for (const call of found) {
    const input = JSON.parse(call.function.arguments);
    const content = how === "governed" ? await govern(call, input) : await run[call.function.name](input);
    messages.push({ role: "tool", tool_call_id: call.id, content });
  }
}
agent.destroy();
