/** What the gateway does to calls that the policy refuses, and what it writes down. */
import { describe, expect, test } from "vitest";
import type { Judge, RequestRecord } from "../../src/gateway/index.ts";
import { listSessions, readJournal } from "../../src/store/index.ts";
import { tempFolder } from "../cli/run.ts";
import { ask, gateway, question, scripted } from "./gateways.ts";

const noRain: Judge = async (call) =>
  call.arguments.includes("rm") ? { reason: "it removes files", rule: "no-rm" } : undefined;
const remove = { name: "weather", input: { city: "rm -rf /" } };
const look = { name: "weather", input: { city: "Bonn" } };
const target = (baseUrl: string) => [{ match: "*", targets: [{ baseUrl, wire: "chat", model: "x" }] }];
const callsOf = (items: readonly { readonly type: string }[]) => items.filter(({ type }) => type === "call");

describe.each(["responses", "chat", "messages", "gemini"] as const)("for a %s client", (client) => {
  test("a refused call among others is replaced by words", async () => {
    const model = await scripted([{ text: "Two things.", calls: [remove, look] }]);
    const url = await gateway({ routes: target(model.baseUrl), judge: noRain, enforce: true });
    const { answer, text } = await ask(url, client);
    expect(callsOf(answer.items)).toMatchObject([{ arguments: JSON.stringify(look.input) }]);
    expect(text).toContain("refused by policy: it removes files");
  });

  test("when every call is refused the model is asked again, and the client sees only what it may", async () => {
    const model = await scripted([
      { text: "Removing.", calls: [remove] },
      { text: "Then I only look.", calls: [look] },
    ]);
    const url = await gateway({ routes: target(model.baseUrl), judge: noRain, enforce: true });
    const { answer, text } = await ask(url, client);
    expect(callsOf(answer.items)).toMatchObject([{ arguments: JSON.stringify(look.input) }]);
    expect(text).toContain("Removing.");
    expect(model.requests[1]?.input.slice(-2)).toMatchObject([{ type: "call" }, { type: "result", ok: false }]);
  });

  test("without --enforce the call passes, and the operator is told", async () => {
    const records: RequestRecord[] = [];
    const model = await scripted([{ calls: [remove] }]);
    const url = await gateway({
      routes: target(model.baseUrl),
      judge: noRain,
      onRequest: (record) => records.push(record),
    });
    const { answer } = await ask(url, client);
    expect(callsOf(answer.items)).toHaveLength(1);
    await expect.poll(() => records).toMatchObject([{ refused: [{ call: "weather", reason: "it removes files" }] }]);
  });
});

test.each(["responses", "chat", "messages", "gemini"] as const)(
  "a call whose arguments are broken goes back to the model and not to a %s client",
  async (client) => {
    const doubled = { name: "weather", arguments: '{"city":"a"}{"city":"a"}' };
    const model = await scripted([{ calls: [doubled] }, { text: "Once more.", calls: [look] }]);
    const url = await gateway({ routes: target(model.baseUrl) });
    const { answer, text } = await ask(url, client);
    expect(callsOf(answer.items)).toMatchObject([{ arguments: JSON.stringify(look.input), complete: true }]);
    expect(text).not.toContain("__unparsed");
    expect(model.requests).toHaveLength(2);
  },
);

test("a model that insists is refused in words after three rounds", async () => {
  const model = await scripted([{ calls: [remove] }, { calls: [remove] }, { calls: [remove] }]);
  const url = await gateway({ routes: target(model.baseUrl), judge: noRain, enforce: true });
  const { answer, text } = await ask(url, "chat");
  expect(callsOf(answer.items)).toEqual([]);
  expect(answer.finish).toBe("stop");
  expect(text).toContain("refused by policy");
  expect(model.requests).toHaveLength(3);
});

test("a conversation is one journal: what is new is written, results of the client's tools too", async () => {
  const stateDir = tempFolder("gateway");
  const end = { usage: { input: 10, output: 5 } };
  const model = await scripted([
    { calls: [{ ...look, id: "c1" }], end },
    { text: "Rain.", end },
    { text: "Still rain." },
  ]);
  const options = { routes: target(model.baseUrl), stateDir };
  const url = await gateway(options);
  const headers = { "x-session-id": "one" };
  const first = [{ role: "user", content: "hi" }];
  const made = {
    role: "assistant",
    content: null,
    tool_calls: [{ id: "c1", type: "function", function: { name: "weather", arguments: JSON.stringify(look.input) } }],
  };
  const second = [...first, made, { role: "tool", tool_call_id: "c1", content: "rain" }];
  await ask(url, "chat", question("chat", true), headers);
  await ask(url, "chat", { ...question("chat", true), messages: second }, headers);
  const [session] = listSessions(stateDir);
  const types = () => readJournal(session?.path ?? "").records.map(({ type }) => type);
  expect(types()).toEqual([
    "session.started",
    "item.added",
    "request.sent",
    "item.added",
    "usage.updated",
    "call.ended",
    "request.sent",
    "item.added",
    "usage.updated",
  ]);
});

test("two conversations at once are never mixed up", async () => {
  const echo = (request: { readonly input: readonly unknown[] }) => ({ text: JSON.stringify(request.input.at(0)) });
  const model = await scripted(Array.from({ length: 40 }, () => echo));
  const url = await gateway({ routes: target(model.baseUrl), stateDir: tempFolder("gateway") });
  const replies = await Promise.all(
    Array.from({ length: 40 }, async (_, at) => {
      const word = `word-${at}-`;
      const { text } = await ask(
        url,
        (["chat", "messages", "responses", "gemini"] as const)[at % 4]!,
        question((["chat", "messages", "responses", "gemini"] as const)[at % 4]!, true, word),
      );
      return (
        text.includes(word) &&
        !Array.from({ length: 40 }, (__, other) => other).some(
          (other) => other !== at && text.includes(`word-${other}-`),
        )
      );
    }),
  );
  expect(replies.every(Boolean)).toBe(true);
});
