/** `callgate mcp serve` as a process, driven over stdio by the SDK's own client. */
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { afterEach, beforeAll, expect, test } from "vitest";
import { cli, ensureBuilt } from "../cli/run.ts";
import { canHold } from "../runtime/effects/held.ts";
import { program } from "./connect.ts";
import { createClient, pixel, type ClientSetup } from "./served.ts";

beforeAll(ensureBuilt, 60_000);

const cleanups: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
});

function workspace() {
  const cwd = mkdtempSync(join(tmpdir(), "callgate-serve-"));
  const home = mkdtempSync(join(tmpdir(), "callgate-home-"));
  writeFileSync(join(cwd, "a.txt"), "alpha\nbeta\n");
  writeFileSync(join(cwd, "dot.png"), Buffer.from(pixel, "base64"));
  return { cwd, home };
}

async function connect(setup: ClientSetup, settings = "") {
  const at = workspace();
  writeFileSync(join(at.home, "callgate.toml"), settings);
  const client = createClient(setup);
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [cli, "mcp", "serve"],
    cwd: at.cwd,
    env: { ...process.env, CALLGATE_HOME: at.home } as Record<string, string>,
    stderr: "pipe",
  });
  cleanups.push(() => client.close());
  await client.connect(transport);
  return { ...at, client, pid: transport.pid! };
}

const textOf = (result: { readonly content: readonly unknown[] }) =>
  result.content.map((block) => (block as { text?: string }).text ?? "").join("\n");

test("every governed tool works from a client that is not ours", async () => {
  const { client, cwd } = await connect({ era: "legacy" });
  const call = (name: string, input: Record<string, unknown>) => client.callTool({ name, arguments: input });
  const { tools } = await client.listTools();
  const names = tools.map(({ name }) => name);
  expect(names).toEqual(
    expect.arrayContaining([
      "shell_command",
      "read_file",
      "list_dir",
      "grep_files",
      "apply_patch",
      "update_plan",
      "view_image",
    ]),
  );
  expect(tools.every(({ inputSchema }) => inputSchema.type === "object")).toBe(true);

  expect(textOf(await call("read_file", { file_path: join(cwd, "a.txt") }))).toContain("alpha");
  expect(textOf(await call("list_dir", { dir_path: cwd }))).toContain("a.txt");
  expect(textOf(await call("grep_files", { pattern: "beta" }))).toContain("a.txt");
  expect(textOf(await call("shell_command", { command: "echo from the shell" }))).toContain("from the shell");
  expect((await call("update_plan", { plan: [{ step: "look", status: "pending" }] })).isError).toBeFalsy();
  expect((await call("view_image", { path: join(cwd, "dot.png") })).content.map((block) => block.type)).toContain(
    "image",
  );
  const patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n-alpha\n+gamma\n*** End Patch";
  expect((await call("apply_patch", { input: patch })).isError).toBeFalsy();
  expect(readFileSync(join(cwd, "a.txt"), "utf8")).toBe("gamma\nbeta\n");
});

test("a dangerous command is asked about through elicitation, in the client's own window", async () => {
  const asked: string[] = [];
  const { client, cwd } = await connect({
    era: "modern",
    answer: (message) => {
      asked.push(message);
      return { action: "accept", content: { answer: "once" } };
    },
  });
  mkdirSync(join(cwd, "old"));
  const ended = await client.callTool({ name: "shell_command", arguments: { command: "rm -rf old && echo gone" } });
  expect(textOf(ended)).toContain("gone");
  expect(asked).toEqual([expect.stringContaining("rm -rf old")]);
});

test.skipIf(!canHold)(
  "what a command did is shown through elicitation, and a part of it can be kept (needs bubblewrap)",
  async () => {
    const asked: string[] = [];
    const { client, cwd } = await connect({
      era: "modern",
      answer: (message) => {
        asked.push(message);
        return { action: "accept", content: { answer: "once", lines: "2" } };
      },
    });
    mkdirSync(join(cwd, "old"));
    writeFileSync(join(cwd, "old/f"), "f\n");
    const command = "rm -rf old; echo delta >> a.txt; echo done";
    const ended = await client.callTool({ name: "shell_command", arguments: { command } });
    expect(asked).toHaveLength(1);
    expect(asked[0]).toContain("shell_command has run. Nothing of what it did is kept yet; keep it?");
    expect(asked[0]).toMatch(/^ {2}1 - old\/ \(1 file, 2 B\)\n {2}2 ~ a\.txt \(11 B → 17 B\)$/m);
    expect(asked[0]).toContain("+delta");
    expect(textOf(ended)).toContain("Only a part of what the command changed was kept");
    expect(readFileSync(join(cwd, "a.txt"), "utf8")).toBe("alpha\nbeta\ndelta\n");
    expect(readFileSync(join(cwd, "old/f"), "utf8")).toBe("f\n");
  },
);

test.skipIf(!canHold)(
  "a command that failed because it was held can be run directly through elicitation (needs bubblewrap)",
  async () => {
    const asked: string[] = [];
    const { client, cwd } = await connect({
      era: "modern",
      answer: (message) => {
        asked.push(message);
        return { action: "accept", content: { answer: "direct" } };
      },
    });
    mkdirSync(join(cwd, "d"));
    const command = "rm -rf gone; perl -e 'rename(q(d), q(e)) or die $!'";
    const ended = await client.callTool({ name: "shell_command", arguments: { command } });
    expect(asked).toHaveLength(1);
    expect(asked[0]).toContain("renaming a folder that was there does not work while held");
    expect(ended.isError).not.toBe(true);
    expect([existsSync(join(cwd, "d")), existsSync(join(cwd, "e"))]).toEqual([false, true]);
  },
);

test.each(["legacy", "modern"] as const)(
  "a %s client is asked what a server behind us wants to know, after it agreed to the call",
  async (era) => {
    const everything = program("@modelcontextprotocol/server-everything");
    const asked: string[] = [];
    const { client } = await connect(
      {
        era,
        answer: (message) => {
          asked.push(message);
          const content = message.includes("needs your approval") ? { answer: "once" } : { name: "Ada" };
          return { action: "accept", content };
        },
      },
      `[mcpServers.e]\ncommand = ${JSON.stringify(process.execPath)}\nargs = [${JSON.stringify(everything)}, "stdio"]\n`,
    );
    const tool = "mcp__e__trigger-elicitation-request";
    await expect
      .poll(async () => (await client.listTools()).tools.map(({ name }) => name), { timeout: 10_000 })
      .toContain(tool);
    const ended = await client.callTool({ name: tool, arguments: {} });
    expect(textOf(ended)).toContain("Ada");
    expect(asked).toEqual([expect.stringContaining("needs your approval"), expect.stringContaining("e asks: ")]);
  },
);

test("an output that was cut can be read whole as a resource, and sessions of this folder too", async () => {
  const { client, home, cwd } = await connect({ era: "legacy" });
  const folder = join(home, "sessions", "202611");
  mkdirSync(folder, { recursive: true });
  for (const [id, where] of [
    ["20261115-000000-aaaaaa", cwd],
    ["20261115-000000-bbbbbb", "/elsewhere"],
  ] as const)
    writeFileSync(
      join(folder, `${id}.jsonl`),
      `${JSON.stringify({ type: "session.started", session_id: id, cwd: where, at: 0 })}\n`,
    );
  const ended = await client.callTool({ name: "shell_command", arguments: { command: "seq 1 60000" } });
  const link = ended.content.find((block) => block.type === "resource_link") as { uri: string } | undefined;
  const { contents } = await client.readResource({ uri: link!.uri });
  expect((contents[0] as { text: string }).text).toContain("\n30000\n");
  const { resources } = await client.listResources();
  expect(resources.map(({ uri }) => uri)).toEqual(["callgate://sessions/20261115-000000-aaaaaa", link!.uri]);
  const journal = await client.readResource({ uri: "callgate://sessions/20261115-000000-aaaaaa" });
  expect((journal.contents[0] as { text: string }).text).toContain("session.started");
  await expect(client.readResource({ uri: "callgate://outputs/..%2f..%2fpasswd" })).rejects.toThrow("no resource");
});

const initialize = `${JSON.stringify({
  jsonrpc: "2.0",
  id: 1,
  method: "initialize",
  params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "x", version: "1" } },
})}\n`;

async function run(end: (child: ReturnType<typeof spawn>) => void) {
  const { cwd, home } = workspace();
  const tools = join(cwd, "tools");
  mkdirSync(tools);
  writeFileSync(
    join(tools, "noisy.mjs"),
    `console.log("hello from a tool that prints");
export default { description: "Prints.", parameters: { type: "object", properties: {} }, run: () => "quiet" };`,
  );
  writeFileSync(join(home, "callgate.toml"), `tools_dir = [${JSON.stringify(tools)}]\n`);
  const child = spawn(process.execPath, [cli, "mcp", "serve"], {
    cwd,
    env: { ...process.env, CALLGATE_HOME: home },
    stdio: ["pipe", "pipe", "pipe"],
  });
  let out = "";
  let err = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => (err += text));
  const answered = new Promise<void>((resolve) =>
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      out += text;
      if (out.includes('"id":1')) resolve();
    }),
  );
  child.stdin.write(initialize);
  await answered;
  const gone = new Promise<number | null>((resolve) => child.once("exit", resolve));
  end(child);
  return { code: await gone, out, err };
}

test.each([
  ["its input ends", (child: ReturnType<typeof spawn>) => void child.stdin?.end()],
  ["it is asked to end", (child: ReturnType<typeof spawn>) => void child.kill("SIGTERM")],
])("the server exits when %s, and wrote nothing but the protocol on stdout", async (_when, end) => {
  const { code, out, err } = await run(end);
  expect(code).toBe(0);
  expect(
    out
      .trim()
      .split("\n")
      .map((line) => (JSON.parse(line) as { jsonrpc: string }).jsonrpc),
  ).toEqual(["2.0"]);
  expect(err).toContain("hello from a tool that prints");
});
