// Two builds of Callgate beside each other: CPU time of one call of each kind, the builds taking turns so that the
// machine's other work meets both alike.
//   node bench/against.mjs ../callgate-0.1/dist dist
// Started with `--one DIST KIND` it measures one kind in one build, in a process of its own.
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const rounds = 5;
const denied = "sudo rm -rf /x && git push";
const open = { approval: "never", sandbox: "full-access" };
const confined = { approval: "never", sandbox: "workspace-write" };

/** Each kind with its words in the table, how many calls make one measurement, and what makes the call. */
const kinds = {
  line: {
    words: "a call of a tool that does nothing",
    calls: 10_000,
    call: ({ engine }) => engine(open).call("noop", { a: 1 }),
  },
  read: {
    words: "`read_file` of 50 lines",
    calls: 1_000,
    call: ({ engine, next }) => engine(open).call("read_file", { file_path: `f${next() % 30}.txt` }),
  },
  denied: {
    words: "a command that the mode denies",
    calls: 1_000,
    call: ({ engine }) => engine(confined).call("shell_command", { command: denied }),
  },
  nobody: {
    words: "a command that nobody is there to approve",
    calls: 1_000,
    call: ({ engine }) => engine({ ...confined, approval: "on-request" }).call("shell_command", { command: denied }),
  },
  shell: {
    words: "`true` in the warm sandbox, our process alone",
    calls: 60,
    call: ({ engine, next }) => engine(confined).call("shell_command", { command: `true ${next()}` }),
  },
};

async function measureOne(dist, kind) {
  const entry = (name) => import(pathToFileURL(join(resolve(dist), name)).href);
  const { createEngine, defineTool } = await entry("index.js");
  const { readFile, shellCommand } = await entry("tools.js");
  const workspace = mkdtempSync(join(tmpdir(), "callgate-against-"));
  const lines = Array.from({ length: 50 }, (_, index) => `line ${index} with some words in it\n`).join("");
  for (let index = 0; index < 30; index++) writeFileSync(join(workspace, `f${index}.txt`), lines);
  const noop = defineTool({
    name: "noop",
    description: "Nothing.",
    input: { type: "object", properties: { a: { type: "number" } }, required: ["a"] },
    parallel: true,
    run: ({ a }) => String(a),
  });
  let made;
  const engine = (mode) => (made ??= createEngine({ tools: [noop, readFile, shellCommand], workspace, ...mode }));
  let count = 0;
  const next = () => count++;
  const { calls, call } = kinds[kind];
  const times = [];
  for (let round = 0; round < 8; round++) {
    const before = process.cpuUsage();
    for (let index = 0; index < calls; index++) await call({ engine, next });
    const { user, system } = process.cpuUsage(before);
    times.push((user + system) / calls);
  }
  await made.close();
  rmSync(workspace, { recursive: true, force: true });
  console.log(Math.min(...times));
}

function compare(before, after) {
  const self = fileURLToPath(import.meta.url);
  const one = (dist, kind) => Number(execFileSync(process.execPath, [self, "--one", dist, kind], { encoding: "utf8" }));
  console.log("| | before, µs of CPU | after | ratio |\n|---|--:|--:|--:|");
  for (const [kind, { words }] of Object.entries(kinds)) {
    const least = [Infinity, Infinity];
    for (let round = 0; round < rounds; round++)
      for (const [index, dist] of [before, after].entries()) least[index] = Math.min(least[index], one(dist, kind));
    const [was, is] = least;
    console.log(`| ${words} | ${was.toPrecision(3)} | ${is.toPrecision(3)} | ${(is / was).toFixed(2)} |`);
  }
}

const [first, ...rest] = process.argv.slice(2);
if (first === "--one") await measureOne(...rest);
else if (first === undefined || rest[0] === undefined) {
  console.error("usage: node bench/against.mjs DIST-BEFORE DIST-AFTER");
  process.exitCode = 2;
} else compare(first, rest[0]);
