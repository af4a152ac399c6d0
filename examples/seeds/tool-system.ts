/** The tool system: schemas, dispatch, policies, errors, metrics, each shown by one line of output. */
import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createEngine, defineTool, normalizeSchema } from "callgate";
import { createSession } from "callgate/session";
import { createScriptedModel } from "callgate/testing";
import { builtins } from "callgate/tools";
import { codecs } from "callgate/wire";

const row = (id: string, ...words: readonly unknown[]) => console.log(id, ...words);
const workspace = mkdtempSync(join(tmpdir(), "callgate-system-"));
mkdirSync(join(workspace, "junk"));
writeFileSync(join(workspace, "a.txt"), "hello\n");

const save = defineTool({
  name: "save_file",
  description: "Save a file.",
  input: {
    type: "object",
    properties: {
      filename: { type: "string", description: "the file" },
      content: { type: "string" },
      copies: { type: "number", default: 10, minimum: 1, maximum: 100 },
      options: {
        type: "object",
        properties: { backup: { type: "boolean", default: true } },
        required: ["backup"],
      },
      tags: {
        type: "array",
        items: { type: "object", properties: { name: { type: "string" } }, required: ["name"] },
        minItems: 1,
        maxItems: 10,
      },
    },
    required: ["filename", "content"],
    additionalProperties: false,
  },
  run: (input) => JSON.stringify(input),
});
let looked = 0;
const slowFact = defineTool({
  name: "slow_fact",
  description: "Looks something up.",
  input: { type: "object", properties: { topic: { type: "string" } }, required: ["topic"] },
  mutates: false,
  parallel: true,
  cache: { ttlMs: 60_000 },
  run: ({ topic }) => `${topic}: looked up ${++looked} times`,
});
const broken = defineTool({
  name: "broken",
  description: "Always fails.",
  input: { type: "object", properties: {} },
  run: () => {
    throw new Error("disk full");
  },
});
const remote = defineTool({
  name: "database/query",
  description: "A server's tool.",
  input: { type: "object", properties: { rows: { type: "integer" }, filter: {}, list: { items: {} } } },
  run: () => "42 rows",
});

const log: string[] = [];
const write = (message: string, data?: object) => void log.push(`${message} ${Object.keys(data ?? {}).join(" ")}`);
const engine = createEngine({
  log: { debug: write, info: write, warn: write, error: write },
  tools: [...builtins, save, slowFact, broken, remote],
  workspace,
  approval: "auto",
  offer: { profile: "basic" },
  service: { webSearch: async (query: string, { count }: { count: number }) => `${count} results for ${query}` },
  result: { layout: "sections" },
});
const typesOf = (tools: readonly object[]) =>
  tools.map((tool) => ("name" in tool ? `${String(Object(tool).type)}:${String(tool.name)}` : Object(tool).type));
const responses = await engine.toolsFor("responses");
const chat = await engine.toolsFor("chat");
row("A1", typesOf(responses.tools).join(" "));
row("A2", [...new Set(chat.tools.map((tool) => tool["type"]))].join(" "), "only");
row("A3", responses.dropped.length, "dropped");
row(
  "A4",
  (await engine.call("save_file", { filename: "a", content: "b", tags: [], extra: 1 })).text.split("\n").at(-2),
);
row(
  "A5",
  JSON.stringify(
    normalizeSchema({ properties: { n: { type: "integer" }, list: { items: {} }, x: {} } }, "basic").schema,
  ),
);
const names = chat.tools.map((tool) => String(Object(tool["function"]).name));
row("A6", names.includes("mcp__database__query"), names.join() === names.toSorted().join());
row("A7", (await engine.call("web_search", { query: "callgate" })).text);
await engine.call("apply_patch", { files: [{ path: "made.txt", content: "made by a patch\n" }] });
row("A7", readFileSync(join(workspace, "made.txt"), "utf8").trim());
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
writeFileSync(join(workspace, "pixel.png"), Buffer.from(pixel, "base64"));
row("A7", (await engine.call("view_image", { path: "pixel.png" })).content.map(({ type }) => type).join(" "));
const decoder = codecs.chat.createDecoder();
const frame = (value: object) => decoder.push({ data: JSON.stringify(value) });
frame({
  choices: [
    { delta: { tool_calls: [{ index: 0, id: "call_123", function: { name: "read_file", arguments: '{"path":' } }] } },
  ],
});
frame({ choices: [{ delta: { tool_calls: [{ index: 0, function: { arguments: '"/tmp/file.txt"}' } }] } }] });
const decoded = [
  ...frame({ choices: [{ delta: {}, finish_reason: "tool_calls" }] }),
  ...decoder.push({ data: "[DONE]" }),
  ...decoder.end(),
];
const done = decoded.find((event) => event.type === "item.done" && event.item.type === "call");
row("A8", JSON.stringify(done && "item" in done && done.item.type === "call" ? done.item.arguments : undefined));
row("A9", (await engine.call("save_file", "{broken")).text.split("\n")[0]);
row("A10", (await engine.call("mcp__database__query", {})).text);
const shell = await engine.call("local_shell", {
  command: "echo out; echo err >&2; exit 3",
  request_permission_elevation: true,
});
row("A11", shell.exitCode);
row("A12", JSON.stringify(shell.text));
const model = createScriptedModel([
  { calls: [{ name: "save_file", input: { filename: "a", content: "b" } }] },
  (request) => ({ text: `saw ${request.input.filter(({ type }) => type === "result").length} result` }),
]);
const session = createSession({ id: "system", engine, model });
for await (const event of session.send("go")) if (event.type === "turn.ended") row("A13", event.text);
await session.close();
const config = { include_plan_tool: true, include_apply_patch_tool: true, include_view_image_tool: false };
const configured = await engine.toolsFor("chat", { profile: "gpt-5", config });
row("A14", configured.tools.map((tool) => String(Object(tool["function"]).name)).join(" "));
const plain = createEngine({ tools: builtins, workspace });
const family = await plain.toolsFor("responses", { model: "gpt-5-2025-08-07" });
row("A15", typesOf(family.tools).join(" "));
await plain.close();
for (const [approval, sandbox] of [
  ["auto", "none"],
  ["interactive", "restricted"],
  ["disabled", "read-only"],
] as const) {
  const named = createEngine({ tools: builtins, workspace, approval, sandbox });
  const { ok, code } = await named.call("local_shell", { command: "touch made-by-a-command" });
  row("A16", approval, sandbox, ok ? "ran" : code);
  await named.close();
}
row("A24", (await engine.call("local_shell", { command: "rm -rf junk && echo gone" })).text.split("\n")[1]);
const off = createEngine({ tools: builtins, workspace, approval: "disabled" });
row("A24", (await off.call("read_file", { file_path: "a.txt" })).text.split("\n")[0]);
await off.close();
const asked: string[] = [];
const careful = createEngine({
  tools: [...builtins, { ...remote, origin: { server: "database", name: "query" } }],
  workspace,
  approval: "interactive",
  approver: {
    async ask({ reason }) {
      asked.push(reason);
      return { answer: "no" };
    },
  },
  gate: { rules: [{ mcp: "database/*", decision: "deny", reason: "not on the list" }] },
});
for (const command of [
  "rm -rf /x",
  "sudo rm x",
  "mkfs /dev/x",
  "dd of=/dev/x",
  "curl x.org",
  "wget x.org",
  "nc x 1",
  "telnet x",
  "chmod 777 x",
  "chown root x",
  ":(){ :|:& };:",
])
  await careful.call("local_shell", { command });
row("A17", asked.length, "of 11 asked");
row("A18", (await careful.call("database/query", {})).text.split("\n")[0]);
await careful.close();
row("A19", (await engine.call("nothing_like_it", {})).text.split(".")[0]);
row("A19", (await engine.call("save_file", { filename: 5 })).code);
row("A19", (await engine.call("local_shell", { command: "sleep 5", timeout_ms: 50 })).code ?? "timeout in its words");
// What the sandbox refuses: the model is told how to ask for more.
const approver = { ask: async () => undefined };
const confined = createEngine({
  tools: builtins,
  workspace,
  approval: "interactive",
  approver,
  result: { layout: "sections" },
});
const refused = await confined.call("local_shell", { command: "touch /usr/callgate-x" });
row("A19", "A23", /Permission denied. Use .*/.exec(refused.text)?.[0] ?? refused.text);
await confined.close();
row("A23", (await engine.call("broken", {})).text.split("\n")[0]);
await engine.call("slow_fact", { topic: "x" });
let together = 0;
let meet = () => {};
const met = new Promise<void>((resolve) => (meet = resolve));
engine.registry.add(
  defineTool({
    name: "meet",
    description: "Ends when it runs twice at once.",
    input: { type: "object", properties: {} },
    mutates: false,
    parallel: true,
    run: async () => {
      if (++together === 2) meet();
      await met;
      return "met";
    },
  }),
);
const lanes = engine.lanes({ signal: new AbortController().signal });
const pair = await Promise.all(
  ["1", "2"].map((id) => lanes.add({ id, name: "meet", kind: "function", arguments: "{}", askedAt: Date.now() })),
);
row("A20", pair.every(({ ok }) => ok) ? "two calls at once" : "one after the other", "|", log.at(-1));
row("A20", (await engine.call("slow_fact", { topic: "x" })).text);
row("A21", engine.metrics.snapshot()["slow_fact"]?.calls, engine.metrics.snapshot()["slow_fact"]?.cacheHits);
row("A22", (await engine.call("save_file", { filename: "a", content: "b", options: {} })).text);
await engine.close();
