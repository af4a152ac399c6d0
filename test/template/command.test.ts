/** `dialects infer` and `model` as a person uses them, and a session on a server that only writes text. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { renderTemplate } from "../../src/template/index.ts";
import { ensureBuilt, run, tempFolder } from "../cli/run.ts";
import { fixture } from "./fixtures.ts";

const template = fixture("qwen3-coder-think");
const requests: { readonly url: string; readonly body: Record<string, unknown> }[] = [];
let server: Server;
let baseUrl = "";

/** Thinks, drafts a call, then calls for real; with a result in sight it says so. */
function answer(body: Record<string, unknown>): string {
  const told = JSON.stringify(body);
  if (told.includes("first line of it")) return "All read.\n</think>\n\nDone reading.";
  const call = (path: string) =>
    `<tool_call>\n<function=read_file>\n<parameter=file_path>\n${path}\n</parameter>\n</function>\n</tool_call>`;
  return `I could ${call("/etc/hostname")} but no.\n</think>\n\n${call("note.txt")}`;
}

beforeAll(async () => {
  await ensureBuilt();
  server = createServer((request, response) => {
    if (request.url === "/props") {
      response.setHeader("content-type", "application/json");
      return response.end(
        JSON.stringify({
          default_generation_settings: {},
          chat_template: template,
          bos_token: "",
          eos_token: "<|im_end|>",
        }),
      );
    }
    let text = "";
    request.on("data", (chunk) => (text += String(chunk)));
    request.on("end", () => {
      const body = JSON.parse(text) as Record<string, unknown>;
      requests.push({ url: request.url!, body });
      const said = answer(body);
      const chunk = request.url!.endsWith("/chat/completions")
        ? {
            id: "a",
            object: "chat.completion.chunk",
            choices: [{ index: 0, delta: { role: "assistant", content: said }, finish_reason: "stop" }],
          }
        : { id: "a", object: "text_completion", choices: [{ index: 0, text: said, finish_reason: "stop" }] };
      response.setHeader("content-type", "text/event-stream");
      response.end(`data: ${JSON.stringify(chunk)}\n\ndata: [DONE]\n\n`);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
}, 90_000);
afterAll(() => void server.close());

test("infer takes a tokenizer config with several templates, a GGUF header and plain Jinja; a Go template is refused by name", async () => {
  const folder = tempFolder("infer");
  const write = (name: string, data: string | Uint8Array) => {
    const file = join(folder, name);
    writeFileSync(file, data);
    return file;
  };
  const several = write(
    "tokenizer_config.json",
    JSON.stringify({
      chat_template: [
        { name: "default", template: fixture("no-tools") },
        { name: "tool_use", template: fixture("hermes-macro") },
      ],
    }),
  );
  expect((await run(["dialects", "infer", several])).stdout).toMatch(
    /^hermes {2}\(renders <tool_call>.*reads 5 of 5 probe sets/,
  );
  const gguf = write("model.gguf", ggufOf({ "general.name": "x", "tokenizer.chat_template": fixture("llama-bare") }));
  expect((await run(["dialects", "infer", gguf])).stdout).toMatch(/^llama3-json /);
  const profile = JSON.parse((await run(["dialects", "infer", "--json", write("t.jinja", template)])).stdout) as object;
  expect(profile).toMatchObject({ dialect: "qwen3-coder", how: "read", opensThoughts: { default: true, off: false } });
  const list = JSON.parse((await run(["dialects", "infer", "--json", several, gguf])).stdout) as object;
  expect(list).toMatchObject([
    { file: several, dialect: "hermes" },
    { file: gguf, dialect: "llama3-json" },
  ]);
  const go = await run([
    "dialects",
    "infer",
    write("Modelfile", "{{- range .Messages }}{{ .Role }}: {{ .Content }}{{ end }}"),
  ]);
  expect([go.code, go.stderr]).toEqual([2, expect.stringContaining("Go template")]);
  expect((await run(["dialects", "infer", write("garbage", "\u0000\u0001 nothing")])).code).toBe(1);
  const broken = await run([
    "dialects",
    "infer",
    write("b.jinja", "{% for message in messages %}<tool_call>{{ message.x.y.z }}"),
  ]);
  expect(broken.stderr).toMatch(/cannot be rendered/);
}, 60_000);

function ggufOf(fields: Readonly<Record<string, string>>): Uint8Array {
  const string = (text: string) => {
    const bytes = Buffer.from(text);
    const size = Buffer.alloc(8);
    size.writeBigUInt64LE(BigInt(bytes.length));
    return Buffer.concat([size, bytes]);
  };
  const head = Buffer.alloc(24);
  head.write("GGUF", 0);
  head.writeUInt32LE(3, 4);
  head.writeBigUInt64LE(BigInt(Object.keys(fields).length), 16);
  const rows = Object.entries(fields).map(([key, value]) =>
    Buffer.concat([string(key), Buffer.from([8, 0, 0, 0]), string(value)]),
  );
  return Buffer.concat([head, ...rows]);
}

function workspace() {
  const folder = tempFolder("template-model");
  writeFileSync(join(folder, "note.txt"), "first line of it\n");
  return { folder, env: { CALLGATE_HOME: join(folder, ".state") } };
}

test("a model added from its server's template runs on native messages, and a drafted call never runs", async () => {
  const { folder, env } = workspace();
  const added = await run(["model", "add", "mine", "--base-url", baseUrl, "--template", "auto"], { cwd: folder, env });
  expect(added.code, added.stderr).toBe(0);
  expect(added.stdout).toMatch(/chat\+text:qwen3-coder/);
  expect((await run(["model", "show", "mine", "--check"], { cwd: folder, env })).code).toBe(0);
  requests.length = 0;
  const done = await run(["exec", "--model", "mine", "--json", "read it"], { cwd: folder, env });
  expect(done.stdout, done.stderr).toContain("Done reading.");
  expect(done.stdout).toContain("first line of it");
  const [first, second] = requests;
  expect(first!.url).toBe("/v1/chat/completions");
  expect(Array.isArray(first!.body["tools"])).toBe(true);
  const messages = second!.body["messages"] as readonly Record<string, unknown>[];
  expect(messages.filter(({ role }) => role === "tool")).toHaveLength(2);
  expect(JSON.stringify(messages)).not.toContain("/etc/hostname\\n127");
}, 60_000);

test("on a raw completion endpoint the prompt is the template's own rendering, byte for byte", async () => {
  const { folder, env } = workspace();
  const added = await run(
    ["model", "add", "raw", "--base-url", baseUrl, "--template", "auto", "--wire", "completions"],
    { cwd: folder, env },
  );
  expect(added.code, added.stderr).toBe(0);
  requests.length = 0;
  const done = await run(["exec", "--model", "raw", "--json", "read it"], { cwd: folder, env });
  expect(done.stdout, done.stderr).toContain("Done reading.");
  const [first] = requests;
  expect(first!.url).toBe("/v1/completions");
  const prompt = String(first!.body["prompt"]);
  expect(prompt.endsWith("<|im_start|>assistant\n<think>\n")).toBe(true);
  expect(prompt).toContain("<name>read_file</name>");
  expect(prompt).toContain(renderTemplate(template, { messages: [{ role: "user", content: "read it" }] }).trim());
  expect(first!.body["stop"]).toEqual(["<|im_end|>"]);
}, 60_000);

test("templates that ask for too much end with a clear error, in a small heap, and the next one is read", async () => {
  const folder = tempFolder("hostile");
  const said = "{% for m in messages %}{{ m.role }}{{ m.content }}{% for c in m.tool_calls or [] %}";
  const call = "<tool_call>\n{{ {'name': c.function.name, 'arguments': c.function.arguments} | tojson }}\n</tool_call>";
  const hostile = [
    "{% for i in range(1000000000) %}x{% endfor %}",
    "{% for a in range(3000) %}{% for b in range(3000) %}x{% endfor %}{% endfor %}",
    `{% for a in range(300) %}{% for b in range(600) %}{% endfor %}{% endfor %}${said}${call}{% endfor %}{% endfor %}`,
    "{% set n = namespace(s='x') %}{% for i in range(40) %}{% set n.s = n.s ~ n.s %}{% endfor %}{{ n.s }}",
    "{% set n = namespace(s=[1]) %}{% for i in range(40) %}{% set n.s = n.s + n.s %}{% endfor %}{{ n.s }}",
    "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
    `{{ ${"(".repeat(20_000)}1${")".repeat(20_000)} }}`,
    "{{ 'a\\nb' | indent(100000000) }}",
    `${said}{{ '<tool_call>{<function=<think>' * 3000 }}${call}{% endfor %}{% endfor %}`,
    `${said}${call}{% endfor %}{% endfor %}{{ '<tool_call>' * 1000000 }}`,
  ];
  const files = [...hostile, fixture("llama-bare")].map((source, index) => {
    const file = join(folder, `${index}.jinja`);
    writeFileSync(file, `{% set all = messages %}${source}`);
    return file;
  });
  const { code, stdout, stderr } = await run(["dialects", "infer", ...files], {
    env: { NODE_OPTIONS: "--max-old-space-size=128" },
  });
  const whys = stderr.split("\n").filter((line) => line.includes("the template cannot be rendered"));
  expect(whys, stderr).toHaveLength(hostile.length);
  for (const why of whys) expect(why).toMatch(/asks for too much|nests too deeply|writes more than/);
  expect(stdout.trim().split("\n").at(-1)).toContain("llama3-json");
  expect(code).toBe(1);
});
