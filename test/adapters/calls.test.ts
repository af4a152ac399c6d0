/** What all adapters share: a call is asked about, agreed to and run once, and belongs to one conversation. */
import { expect, onTestFinished, test } from "vitest";
import { createHostCalls } from "../../src/adapters/calls.ts";
import { createCallStore } from "../../src/store/call-store.ts";
import { createThree } from "./three-tools.ts";

// Some servers number the calls of every answer from zero.
const call = { id: "call_0", name: "publish", input: { text: "hello" } };

test("the yes of one conversation, and its result, are no other's, though the calls are alike", async () => {
  const { engine, runs } = createThree();
  onTestFinished(() => engine.close());
  const store = createCallStore();
  const calls = (id: string) => createHostCalls(engine.conversation({ id }), { store });
  const [one, other] = [calls("one"), calls("other")];
  expect(await one.question(call)).toBeDefined();
  expect(await one.run(call, { approved: true })).toMatchObject({ ok: true });
  expect(await other.run(call, { approved: true })).toMatchObject({ ok: false, code: "needs_approval" });
  expect(runs.publish).toEqual(["hello"]);
  // A later process names its conversations alike, and finds what was kept.
  expect(await calls("one").run(call, { approved: true })).toMatchObject({ ok: true });
  expect(runs.publish).toEqual(["hello"]);
});
