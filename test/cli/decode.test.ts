/** `callgate decode` as a program uses it: one recording, or JSON lines. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import type { JsonObject } from "../../src/base/json.ts";
import { expectReport, recordedStreams } from "../wire/streams.ts";
import { ensureBuilt, lines, run, tempFolder } from "./run.ts";

beforeAll(ensureBuilt, 60_000);

const recordings = (["chat", "responses", "messages", "gemini"] as const).flatMap((wire) =>
  recordedStreams(wire).map(({ name, body, tools, expect: expected }) => ({
    id: `${wire}/${name}`,
    wire,
    tools,
    input: new TextDecoder().decode(body),
    expected,
  })),
);

test("a recording on stdin is told as one JSON object", async () => {
  const file = join(tempFolder("tools"), "tools.json");
  writeFileSync(file, JSON.stringify([{ type: "function", function: { name: "get_weather" } }, "search"]));
  const recording = recordings.find(({ id }) => id === "chat/own text_and_calls")!;
  const { code, stdout } = await run(["decode", "--wire", "chat", "--tools", file], { input: recording.input });
  expect(code).toBe(0);
  expectReport(JSON.parse(stdout) as JsonObject, recording.expected);
});

test("JSON lines go in and come out in order, whole or fed by code points", async () => {
  const input = recordings.flatMap(({ id, wire, tools, input }) => [
    { id, wire, tools, input },
    {
      id,
      wire,
      tools: tools.map((name) => ({ name, parameters: { type: "object" } })),
      input,
      chunks: Array.from(input, () => 1),
    },
  ]);
  const { code, stdout } = await run(["decode", "--batch"], {
    input: input.map((line) => JSON.stringify(line)).join("\n"),
  });
  expect(code).toBe(0);
  const out = lines(stdout);
  expect(out.map(({ id }) => id)).toEqual(input.map(({ id }) => id));
  for (const [at, { id: _id, ...report }] of out.entries())
    expectReport(report as JsonObject, recordings[Math.floor(at / 2)]!.expected);
});

test("a model's plain text is read in the dialect it is said to speak", async () => {
  const input = 'Sure.<tool_call>{"name": "search", "arguments": {"q": "x\u2028y 😀"}}</tool_call>';
  const line = { id: 1, wire: "text:hermes", input, tools: ["search"], chunks: [3, 30, 2] };
  const [report] = lines((await run(["decode", "--batch"], { input: JSON.stringify(line) })).stdout);
  expect(report).toMatchObject({
    id: 1,
    outcome: "ok",
    finish: "tool_calls",
    calls: [{ name: "search", input: { q: "x\u2028y 😀" }, complete: true }],
  });
});

test("a bad line gets an error line and stops nothing", async () => {
  const good = JSON.stringify({
    id: "b",
    wire: "chat",
    input: 'data: {"choices":[{"delta":{"content":"hi"},"finish_reason":"stop"}]}\n\n',
  });
  const { stdout } = await run(["decode", "--batch"], {
    input: `{"id":"a","wire":"telegraph","input":""}\nnot json\n${good}\n`,
  });
  expect(lines(stdout)).toMatchObject([
    { id: "a", error: expect.stringContaining("telegraph") as string },
    { id: null },
    { id: "b", text: "hi" },
  ]);
});

test.each([
  [["decode"], "--wire"],
  [["decode", "--wire", "telegraph"], "there is no wire 'telegraph'"],
  [["decode", "--wire", "text:klingon"], "there is no dialect 'klingon'"],
  [["decode", "--wire", "chat", "--tools", "/nowhere"], "there is no file /nowhere"],
])("a mistake ends with 2 and one line: %j", async (args, words) => {
  const { code, stderr } = await run(args);
  expect(code).toBe(2);
  expect(stderr).toContain(words);
});
