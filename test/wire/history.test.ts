import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { text } from "../../src/base/content.ts";
import type { CallItem, Item, MessageItem, ResultItem } from "../../src/spec/model.ts";
import { noResult, prepareHistory } from "../../src/wire/history.ts";

const say = (role: MessageItem["role"], words: string): MessageItem => ({
  type: "message",
  role,
  content: [text(words)],
});
const call = (id: string): CallItem => ({
  type: "call",
  kind: "function",
  id,
  name: "t",
  arguments: "{}",
  complete: true,
});
const result = (callId: string, words = callId): ResultItem => ({
  type: "result",
  kind: "function",
  callId,
  content: [text(words)],
  ok: true,
});

/** `A(x y)>x y` is a model's turn with calls x and y and their results; `u` a user's message. */
function shape(input: readonly Item[], instructions?: string): string {
  const { system, turns } = prepareHistory(
    { input, ...(instructions === undefined ? {} : { instructions }) },
    { wire: "chat" },
  );
  const words = turns.map((turn) => {
    if (turn.role !== "assistant") return turn.role[0];
    const said = turn.items.map((item) => (item.type === "call" ? item.id : item.type));
    return `A(${said.join(" ")})${turn.results.length > 0 ? `>${turn.results.map((one) => one.callId).join(" ")}` : ""}`;
  });
  return [...(system === undefined ? [] : [`s[${system}]`]), ...words].join(" ");
}

describe("the history as wires with turns want it", () => {
  test("calls of one turn stand together, their results directly behind them in the order of the calls", () => {
    expect(shape([say("user", "hi"), call("x"), call("y"), result("y"), result("x")])).toBe("u A(x y)>x y");
  });
  test("a call after an output starts a new turn", () => {
    expect(shape([call("x"), result("x"), call("y"), result("y")])).toBe("A(x)>x A(y)>y");
  });
  test("text after a call belongs to the same turn", () => {
    expect(shape([say("assistant", "a"), call("x"), say("assistant", "b"), result("x")])).toBe(
      "A(message x message)>x",
    );
  });
  test("a message between a call and its result goes behind the group", () => {
    expect(shape([call("x"), say("user", "wait"), result("x")])).toBe("A(x)>x u");
  });
  test("a call that was never answered gets an answer that says so", () => {
    const { turns } = prepareHistory({ input: [call("x"), say("user", "go on")] }, { wire: "chat" });
    expect(turns[0]).toMatchObject({ results: [{ callId: "x", ok: false, content: [{ text: noResult }] }] });
  });
  test("results nobody asked for are dropped", () => {
    expect(shape([say("user", "hi"), result("z"), say("assistant", "a")])).toBe("u A(message)");
  });
  test("ids that come back in a later turn are told apart", () => {
    expect(shape([call("x"), result("x"), call("x"), result("x")])).toBe("A(x)>x A(x_2)>x_2");
  });
  test("all leading instructions are one text, later ones are said by the user", () => {
    expect(shape([say("developer", "b"), say("system", "c"), say("user", "hi"), say("developer", "d")], "a")).toBe(
      "s[a\n\nb\n\nc] u u",
    );
  });
  test("reasoning belongs to the turn that follows it", () => {
    expect(shape([call("x"), result("x"), { type: "reasoning", text: "hm" }, call("y"), result("y")])).toBe(
      "A(x)>x A(reasoning y)>y",
    );
  });
  test("items of other wires are left out", () => {
    expect(
      shape([
        say("user", "hi"),
        { type: "other", wire: "responses", raw: {} },
        { type: "server_call", name: "w", wire: "messages", raw: {} },
      ]),
    ).toBe("u");
  });
});

test("whatever the history, every call has one result right behind its turn and no id comes twice", () => {
  const id = fc.constantFrom("a", "a_2", "a_3", "b");
  const item: fc.Arbitrary<Item> = fc.oneof(
    id.map(call),
    id.map((one) => result(one)),
    fc.constantFrom("user", "assistant", "system").map((role) => say(role as MessageItem["role"], "x")), // the three listed
    fc.constant<Item>({ type: "reasoning", text: "hm" }),
  );
  fc.assert(
    fc.property(fc.array(item, { maxLength: 20 }), (input) => {
      const { turns } = prepareHistory({ input }, { wire: "chat" });
      const seen: string[] = [];
      for (const turn of turns) {
        if (turn.role !== "assistant") continue;
        const calls = turn.items.flatMap((one) => (one.type === "call" ? [one.id] : []));
        expect(turn.results.map((one) => one.callId)).toEqual(calls);
        seen.push(...calls);
      }
      expect(new Set(seen).size).toBe(seen.length);
      expect(seen.length).toBe(input.filter((one) => one.type === "call").length);
    }),
  );
});
