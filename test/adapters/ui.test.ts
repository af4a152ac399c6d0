/** `callgate/ui` read by the real clients: the AI SDK's transport and message reader, AG-UI's own schema. */
import { existsSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { EventSchema } from "@ag-ui/core/schemas";
import { DefaultChatTransport, readUIMessageStream, type UIMessage } from "ai";
import { afterEach, expect, test } from "vitest";
import {
  answerLater,
  createOpenApprover,
  toAgUiResponse,
  toUiResponse,
  type AgUiEvent,
  type AgUiInput,
} from "../../src/adapters/ui/index.ts";
import { createSession, type Session } from "../../src/session/index.ts";
import type { Approver } from "../../src/index.ts";
import { openJournal, readJournal } from "../../src/store/index.ts";
import { createScriptedModel, type ScriptedStep } from "../../src/testing/index.ts";
import { createThree, pixel, type Runs } from "./three-tools.ts";

const cleanups: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
});

const newJournal = () => join(mkdtempSync(join(tmpdir(), "callgate-ui-")), "session.jsonl");

function openSession(steps: readonly ScriptedStep[], approver: Approver, path = newJournal(), workspace?: string) {
  const { engine, runs } = createThree(workspace === undefined ? {} : { workspace });
  const { records } = existsSync(path) ? readJournal(path) : { records: [] };
  const session = createSession({
    id: "s1",
    engine,
    model: createScriptedModel(steps),
    approver,
    journal: openJournal(path),
    records,
  });
  let isClosed = false;
  const close = async () => {
    if (isClosed) return;
    isClosed = true;
    await session.close();
    await engine.close();
  };
  cleanups.push(close);
  return { session, runs, path, engine, close };
}

/** What `useChat` does: posts its messages, reads the stream into the last of them. */
async function chat(session: Session, messages: readonly UIMessage[], signal?: AbortSignal): Promise<UIMessage[]> {
  const transport = new DefaultChatTransport({
    api: "http://127.0.0.1/chat",
    fetch: async (_url, init) => {
      const { messages: posted } = JSON.parse(String(init?.body)) as { messages: UIMessage[] };
      return toUiResponse(session, posted);
    },
  });
  const last = messages.at(-1)!;
  const stream = await transport.sendMessages({
    trigger: "submit-message",
    chatId: "c",
    messageId: undefined,
    messages: [...messages],
    abortSignal: signal,
  });
  let read: UIMessage | undefined;
  const errors: unknown[] = [];
  for await (const message of readUIMessageStream({
    stream,
    ...(last.role === "assistant" ? { message: structuredClone(last) } : {}),
    onError: (error) => errors.push(error),
  }))
    read = message;
  expect(errors).toEqual([]);
  return read === undefined ? [...messages] : [...messages.filter(({ id }) => id !== read.id), read];
}

const user = (text: string): UIMessage => ({ id: "u1", role: "user", parts: [{ type: "text", text }] });
const toolParts = (messages: readonly UIMessage[]) =>
  messages.flatMap(({ parts }) => parts).filter((part) => part.type === "dynamic-tool");

/** As `addToolApprovalResponse` leaves the message. */
function answered(messages: readonly UIMessage[], approved: boolean): UIMessage[] {
  return structuredClone(messages as UIMessage[]).map((message) => ({
    ...message,
    parts: message.parts.map((part) =>
      part.type === "dynamic-tool" && part.state === "approval-requested"
        ? { ...part, state: "approval-responded" as const, approval: { id: part.approval.id, approved } }
        : part,
    ),
  })) as UIMessage[];
}

test("a turn is read by the AI SDK's own client: words, images, progress", async () => {
  const { session, runs } = openSession(
    [{ text: "I look.", calls: [{ name: "picture" }, { name: "count", input: { to: 2 } }] }, { text: "Seen." }],
    answerLater,
  );
  const messages = await chat(session, [user("look")]);
  const [picture, count] = toolParts(messages);
  expect(JSON.stringify(picture)).toContain(pixel);
  expect(count).toMatchObject({ toolName: "count", state: "output-available", output: { text: "counted to 2" } });
  const words = messages.at(-1)!.parts.flatMap((part) => (part.type === "text" ? [part.text] : []));
  expect(words).toEqual(["I look.", "Seen."]);
  expect(runs).toMatchObject({ picture: 1, count: 1 });
});

test("the turn ends as waiting and goes on after a restart, when the messages come back; no call runs twice", async () => {
  const first = openSession(
    [{ calls: [{ name: "picture" }, { name: "publish", input: { text: "hello" } }] }],
    answerLater,
  );
  const asked = await chat(first.session, [user("publish")]);
  const waiting = toolParts(asked).find((part) => part.state === "approval-requested");
  expect(waiting).toMatchObject({ toolName: "publish" });
  const shown = asked.flatMap(({ parts }) => parts).find((part) => part.type === "data-approval");
  expect(JSON.stringify(shown)).toContain("everybody will read it");
  expect(first.runs.publish).toEqual([]);
  await first.close();

  const second = openSession([{ text: "Out." }], answerLater, first.path, first.engine.workspace);
  const done = await chat(second.session, answered(asked, true));
  expect(second.runs.publish).toEqual(["hello"]);
  expect(first.runs.picture + second.runs.picture).toBe(1);
  const published = toolParts(done).find((part) => part.toolName === "publish");
  expect(published).toMatchObject({ state: "output-available", output: { text: "published: hello" } });
  expect(JSON.stringify(done.at(-1))).toContain("Out.");
  // The page sends the same answer once more.
  await chat(second.session, answered(asked, true));
  expect(second.runs.publish).toEqual(["hello"]);
});

test("a no, and a yes to another question, do not run it", async () => {
  const steps = [{ calls: [{ name: "publish", input: { text: "x" } }] }, { text: "fine" }];
  const refused = openSession(steps, answerLater);
  const no = answered(await chat(refused.session, [user("go")]), false);
  const after = await chat(refused.session, no);
  expect(refused.runs.publish).toEqual([]);
  expect(toolParts(after)).toMatchObject([{ state: "output-denied" }]);

  const forged = openSession(steps, answerLater);
  const asked = await chat(forged.session, [user("go")]);
  const other = JSON.parse(
    JSON.stringify(answered(asked, true)).replaceAll(/"id":"[0-9a-f]{16,}"/g, '"id":"0000"'),
  ) as UIMessage[];
  await chat(forged.session, other);
  expect(forged.runs.publish).toEqual([]);
});

test("with an open stream the answer comes by a second route", async () => {
  const approver = createOpenApprover();
  const { session, runs } = openSession(
    [{ calls: [{ name: "publish", input: { text: "x" } }] }, { text: "Out." }],
    approver,
  );
  session.on((event) => {
    if (event.type === "approval.asked")
      setTimeout(() => expect(approver.answer(event.request.hash, { answer: "once" })).toBe(true), 5);
  });
  const messages = await chat(session, [user("go")]);
  expect(runs.publish).toEqual(["x"]);
  expect(JSON.stringify(messages.at(-1))).toContain("Out.");
  expect(approver.answer("nothing", { answer: "once" })).toBe(false);
});

test("a page that goes away interrupts the turn", async () => {
  const { session, runs } = openSession([{ calls: [{ name: "wait" }] }], answerLater);
  const response = await toUiResponse(session, [user("wait")]);
  const reader = response.body!.getReader();
  const decoder = new TextDecoder();
  for (let seen = ""; !seen.includes("waiting");) seen += decoder.decode((await reader.read()).value);
  await reader.cancel();
  expect(runs.stopped).toBe(1);
});

const run = async (session: Session, input: Partial<AgUiInput>): Promise<AgUiEvent[]> => {
  const response = await toAgUiResponse(session, { threadId: "t", runId: "r", messages: [], ...input });
  const events = (await response.text())
    .split("\n\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line.slice("data: ".length)) as AgUiEvent);
  for (const event of events) EventSchema.parse(event);
  return events;
};
const types = (events: readonly AgUiEvent[]) => events.map(({ type }) => type);
const countOf = (events: readonly AgUiEvent[], type: string) => types(events).filter((one) => one === type).length;

test("AG-UI: every event fits its schema, steps end, an interrupt is answered after a restart", async () => {
  const first = openSession(
    [
      { reasoning: "hm", text: "I look.", calls: [{ name: "count", input: { to: 2 } }] },
      { calls: [{ name: "publish", input: { text: "hello" } }] },
    ],
    answerLater,
  );
  const begun = await run(first.session, { messages: [{ role: "user", content: "go" }] });
  expect(types(begun)[0]).toBe("RUN_STARTED");
  expect(countOf(begun, "STEP_STARTED")).toBe(countOf(begun, "STEP_FINISHED"));
  expect(begun.find(({ type }) => type === "TOOL_CALL_RESULT")).toMatchObject({ content: "counted to 2" });
  expect(countOf(begun, "TOOL_CALL_RESULT")).toBe(1);
  const end = begun.at(-1) as unknown as {
    outcome: { type: string; interrupts: { id: string; toolCallId: string }[] };
  };
  expect(end.outcome).toMatchObject({ type: "interrupt", interrupts: [{ reason: "tool_call" }] });
  await first.close();

  const answer = async (payload: unknown, runs?: Runs) => {
    const second = openSession([{ text: "Out." }], answerLater, first.path, first.engine.workspace);
    const [interrupt] = end.outcome.interrupts;
    const events = await run(second.session, {
      resume: [{ interruptId: interrupt!.id, status: "resolved", payload }],
    });
    await second.close();
    return { events, runs: runs ?? second.runs };
  };
  const { events, runs } = await answer({ approved: true });
  expect(runs.publish).toEqual(["hello"]);
  expect(events.find(({ type }) => type === "TOOL_CALL_RESULT")).toMatchObject({ content: "published: hello" });
  expect(events.at(-1)).toMatchObject({ type: "RUN_FINISHED", outcome: { type: "success" } });
});
