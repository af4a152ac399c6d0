/**
 * One model that only writes text, behind one server, drives three agents that know nothing of each other: Vercel's AI
 * SDK, Codex (as it speaks: Responses, a shell, a freeform patch tool, over the gateway), and a session of ours.
 */
import { mkdtempSync, readFileSync, realpathSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as ai from "ai";
import { expect, test } from "vitest";
import { z } from "zod";
import { toAiSdkModel } from "../../src/adapters/ai-sdk/index.ts";
import { createEngine } from "../../src/index.ts";
import { createHttpModel, createTextModel } from "../../src/model/index.ts";
import { createSession } from "../../src/session/index.ts";
import type { ScriptedStep } from "../../src/testing/index.ts";
import { builtins } from "../../src/tools/index.ts";
import { codecs, decodeRecording } from "../../src/wire/index.ts";
import { gateway, scripted } from "../gateway/gateways.ts";

const patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+two\n*** End Patch\n";

/** The model's side: it looks, changes, and says what it read. What the tools are called is told to it in its prompt. */
const steps = (shell: string, input: object, patchName: string, patchInput: object): readonly ScriptedStep[] => [
  { text: "I look first.", calls: [{ name: shell, input: { ...input } }] },
  { calls: [{ name: patchName, input: { ...patchInput } }] },
  (request) => ({ text: JSON.stringify(request.input).includes("one") ? "It was one." : "I saw nothing." }),
];

test.each(["hermes", "qwen3-coder", "glm-5"])("%s: the same model in three agents", async (dialect) => {
  const workspace = realpathSync(mkdtempSync(join(tmpdir(), "callgate-one-model-")));
  const file = join(workspace, "a.txt");
  const read = () => readFileSync(file, "utf8");

  // Vercel's AI SDK, with tools of its own.
  writeFileSync(file, "one\n");
  const first = await scripted(steps("look", { path: "a.txt" }, "put", { path: "a.txt", text: "two\n" }), dialect);
  const texts = createHttpModel({ codec: codecs.chat, model: "m", baseUrl: first.baseUrl });
  const streamed = ai.streamText({
    model: toAiSdkModel(createTextModel(texts, dialect)),
    tools: {
      look: ai.tool({ inputSchema: z.object({ path: z.string() }), execute: async () => read() }),
      put: ai.tool({
        inputSchema: z.object({ path: z.string(), text: z.string() }),
        execute: async ({ text }) => writeFileSync(file, text),
      }),
    },
    prompt: "make it two",
    stopWhen: ai.stepCountIs(4),
  });
  expect(await streamed.text).toBe("It was one.");
  expect(read()).toBe("two\n");
  texts.close();

  // Codex's shape over the gateway: a shell with a list of words, and its patch tool.
  writeFileSync(file, "one\n");
  const second = await scripted(
    steps("shell", { command: ["cat", "a.txt"] }, "apply_patch", { input: patch }),
    dialect,
  );
  const url = await gateway({
    routes: [{ match: "*", targets: [{ baseUrl: second.baseUrl, wire: `text:${dialect}`, model: "real" }] }],
  });
  const { words, calls } = await playCodex(url, { shell: () => read(), apply_patch: () => "Success." });
  expect(calls).toEqual(["function_call shell", "custom_tool_call apply_patch"]);
  expect(words).toBe("It was one.");

  // A session of ours, with the built-in tools.
  const third = await scripted(steps("shell_command", { command: "cat a.txt" }, "apply_patch", { patch }), dialect);
  const model = createHttpModel({ codec: codecs.chat, model: "m", baseUrl: third.baseUrl });
  const engine = createEngine({ tools: builtins, workspace });
  const session = createSession({ id: `one-${dialect}`, engine, model: createTextModel(model, dialect) });
  let said = "";
  for await (const event of session.send("make it two")) if (event.type === "turn.ended") said = event.text ?? "";
  expect(said).toBe("It was one.");
  expect(read()).toBe("two\n");
  await session.close();
  await engine.close();
  model.close();
});

type Raw = Readonly<Record<string, unknown>>;

/** What Codex does with a Responses server: stream, run what was called, send everything again with the outputs. */
async function playCodex(url: string, run: Readonly<Record<string, () => string>>) {
  const input: Raw[] = [{ type: "message", role: "user", content: [{ type: "input_text", text: "make it two" }] }];
  const tools = [
    {
      type: "function",
      name: "shell",
      strict: false,
      description: "Runs a command.",
      parameters: {
        type: "object",
        properties: { command: { type: "array", items: { type: "string" } } },
        required: ["command"],
      },
    },
    {
      type: "custom",
      name: "apply_patch",
      description: "Changes files.",
      format: { type: "text" },
    },
  ];
  const calls: string[] = [];
  for (let turn = 0; turn < 5; turn++) {
    const response = await fetch(`${url}/v1/responses`, {
      method: "POST",
      headers: { "content-type": "application/json", originator: "codex_cli_rs" },
      body: JSON.stringify({
        model: "gpt-5",
        instructions: "You are Codex.",
        input,
        tools,
        stream: true,
        store: false,
      }),
    });
    const body = await response.text();
    expect(response.status, body).toBe(200);
    const done = [...body.matchAll(/^data: (\{.*"type":"response\.output_item\.done".*\})$/gm)].map(
      ([, json]) => (JSON.parse(json!) as { item: Raw }).item,
    );
    input.push(...done);
    const made = done.filter(({ type }) => type === "function_call" || type === "custom_tool_call");
    if (made.length === 0) return { calls, words: words(body) };
    for (const { type, name, call_id } of made) {
      calls.push(`${String(type)} ${String(name)}`);
      const output = run[String(name)]?.() ?? "";
      input.push({ type: `${String(type)}_output`, call_id, output });
    }
  }
  throw new Error("the model did not come to an end");
}

function words(body: string): string {
  const { items } = decodeRecording(codecs.responses, [body]);
  return items
    .flatMap((item) => (item.type === "message" ? item.content : []))
    .flatMap((part) => (part.type === "text" ? [part.text] : []))
    .join("");
}
