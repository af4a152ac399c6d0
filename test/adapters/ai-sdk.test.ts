/** `callgate/ai-sdk` with the real packages: AI SDK 6 and 7 drive our tools, our models and our sandbox. */
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as ai6 from "ai";
import * as ai7 from "ai-7";
import { afterEach, describe, expect, test } from "vitest";
import { z } from "zod";
import { toAiSdkModel, toAiSdkSandbox, toAiSdkTools } from "../../src/adapters/ai-sdk/index.ts";
import { openCallFolder } from "../../src/store/index.ts";
import { createEngine, type Engine } from "../../src/index.ts";
import { createTextModel } from "../../src/model/index.ts";
import { createScriptedModel, type ScriptedStep } from "../../src/testing/index.ts";
import { speakText } from "../../src/testing/text-mode.ts";
import { createThree, pixel } from "./three-tools.ts";

const open: Engine[] = [];
afterEach(async () => {
  for (const engine of open.splice(0)) await engine.close();
});
const three: typeof createThree = (options) => {
  const made = createThree(options);
  open.push(made.engine);
  return made;
};

/** The newer version has the same functions; its types differ where this test does not look. */
const versions = [
  ["AI SDK 6", ai6],
  ["AI SDK 7", ai7 as unknown as typeof ai6],
] as const;

const scripted = (steps: readonly ScriptedStep[]) => {
  const script = createScriptedModel(steps);
  return { script, model: toAiSdkModel(script) };
};
const collect = async <T>(parts: AsyncIterable<T>): Promise<T[]> => {
  const all: T[] = [];
  for await (const part of parts) all.push(part);
  return all;
};

describe.each(versions)("%s", (version, ai) => {
  const approvals = (tools: ReturnType<typeof toAiSdkTools>) =>
    version === "AI SDK 7" ? { toolApproval: tools.toolApproval } : {};

  test("tools run with their images and their progress, and the model is told both", async () => {
    const { engine, runs } = three();
    const tools = toAiSdkTools(engine);
    const { script, model } = scripted([
      { calls: [{ name: "picture" }, { name: "count", input: { to: 3 } }] },
      { text: "seen" },
    ]);
    const result = ai.streamText({ model, tools: tools.tools, prompt: "look", stopWhen: ai.stepCountIs(4) });
    const parts = await collect(result.fullStream);
    expect(parts.filter(({ type }) => type === "error")).toEqual([]);
    const results = parts.flatMap((part) => (part.type === "tool-result" ? [part] : []));
    const running = results.filter(({ preliminary }) => preliminary === true);
    expect(running.map(({ output }) => (output as { text: string }).text)).toContain("number 1\nnumber 2\nnumber 3\n");
    expect(await result.text).toBe("seen");
    expect(runs).toMatchObject({ picture: 1, count: 1 });
    const told = script.requests[1]!.input.filter((item) => item.type === "result");
    expect(told[0]!.content).toEqual([
      { type: "text", text: "one pixel" },
      { type: "image", mediaType: "image/png", data: pixel },
    ]);
    expect(told[1]!.content).toEqual([{ type: "text", text: "counted to 3" }]);
  });

  test("a call that asks waits for an answer, which may come after a restart, counts for that call, and runs it once", async () => {
    const first = three();
    const store = openCallFolder(first.folder);
    const asking = toAiSdkTools(first.engine, { store });
    const ask = [{ calls: [{ name: "publish", input: { text: "hello" } }] }];
    const begun = await ai.generateText({
      model: scripted(ask).model,
      tools: asking.tools,
      prompt: "publish hello",
      ...approvals(asking),
    });
    expect(first.runs.publish).toEqual([]);
    const request = begun.content.find((part) => part.type === "tool-approval-request");
    if (request?.type !== "tool-approval-request") throw new Error("nothing was asked");
    if (version === "AI SDK 7") expect(JSON.stringify(request)).toContain("everybody will read it");
    const { toolCall } = request;
    expect(await asking.question(toolCall)).toMatchObject({ call: { tool: "publish", input: { text: "hello" } } });

    const answered = (messages: readonly ai6.ModelMessage[]): ai6.ModelMessage[] => [
      { role: "user", content: "publish hello" },
      ...messages,
      {
        role: "tool",
        content: [{ type: "tool-approval-response", approvalId: request.approvalId, approved: true }],
      },
    ];
    const second = three({ workspace: first.engine.workspace });
    const goOn = async (messages: ai6.ModelMessage[]) => {
      const going = toAiSdkTools(second.engine, { store: openCallFolder(first.folder) });
      const end = ai.streamText({
        model: scripted([{ text: "out" }]).model,
        tools: going.tools,
        messages,
        ...approvals(going),
      });
      return collect(end.fullStream);
    };
    const parts = await goOn(answered(begun.response.messages));
    expect(second.runs.publish).toEqual(["hello"]);
    expect(parts.find(({ type }) => type === "tool-result")).toMatchObject({ output: { text: "published: hello" } });

    // The page sends its messages a second time: the call has run already.
    const again = await goOn(answered(begun.response.messages));
    expect(again.find(({ type }) => type === "tool-result")).toMatchObject({ output: { text: "published: hello" } });
    expect(second.runs.publish).toEqual(["hello"]);

    // Somebody changes what was agreed to: the yes was not for that.
    const forged = JSON.parse(
      JSON.stringify(begun.response.messages).replaceAll("hello", "evil"),
    ) as ai6.ModelMessage[];
    const refused = await goOn(answered(forged));
    expect(second.runs.publish).toEqual(["hello"]);
    expect(refused.some(({ type }) => type === "tool-result")).toBe(false);
  });

  test("a no keeps the call from running", async () => {
    const { engine, runs } = three();
    const tools = toAiSdkTools(engine);
    const begun = await ai.generateText({
      model: scripted([{ calls: [{ name: "publish", input: { text: "hello" } }] }]).model,
      tools: tools.tools,
      prompt: "publish hello",
      ...approvals(tools),
    });
    const request = begun.content.find((part) => part.type === "tool-approval-request");
    if (request?.type !== "tool-approval-request") throw new Error("nothing was asked");
    const end = await ai.generateText({
      model: scripted([{ text: "then not" }]).model,
      tools: tools.tools,
      messages: [
        { role: "user", content: "publish hello" },
        ...begun.response.messages,
        {
          role: "tool",
          content: [{ type: "tool-approval-response", approvalId: request.approvalId, approved: false }],
        },
      ],
      ...approvals(tools),
    });
    expect(end.text).toBe("then not");
    expect(runs.publish).toEqual([]);
  });

  test("an abort in the middle reaches the call", async () => {
    const { engine, runs } = three();
    const stop = new AbortController();
    const { model } = scripted([{ calls: [{ name: "wait" }] }, { text: "never" }]);
    const result = ai.streamText({
      model,
      tools: toAiSdkTools(engine).tools,
      prompt: "wait",
      abortSignal: stop.signal,
      onError() {},
    });
    for await (const part of result.fullStream) if (part.type === "tool-result") stop.abort();
    expect(runs.stopped).toBe(1);
  });

  test("a call that fails is an error of the SDK, with our words for the model", async () => {
    const { engine } = three();
    const { script, model } = scripted([{ calls: [{ name: "count", input: { to: "many" } }] }, { text: "sorry" }]);
    const end = await ai.generateText({
      model,
      tools: toAiSdkTools(engine).tools,
      prompt: "count",
      stopWhen: ai.stepCountIs(3),
    });
    expect(end.steps[0]!.content.some(({ type }) => type === "tool-error")).toBe(true);
    const told = script.requests[1]!.input.find((item) => item.type === "result");
    expect(told).toMatchObject({ ok: false });
    expect(JSON.stringify(told)).toContain("integer");
  });

  test.each(["hermes", "qwen3-coder", "morph-xml"])(
    "a model that only writes text (%s) drives streamText with anybody's tools",
    async (dialect) => {
      const script = createScriptedModel([
        { calls: [{ name: "add", input: { a: 2, b: 3 } }] },
        (request) => ({ text: JSON.stringify(request.input).includes("five") ? "it is five" : "no result" }),
      ]);
      const model = toAiSdkModel(createTextModel(speakText(script, dialect), dialect));
      const given: unknown[] = [];
      const result = ai.streamText({
        model,
        tools: {
          add: ai.tool({
            description: "adds",
            inputSchema: z.object({ a: z.number(), b: z.number() }),
            async execute(input) {
              given.push(input);
              return "five";
            },
          }),
        },
        prompt: "2 + 3",
        stopWhen: ai.stepCountIs(3),
      });
      const parts = await collect(result.fullStream);
      expect(parts.filter(({ type }) => type === "error")).toEqual([]);
      expect(given).toEqual([{ a: 2, b: 3 }]);
      expect(parts.some(({ type }) => type === "tool-input-delta")).toBe(true);
      expect(await result.text).toBe("it is five");
    },
  );

  test("settings, images and thoughts go to the model and come back to it", async () => {
    const { script, model } = scripted([
      {
        reasoning: "hm",
        calls: [{ name: "picture" }],
        end: { usage: { input: 10, cached: 4, output: 7, reasoning: 2 } },
      },
      { text: '{"ok":true}' },
    ]);
    const { engine } = three();
    const end = await ai.generateText({
      model,
      tools: toAiSdkTools(engine).tools,
      toolChoice: "auto",
      temperature: 0.5,
      maxOutputTokens: 99,
      system: "be brief",
      messages: [
        {
          role: "user",
          content: [
            { type: "text", text: "what is it" },
            { type: "file", mediaType: "image/png", data: pixel },
          ],
        },
      ],
      stopWhen: ai.stepCountIs(3),
    });
    const [first, second] = script.requests;
    expect(first).toMatchObject({
      instructions: "be brief",
      temperature: 0.5,
      maxOutputTokens: 99,
      toolChoice: "auto",
    });
    expect(first!.input[0]).toMatchObject({
      content: [{ text: "what is it" }, { type: "image", mediaType: "image/png", data: pixel }],
    });
    expect(second!.input.find(({ type }) => type === "reasoning")).toMatchObject({ text: "hm" });
    expect(end.steps[0]!.usage).toMatchObject({ inputTokens: 10, outputTokens: 7 });
  });
});

test("a call the answer broke off in is not handed to the SDK", async () => {
  const { runs, engine } = three();
  const { model } = scripted([
    {
      calls: [{ name: "count", arguments: '{"to": 1', complete: false }],
      end: { finish: "length", outcome: "incomplete" },
    },
  ]);
  const end = await ai6.generateText({ model, tools: toAiSdkTools(engine).tools, prompt: "count" });
  expect(end.finishReason).toBe("length");
  expect(runs.count).toBe(0);
});

test("without a store on disk an answer after a restart counts for nothing", async () => {
  const first = three();
  const begun = await ai6.generateText({
    model: scripted([{ calls: [{ name: "publish", input: { text: "x" } }] }]).model,
    tools: toAiSdkTools(first.engine).tools,
    prompt: "go",
  });
  const request = begun.content.find((part) => part.type === "tool-approval-request");
  if (request?.type !== "tool-approval-request") throw new Error("nothing was asked");
  const second = three();
  await ai6.generateText({
    model: scripted([{ text: "end" }]).model,
    tools: toAiSdkTools(second.engine).tools,
    messages: [
      { role: "user", content: "go" },
      ...begun.response.messages,
      { role: "tool", content: [{ type: "tool-approval-response", approvalId: request.approvalId, approved: true }] },
    ],
  });
  expect(second.runs.publish).toEqual([]);
});

test("'only' takes a name in any spelling, and a name that nobody has is a mistake", () => {
  const { engine } = three();
  expect(Object.keys(toAiSdkTools(engine, { only: ["picture"] }).tools)).toEqual(["picture"]);
  expect(() => toAiSdkTools(engine, { only: ["pictures"] })).toThrow(TypeError);
});

test("the engine is the SDK's sandbox: commands and files go down the line", async () => {
  const workspace = mkdtempSync(join(tmpdir(), "callgate-sandbox-"));
  const engine = createEngine({ workspace, approval: "never" });
  open.push(engine);
  const sandbox = toAiSdkSandbox(engine);
  // AI SDK 7 takes it as it is.
  const taken: ai7.Experimental_SandboxSession = sandbox;
  expect(taken.description).toContain(workspace);

  await sandbox.writeTextFile({ path: "a/b.txt", content: "one\ntwo\nthree" });
  expect(readFileSync(join(workspace, "a/b.txt"), "utf8")).toBe("one\ntwo\nthree");
  expect(await sandbox.readTextFile({ path: "a/b.txt", startLine: 2, endLine: 2 })).toBe("two");
  expect(await sandbox.readTextFile({ path: "none" })).toBeNull();
  expect(await sandbox.stat({ path: "a" })).toMatchObject({ type: "directory" });
  expect(await sandbox.listDirectory({ path: "a" })).toEqual([{ name: "b.txt", type: "file" }]);
  const bytes = new Uint8Array([0, 255, 1, 2]);
  await sandbox.writeBinaryFile({ path: "raw", content: bytes });
  expect(await sandbox.readBinaryFile({ path: "raw" })).toEqual(bytes);
  expect(await sandbox.deleteFile({ path: "raw" })).toBe(true);
  expect(await sandbox.deleteFile({ path: "raw" })).toBe(false);

  await expect(async () => sandbox.run({ command: "true", env: { "A;touch x": "1" } })).rejects.toThrow(
    "no name of a variable",
  );
  expect(await sandbox.run({ command: 'echo "$WHO"; echo err >&2; exit 3', env: { WHO: "it's me" } })).toEqual({
    exitCode: 3,
    stdout: "it's me\n",
    stderr: "err\n",
  });
  const strict = createEngine({ workspace, gate: { rules: [{ tool: "sandbox_*", decision: "deny" }] } });
  open.push(strict);
  await expect(toAiSdkSandbox(strict).run({ command: "echo x" })).rejects.toMatchObject({ code: "denied" });
  const outside = join(mkdtempSync(join(tmpdir(), "callgate-outside-")), "x");
  writeFileSync(outside, "kept");
  await expect(sandbox.writeTextFile({ path: outside, content: "lost" })).rejects.toThrow();
  expect(readFileSync(outside, "utf8")).toBe("kept");

  const process = await sandbox.spawn({ command: "echo started; sleep 60" });
  const reader = process.stdout.getReader();
  expect(new TextDecoder().decode((await reader.read()).value)).toContain("started");
  await process.kill();
  await expect(process.wait()).rejects.toThrow();
  await expect(sandbox.spawn({ command: "cat", stdin: true })).rejects.toThrow(TypeError);
  expect(Object.keys(toAiSdkTools(engine).tools)).toEqual([]);
});
