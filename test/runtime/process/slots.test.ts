import fc from "fast-check";
import { expect, test } from "vitest";
import { createSlots } from "../../../src/runtime/process/slots.ts";

const never = new AbortController().signal;
const tick = () => new Promise<void>((resolve) => setImmediate(resolve));

test("never more than the limit run, nobody is forgotten, and a place goes to whoever has the fewest", async () => {
  const owners = fc.array(fc.constantFrom("anna", "ben", "cleo"), { minLength: 1, maxLength: 25 });
  await fc.assert(
    fc.asyncProperty(owners, fc.integer({ min: 1, max: 4 }), async (asking, limit) => {
      const slots = createSlots(limit);
      const running: { readonly owner: string; readonly leave: () => void }[] = [];
      const count = (owner: string) => running.filter((one) => one.owner === owner).length;
      const waiting: string[] = [];
      for (const owner of asking) {
        waiting.push(owner);
        void slots.take(owner, never).then((leave) => {
          waiting.splice(waiting.indexOf(owner), 1);
          running.push({ owner, leave });
        });
      }
      await tick();
      let ended = 0;
      while (running.length > 0) {
        expect(running.length).toBeLessThanOrEqual(limit);
        expect(waiting.length === 0 || running.length === limit).toBe(true);
        running.shift()?.leave();
        ended++;
        const fewest = Math.min(...waiting.map(count));
        const before = running.length;
        await tick();
        const [came] = running.slice(before);
        if (came !== undefined) expect(count(came.owner) - 1).toBe(fewest);
      }
      expect(ended).toBe(asking.length);
    }),
  );
});

test("whoever is stopped while it waits takes no slot, and leaving twice frees one slot only", async () => {
  const slots = createSlots(1);
  const leave = await slots.take("anna", never);
  const stop = new AbortController();
  const stopped = slots.take("ben", stop.signal);
  const later = slots.take("cleo", never);
  stop.abort(new Error("stopped"));
  await expect(stopped).rejects.toThrow("stopped");
  await expect(slots.take("ben", stop.signal)).rejects.toThrow("stopped");
  leave();
  leave();
  const last = await later;
  let came = false;
  void slots.take("anna", never).then(() => (came = true));
  await tick();
  expect(came).toBe(false);
  last();
  await tick();
  expect(came).toBe(true);
});
