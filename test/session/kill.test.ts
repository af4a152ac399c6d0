/** A session that was cut off anywhere goes on: nothing recorded is lost, nothing runs twice, every request is one a provider takes. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import fc from "fast-check";
import { beforeAll, expect, test } from "vitest";
import { createEngine, defineTool } from "../../src/index.ts";
import { createSession, rebuildHistory } from "../../src/session/index.ts";
import type { Item, ResultItem } from "../../src/spec/model.ts";
import { openJournal, readJournal, type StoredRecord } from "../../src/store/index.ts";
import { createScriptedModel, type ScriptedStep } from "../../src/testing/index.ts";
import { codecs } from "../../src/wire/index.ts";
import { ensureBuilt } from "../cli/run.ts";

const folder = mkdtempSync(join(tmpdir(), "callgate-cut-"));
let bytes: Buffer;
let records: readonly StoredRecord[];

const echo = defineTool({
  name: "echo",
  description: "Echo.",
  input: { type: "object" },
  parallel: true,
  run: (input, ctx) => {
    ctx.progress("half");
    return JSON.stringify(input);
  },
});

const steps: readonly ScriptedStep[] = [
  { reasoning: "Hm.", text: "Two at once — ünïcode.", calls: [1, 2].map((n) => ({ name: "echo", input: { n } })) },
  { calls: [{ name: "echo", input: { n: 3 } }, { name: "nothing_like_it" }] },
  { text: "done" },
  { text: "Hand-over: three echoes." },
  { calls: [{ name: "echo", input: { n: 4 } }] },
  { text: "done again" },
];

beforeAll(async () => {
  const path = join(folder, "whole.jsonl");
  const session = createSession({
    id: "cut",
    engine: createEngine({ tools: [echo], approval: "never", sandbox: "full-access" }),
    model: createScriptedModel(steps),
    tools: () => [],
    journal: openJournal(path),
  });
  for await (const _event of session.send("go")) continue;
  await session.compact();
  for await (const _event of session.send("again")) continue;
  await session.close();
  bytes = readFileSync(path);
  records = readJournal(path).records;
});

/** What a strict provider checks, in the words of two wires: one output per call, none without a call. */
function unpaired(items: readonly Item[]): readonly string[] {
  const request = { model: "m", input: items, tools: [] };
  const responses = codecs.responses.encodeRequest(request).body as { input: Record<string, unknown>[] };
  const chat = codecs.chat.encodeRequest(request).body as { messages: Record<string, unknown>[] };
  const calls = responses.input.flatMap((item) => (item["type"] === "function_call" ? [String(item["call_id"])] : []));
  const outputs = responses.input.flatMap((item) =>
    item["type"] === "function_call_output" ? [String(item["call_id"])] : [],
  );
  const asked = chat.messages.flatMap((message) =>
    ((message["tool_calls"] ?? []) as { id: string }[]).map(({ id }) => id),
  );
  const told = chat.messages.flatMap((message) => (message["role"] === "tool" ? [message["tool_call_id"]] : []));
  const differ = (a: readonly unknown[], b: readonly unknown[]) => JSON.stringify(a) !== JSON.stringify(b);
  return [
    ...(differ(calls.toSorted(), outputs.toSorted()) ? [`responses: ${calls.join()} / ${outputs.join()}`] : []),
    ...(differ(asked, told) ? [`chat: ${asked.join()} / ${told.join()}`] : []),
  ];
}

function cutAt(end: number): void {
  const path = join(folder, "cut.jsonl");
  writeFileSync(path, bytes.subarray(0, end));
  const whole = bytes.subarray(0, end).toString("latin1").split("\n").length - 1;
  openJournal(path).close();
  const { records: left, problems } = readJournal(path);
  expect(problems).toEqual([]);
  expect(left).toEqual(records.slice(0, whole));
  const { items, interrupted } = rebuildHistory(left);
  expect(unpaired(items)).toEqual([]);
  const ids = (type: "call" | "result") =>
    items.flatMap((item) => (item.type === type ? [item.type === "call" ? item.id : (item as ResultItem).callId] : []));
  expect(ids("result")).toEqual(ids("call"));
  const started = left.filter(({ type }) => type === "call.started").length;
  const ended = left.filter(({ type }) => type === "call.ended");
  const endedAfterStart = ended.filter((record) =>
    left.some((other) => other.type === "call.started" && other["id"] === (record["call"] as { id: string }).id),
  );
  expect(interrupted).toHaveLength(started - endedAfterStart.length);
}

test("a journal cut after any record holds exactly the records before, and its history is one a provider takes", () => {
  for (let at = bytes.indexOf(0x0a); at !== -1; at = bytes.indexOf(0x0a, at + 1)) cutAt(at + 1);
});

test("a journal cut at any byte does too", () => {
  fc.assert(fc.property(fc.integer({ min: 0, max: bytes.length }), cutAt), { numRuns: 150 });
});

test("a journal with any byte changed is told at its line, and read up to there", () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: bytes.length - 1 }), fc.integer({ min: 1, max: 255 }), (at, change) => {
      const path = join(folder, "edited.jsonl");
      const edited = Buffer.from(bytes);
      edited[at]! ^= change;
      writeFileSync(path, edited);
      const { records: left, problems } = readJournal(path);
      const line = bytes.subarray(0, at).toString("latin1").split("\n").length;
      expect(problems).toMatchObject([{ line }]);
      expect(left).toEqual(records.slice(0, line - 1));
    }),
    { numRuns: 250 },
  );
});

test("real sessions, killed again and again, end with every call run once", { timeout: 120_000 }, () => {
  ensureBuilt();
  const root = fileURLToPath(new URL("../..", import.meta.url));
  const said = execFileSync(process.execPath, ["scripts/kill-test.mjs", "10"], { cwd: root, encoding: "utf8" });
  expect(said).toMatch(/^\d+ kills over responses: 0 problems\n$/);
});
