/** From what a handler gave back to the end of a call: what counts as success, what the model reads, what is kept. */
import { expect, test } from "vitest";
import { CallError, type CallErrorCode } from "../../src/base/error.ts";
import { createShaper, type ShapeOptions } from "../../src/result/shape.ts";
import type { Ran } from "../../src/spec/call.ts";
import { result } from "../../src/spec/result.ts";
import type { ExecOutcome, ToolOutput } from "../../src/spec/tool.ts";

const ran = (output: ToolOutput, more: Partial<Ran> = {}): Ran => ({
  id: "call_1",
  name: "Read-File",
  kind: "function",
  arguments: "{}",
  askedAt: 100,
  tool: { name: "read_file", description: "", input: { type: "object" }, run: () => undefined },
  input: { a: 1 },
  access: { read: ["/a"] },
  mutates: false,
  notes: [],
  grant: { policy: "read-only", confined: true, write: [], protect: [], mask: [], network: "off" },
  ruling: { decision: "allow", reason: "it reads", by: "policy" },
  startedAt: 110,
  output,
  ...more,
});
const shaper = (options: ShapeOptions = {}) => createShaper({ now: () => 150, ...options });
const shape = (output: ToolOutput, more: Partial<Ran> = {}, options: ShapeOptions = {}) =>
  shaper(options).shape(ran(output, more));
const exec = (more: Partial<ExecOutcome>) =>
  result({ exec: { stdout: "", stderr: "", output: "", exitCode: 0, durationMs: 5, timedOut: false, ...more } });

test("a command is ok where it ended with 0 in time, or still runs", async () => {
  expect(await shape(exec({}))).toMatchObject({ ok: true, exitCode: 0 });
  expect(await shape(exec({ exitCode: 1 }))).toMatchObject({ ok: false, code: "failed", exitCode: 1 });
  expect(await shape(exec({ exitCode: null, signal: "SIGKILL" }))).toMatchObject({ ok: false, exitCode: 137 });
  expect(await shape(exec({ timedOut: true }))).toMatchObject({ ok: false, code: "timeout", exitCode: 124 });
  expect(await shape(exec({ exitCode: null, sessionId: 7 }))).toMatchObject({ ok: true, exitCode: null });
});

test("the end holds what the call was, by the tool's name, and how long it took", async () => {
  const ended = await shape("text", {
    namespace: "n",
    parent: "call_0",
    markerless: true,
    untyped: true,
    notes: ["x"],
  });
  expect(ended).toEqual({
    id: "call_1",
    name: "Read-File",
    kind: "function",
    arguments: "{}",
    askedAt: 100,
    namespace: "n",
    parent: "call_0",
    markerless: true,
    untyped: true,
    tool: "read_file",
    input: { a: 1 },
    access: { read: ["/a"] },
    grant: expect.objectContaining({ policy: "read-only" }),
    ruling: { decision: "allow", reason: "it reads", by: "policy" },
    notes: ["x"],
    ok: true,
    content: [{ type: "text", text: "text" }],
    endedAt: 150,
    durationMs: 50,
  });
  const plain = await shape("text", { cached: true, remarks: ["and this"] });
  expect(plain).toMatchObject({ cached: true, content: [{ text: "text" }, { text: "and this" }] });
  for (const key of ["namespace", "parent", "markerless", "untyped", "notes", "cut", "structured", "exitCode"])
    expect(plain).not.toHaveProperty(key);
});

test("what breaks the declared schema is told instead of the result; a failure is not held to it", async () => {
  const checkOutput = async () => ["a: must be text"];
  expect(await shape({ a: 1 }, {}, { checkOutput })).toMatchObject({
    ok: false,
    code: "failed",
    structured: { a: 1 },
    content: [{ text: expect.stringContaining("does not match its output schema: a: must be text") }],
  });
  expect(await shape({ error: "no" }, {}, { checkOutput })).toMatchObject({ ok: false, content: [{ text: "no" }] });
});

test("what was cut is told in bytes, with its file where it was kept", async () => {
  const budget = { maxTokens: 100 };
  expect((await shape("word ".repeat(1_000), {}, { budget })).cut).toEqual({ bytes: expect.any(Number) });
  const spill = async () => ({ path: "/kept", bytes: 5_000 });
  expect((await shape("word ".repeat(1_000), {}, { budget, spill })).cut).toMatchObject({ file: "/kept" });
});

test("an error is told with its hint, and what belongs to it is structured", async () => {
  const error = new CallError("failed", "it broke", { hint: "mend it", data: { a: 1 } });
  expect(await shape("", { error })).toMatchObject({
    ok: false,
    code: "failed",
    content: [{ text: "Error: it broke\nmend it" }],
    structured: { error: "failed", data: { a: 1 } },
  });
  const bare = shaper().refuse(ran(""), new CallError("rejected", "no", { data: { stopTurn: true } }));
  expect(bare).toMatchObject({ stopsTurn: true, content: [{ text: "Error: no" }] });
  expect(shaper().refuse(ran(""), new CallError("rejected", "no"))).not.toHaveProperty("structured");
  expect(shaper().refuse(ran(""), new CallError("rejected", "no", { data: 7 }))).not.toHaveProperty("stopsTurn");
});

test.each<[CallErrorCode, string]>([
  ["unknown_tool", "Error: why\nhow"],
  ["invalid_input", "Error: why\nhow"],
  ["failed", "Error: Execution failed: why\nhow"],
  ["denied", "Error: Permission denied. Use more=true if needed\nwhy\nhow"],
  ["needs_approval", "Error: Permission denied. Use more=true if needed\nwhy\nhow"],
  ["sandbox_denied", "Error: Permission denied. Use more=true if needed\nwhy\nhow"],
  ["timeout", "Error: Tool execution error: why\nhow"],
])("in the oldest layout %s has a sentence of its own", (code, text) => {
  const error = new CallError(code, "why", { hint: "how" });
  const told = shaper({ layout: "sections", elevation: () => "more=true" }).refuse(ran(""), error);
  expect(told.content).toEqual([{ type: "text", text }]);
  const without = shaper({ layout: "sections" }).refuse(ran(""), new CallError("denied", "why"));
  expect(without.content).toEqual([{ type: "text", text: "Error: Permission denied.\nwhy" }]);
});
