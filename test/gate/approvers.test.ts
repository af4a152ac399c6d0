/** Approvers for programs: what counts as an answer, and for which question. */
import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import { createCallbackApprover, createJsonLinesApprover } from "../../src/gate/index.ts";
import type { ApprovalRequest } from "../../src/spec/stages.ts";

const { signal } = new AbortController();
const request = (hash: string): ApprovalRequest => ({
  call: { id: "1", tool: "shell", input: {} },
  reason: "it is not known",
  access: {},
  grant: { policy: "workspace-write", confined: true, write: ["/w"], protect: [], mask: [], network: "off" },
  commands: [],
  hash,
});

test.each<[string, unknown]>([
  ['{"answer":"once"}', { answer: "once" }],
  ['{"answer":"session"}', { answer: "session" }],
  ['{"answer":"always"}', { answer: "always" }],
  ['{"answer":"direct"}', { answer: "direct" }],
  ['{"answer":"no"}', { answer: "no" }],
  ['{"answer":"stop","message":"m"}', { answer: "stop", message: "m" }],
  ['{"answer":"no","message":7}', { answer: "no" }],
  ['{"answer":"once","keep":["a","b"]}', { answer: "once", keep: ["a", "b"] }],
  ['{"answer":"once","keep":[]}', { answer: "once", keep: [] }],
])("JSON lines: %s is an answer", async (line, answer) => {
  const input = new PassThrough();
  const asked = createJsonLinesApprover(input, new PassThrough()).ask(request("h"), signal);
  input.end(`${line.replace("{", '{"hash":"h",')}\n`);
  expect(await asked).toEqual(answer);
});

test.each([
  '{"hash":"h","answer":"yes"}',
  '{"hash":"h","answer":"once","keep":"a"}',
  '{"hash":"h","answer":"once","keep":["a",1]}',
  '{"hash":"h"}',
  '{"hash":7,"answer":"once"}',
  '{"answer":"once"}',
  '["h","once"]',
  "null",
  '{"hash":"h","answer":"once"',
])("JSON lines: %s is none, and none is a no", async (line) => {
  const input = new PassThrough();
  const asked = createJsonLinesApprover(input, new PassThrough()).ask(request("h"), signal);
  input.end(`${line}\n`);
  expect(await asked).toBeUndefined();
});

test("JSON lines: an answer is for one question, and a stopped turn asks and answers nothing", async () => {
  const [input, output] = [new PassThrough(), new PassThrough()];
  const approver = createJsonLinesApprover(input, output);
  const first = approver.ask(request("h"), signal);
  input.write('{"hash":"h","answer":"once"}\n');
  expect(await first).toEqual({ answer: "once" });
  output.read();
  expect(await approver.ask(request("h"), AbortSignal.abort())).toBeUndefined();
  expect(output.read()).toBeNull();
  const stop = new AbortController();
  const second = approver.ask(request("h"), stop.signal);
  stop.abort();
  expect(await second).toBeUndefined();
  input.destroy(new Error("broken off"));
  expect(await approver.ask(request("h"), signal)).toBeUndefined();
});

test("JSON lines: the question is one line with all a program needs to answer it", async () => {
  const [input, output] = [new PassThrough(), new PassThrough()];
  const asked = createJsonLinesApprover(input, output).ask(request("h"), signal);
  const [line, ...rest] = String(output.read()).split("\n");
  expect(rest).toEqual([""]);
  expect(JSON.parse(line ?? "")).toEqual({ type: "approval.asked", ...request("h") });
  input.end('{"hash":"other","answer":"once"}\n{"hash":"h","answer":"no"}\n');
  expect(await asked).toEqual({ answer: "no" });
});

test("a function is an approver, and an error of it is no answer of anybody's", async () => {
  expect(await createCallbackApprover(() => ({ answer: "once" })).ask(request("h"), signal)).toEqual({
    answer: "once",
  });
  const failing = createCallbackApprover(() => {
    throw new Error("no");
  });
  await expect(failing.ask(request("h"), signal)).rejects.toThrow("no");
});

test("JSON lines: two conversations may ask the same; each question has its own answer, the older one first", async () => {
  const [input, output] = [new PassThrough(), new PassThrough()];
  const approver = createJsonLinesApprover(input, output);
  const first = approver.ask(request("h"), signal);
  const second = approver.ask(request("h"), signal);
  input.write('{"hash":"h","answer":"no","message":"one"}\n');
  expect(await first).toEqual({ answer: "no", message: "one" });
  input.write('{"hash":"h","answer":"once"}\n');
  expect(await second).toEqual({ answer: "once" });
});

test("JSON lines: of two that ask the same, one may be stopped and the other still answered", async () => {
  const [input, stop] = [new PassThrough(), new AbortController()];
  const approver = createJsonLinesApprover(input, new PassThrough());
  const stopped = approver.ask(request("h"), stop.signal);
  const other = approver.ask(request("h"), signal);
  stop.abort();
  expect(await stopped).toBeUndefined();
  input.end('{"hash":"h","answer":"session"}\n');
  expect(await other).toEqual({ answer: "session" });
});

test("JSON lines: when the input ends, everybody who waits is told that nobody answers", async () => {
  const input = new PassThrough();
  const approver = createJsonLinesApprover(input, new PassThrough());
  const waiting = ["a", "b", "a"].map((hash) => approver.ask(request(hash), signal));
  input.end("\n");
  expect(await Promise.all(waiting)).toEqual([undefined, undefined, undefined]);
});

test("JSON lines: an answer that comes before its question is none", async () => {
  const input = new PassThrough();
  const approver = createJsonLinesApprover(input, new PassThrough());
  input.write('{"hash":"h","answer":"once"}\n');
  await new Promise((done) => setImmediate(done));
  const asked = approver.ask(request("h"), signal);
  input.end('{"hash":"h","answer":"no"}\n');
  expect(await asked).toEqual({ answer: "no" });
});
