import { expect, test } from "vitest";
import { anySignal } from "../../src/base/signal.ts";
import { whileCollecting } from "../garbage.ts";

const aborted = (signal: AbortSignal) =>
  new Promise<unknown>((resolve) => signal.addEventListener("abort", () => resolve(signal.reason), { once: true }));

test("a time limit among joined signals ends them, although nothing else refers to it", async () => {
  const turn = new AbortController();
  const reason = await whileCollecting(() => aborted(anySignal([turn.signal, AbortSignal.timeout(200)])));
  expect(reason).toMatchObject({ name: "TimeoutError" });
});

test("so does one in joined signals that are joined again", async () => {
  const turn = new AbortController();
  const reason = await whileCollecting(() =>
    aborted(anySignal([turn.signal, anySignal([AbortSignal.timeout(200), new AbortController().signal])])),
  );
  expect(reason).toMatchObject({ name: "TimeoutError" });
});

test("the first of them gives the reason; one that has aborted already does so at once", async () => {
  const [one, other] = [new AbortController(), new AbortController()];
  const joined = anySignal([one.signal, other.signal]);
  other.abort("second");
  one.abort("first");
  expect([joined.aborted, joined.reason]).toEqual([true, "second"]);
  expect(anySignal([one.signal]).reason).toBe("first");
});
