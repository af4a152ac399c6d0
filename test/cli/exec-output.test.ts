/** What a program that runs `callgate exec` reads: the answer on stdout, everything else on stderr. */
import { openSync, writeFileSync } from "node:fs";
import { spawnSync } from "node:child_process";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createScriptedModel, serveModel, type ModelServer } from "../../src/testing/index.ts";
import { cli, ensureBuilt, run, tempFolder } from "./run.ts";

let model: ModelServer;
let rude: Server;
beforeAll(async () => {
  ensureBuilt();
  model = await serveModel(
    createScriptedModel(
      [{ text: "First I look.", calls: [{ name: "list_dir", input: { dir_path: "." } }] }, { text: '{"sum":42}' }],
      "scripted",
    ),
  );
  rude = createServer((_request, response) => {
    response
      .writeHead(400, { "content-type": "application/json" })
      .end(JSON.stringify({ error: { message: "no \u001B[2J\u001B]0;stolen\u0007 way" } }));
  });
  await new Promise<void>((resolve) => rude.listen(0, "127.0.0.1", resolve));
}, 60_000);
afterAll(async () => {
  await model.close();
  rude.close();
});

test("piped, stdout is the answer alone; what was said on the way is on stderr", async () => {
  const { code, stdout, stderr } = await run(["exec", "--base-url", model.baseUrl, "--model", "m", "add"]);
  expect({ code, stdout }).toEqual({ code: 0, stdout: '{"sum":42}\n' });
  expect(stderr).toMatch(/First I look\.\n.*list_dir/s);
});

test.each([
  ["number", 0, ""],
  ["string", 1, "does not fit the schema it was asked for: sum: must be string, but is the number 42"],
])("an answer is held to --output-schema: sum as %s ends with %i", async (type, expected, words) => {
  const file = join(tempFolder("schema"), "answer.json");
  writeFileSync(file, JSON.stringify({ type: "object", properties: { sum: { type } }, required: ["sum"] }));
  const answering = await serveModel(
    createScriptedModel(
      Array.from({ length: 3 }, () => ({ text: '{"sum":42}' })),
      "scripted",
    ),
  );
  const { code, stdout, stderr } = await run([
    "exec",
    "--base-url",
    answering.baseUrl,
    "--model",
    "m",
    "--output-schema",
    file,
    "add",
  ]);
  await answering.close();
  expect({ code, stdout }).toEqual({ code: expected, stdout: '{"sum":42}\n' });
  expect(stderr).toContain(words);
});

test.each([["/nowhere/x.json"], ["/dev/null"]])(
  "a schema that is none is said before anything is done: %s",
  async (file) => {
    const { code, stdout, stderr } = await run(["exec", "--output-schema", file, "add"]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toContain(file);
  },
);

test("the address of one request does as well as that of the API", async () => {
  const answering = await serveModel(createScriptedModel([{ text: "here" }], "scripted"));
  const at = `${answering.baseUrl}/chat/completions`;
  const { code, stdout } = await run(["exec", "--base-url", at, "--model", "m", "hi"]);
  await answering.close();
  expect({ code, stdout }).toEqual({ code: 0, stdout: "here\n" });
});

test("what a server says cannot act on the terminal", async () => {
  const { port } = rude.address() as AddressInfo;
  const at = `http://127.0.0.1:${port}/v1`;
  const { code, stdout, stderr } = await run(["exec", "--base-url", at, "--model", "m", "hi"]);
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  expect(stderr).toContain("way");
  expect(stderr).not.toContain("\u001B");
});

test.each([["tools"], ["--help"], ["doctor"], ["exec", "say hi"], ["exec", "--json", "say hi"], ["call", "list_dir"]])(
  "a full disk is one line and 1: callgate %s %s",
  (...args) => {
    const full = openSync("/dev/full", "w");
    const { status, stderr } = spawnSync(process.execPath, [cli, ...args.filter((word) => word !== undefined)], {
      stdio: ["ignore", full, "pipe"],
      encoding: "utf8",
      cwd: tempFolder("work"),
      env: { PATH: process.env["PATH"], HOME: tempFolder("home"), CALLGATE_HOME: tempFolder("state") },
    });
    expect({ status, stderr }).toEqual({
      status: 1,
      stderr: expect.stringMatching(/cannot write the output: ENOSPC\n$/),
    });
  },
);

/** Its output is a pipe that holds one page and does not wait for its reader, who comes late. */
const impatient = `import fcntl, os, sys
fcntl.fcntl(1, 1031, 4096)
fcntl.fcntl(1, fcntl.F_SETFL, fcntl.fcntl(1, fcntl.F_GETFL) | os.O_NONBLOCK)
os.execv(sys.argv[1], sys.argv[1:])`;
const hasPython = process.platform === "linux" && spawnSync("python3", ["--version"]).status === 0;

test.skipIf(!hasPython)("a pipe that does not block loses nothing (needs python3)", () => {
  const words = `python3 -c '${impatient}' "$NODE" "$CLI" tools --profile internal --json | (sleep 0.5; cat)`;
  const { status, stdout, stderr } = spawnSync("sh", ["-c", words], {
    encoding: "utf8",
    cwd: tempFolder("work"),
    env: {
      PATH: process.env["PATH"],
      HOME: tempFolder("home"),
      CALLGATE_HOME: tempFolder("state"),
      NODE: process.execPath,
      CLI: cli,
    },
  });
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  expect(stdout.length).toBeGreaterThan(2 * 4096);
  // The list of tools, each an object.
  expect((JSON.parse(stdout) as readonly unknown[]).length).toBeGreaterThan(10);
});

test("whoever stops reading a list is no error", () => {
  const { status, stdout, stderr } = spawnSync("sh", ["-c", '"$NODE" "$CLI" tools --profile internal --json | true'], {
    encoding: "utf8",
    cwd: tempFolder("work"),
    env: { PATH: process.env["PATH"], HOME: tempFolder("home"), NODE: process.execPath, CLI: cli },
  });
  expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: "", stderr: "" });
});
