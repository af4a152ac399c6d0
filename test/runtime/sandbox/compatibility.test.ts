import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { commandEnvironment } from "../../../src/runtime/environment.ts";
import { createSandbox, trySandboxes } from "../../../src/runtime/sandbox/sandbox.ts";
import type { Finished, Sandbox } from "../../../src/runtime/sandbox/sandbox.ts";
import type { Grant } from "../../../src/spec/access.ts";
import { has } from "../../needs.ts";
import { confineAndRun } from "./run-confined.ts";

/** What people's builds and tests do, each as one shell line that must end with 0 and print `expected`. */
const uses: readonly (readonly [name: string, line: string, expected: string])[] = [
  ["a TypeScript runner's IPC over a unix socket in the temp folder", "node ipc.js", "ipc ok"],
  ["node:test with a server on loopback", "node --test server.test.js >/dev/null && echo tests ok", "tests ok"],
  ["python multiprocessing with a manager and a pool (needs python3)", "python3 pool.py", "[1, 4, 9]"],
  ["the list of network interfaces", "node -e 'console.log(Object.keys(os.networkInterfaces()).join())'", "lo"],
  [
    "a dev server, and curl against it",
    "node dev.js & sleep 0.5; curl -s --retry 20 --retry-connrefused --retry-delay 0 http://127.0.0.1:8123/; kill $!",
    "served",
  ],
  ["a unix-socket server in the workspace", "node unix.js", "unix ok"],
  ["fork with an IPC channel", "node fork.js", "fork ok"],
  ["worker threads", "node -e \"new (require('node:worker_threads').Worker)('console.log(6*7)', {eval: true})\"", "42"],
  ["a C compiler and the program it makes", "gcc -o hello hello.c && ./hello", "hello from C"],
  ["mktemp and the temp folder", "f=$(mktemp) && echo kept > $f && cat $f", "kept"],
  ["shared memory", "echo shm > /dev/shm/x && cat /dev/shm/x", "shm"],
  ["process substitution", "cat <(echo substituted)", "substituted"],
  ["/dev/null and /dev/urandom", "head -c 4 /dev/urandom > /dev/null && echo devices", "devices"],
  ["git status and log", "git status --short --untracked-files=no && git log --oneline | wc -l", "1"],
  ["npm run", "npm run --silent greet", "greeted"],
  ["copies that keep modes and times", "cp -a package.json twin && tar c twin | tar x -C src && ls src", "twin"],
];

const candidates = await trySandboxes();
const works = (wanted: string) => candidates.some(({ id, ok }) => id === wanted && ok);

/** Without a network namespace there is no loopback and no list of interfaces. */
const needsLoopback = /loopback|interfaces|dev server/;
const places = [
  { id: "bwrap", expected: uses },
  { id: "landlock", expected: uses.filter(([name]) => !needsLoopback.test(name)) },
];

describe.each(places)("what works inside $id under workspace-write", ({ id, expected: list }) => {
  describe.skipIf(!works(id))(`(needs ${id === "bwrap" ? "bubblewrap" : "a sandbox and the launcher"})`, () =>
    tryAll(id, list),
  );
});

function tryAll(id: string, list: typeof uses): void {
  // Outside the temp folder, as real workspaces are.
  const workspace = mkdtempSync("/var/tmp/callgate-compat-");
  let sandbox: Sandbox;

  beforeAll(() => {
    prepare(workspace);
    sandbox = createSandbox({ only: id, machine: { stateDir: join(workspace, ".state") } });
  });
  afterAll(async () => {
    await sandbox.close();
    rmSync(workspace, { recursive: true, force: true });
  });

  async function run(line: string): Promise<Finished> {
    const grant: Grant = {
      policy: "workspace-write",
      confined: true,
      write: [workspace],
      protect: [".git"],
      mask: [],
      network: "off",
    };
    const env = commandEnvironment(process.env);
    return confineAndRun(sandbox, { argv: ["bash", "-c", line], cwd: workspace, env, grant }, 25_000);
  }

  const isThere = (name: string) => !name.includes("needs python3") || has("python3");
  for (const [name, line, expected] of list)
    (isThere(name) ? test.concurrent : test.skip)(name, () => tryOne(line, expected));

  async function tryOne(line: string, expected: string) {
    const { stdout, stderr, exitCode } = await run(line);
    expect({ exitCode, last: stdout.trim().split("\n").at(-1), stderr: exitCode === 0 ? "" : stderr }).toEqual({
      exitCode: 0,
      last: expected,
      stderr: "",
    });
  }
}

function prepare(folder: string): void {
  const files: Readonly<Record<string, string>> = {
    "ipc.js": `const net = require("node:net"), { join } = require("node:path"), os = require("node:os");
const path = join(os.tmpdir(), "tsx-" + process.pid + ".pipe");
const server = net.createServer((c) => c.end("ipc ok")).listen(path, () => net.connect(path).on("data", (d) => { console.log(String(d)); server.close(); }));`,
    "server.test.js": `const test = require("node:test"), http = require("node:http"), assert = require("node:assert");
test("serves", async () => {
  const server = http.createServer((q, r) => r.end("hi")).listen(0, "127.0.0.1");
  await new Promise((ok) => server.once("listening", ok));
  assert.equal(await (await fetch("http://127.0.0.1:" + server.address().port)).text(), "hi");
  server.close(); server.closeAllConnections();
});`,
    "pool.py": `from multiprocessing import Manager, Pool
def square(x): return x * x
if __name__ == "__main__":
    with Manager() as manager, Pool(2) as pool:
        shared = manager.list(pool.map(square, [1, 2, 3]))
        print(list(shared))
`,
    "dev.js": `require("node:http").createServer((q, r) => r.end("served")).listen(8123, "127.0.0.1");`,
    "unix.js": `const net = require("node:net");
const server = net.createServer((c) => c.end("unix ok")).listen("app.sock", () => net.connect("app.sock").on("data", (d) => { console.log(String(d)); server.close(); }));`,
    "fork.js": `const { fork } = require("node:child_process");
if (process.send) process.send("fork ok"); else fork(__filename).on("message", (m) => console.log(m));`,
    "hello.c": `#include <stdio.h>\nint main(void) { puts("hello from C"); return 0; }\n`,
    "package.json": JSON.stringify({ name: "compat", private: true, scripts: { greet: "echo greeted" } }),
  };
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  mkdirSync(join(folder, "src"));
  const git = (...args: string[]) =>
    execFileSync("git", ["-C", folder, "-c", "user.name=a", "-c", "user.email=a@b", ...args], { stdio: "ignore" });
  git("init");
  git("add", "package.json");
  git("commit", "-m", "first");
}
