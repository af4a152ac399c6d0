/** The laws of a dispatcher, for every one there is. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Dispatcher } from "../../src/serve/index.ts";

export interface TestDispatcher {
  readonly dispatcher: Dispatcher;
  close(): Promise<void>;
}

/** `open` makes one that runs two sessions at once, and one of each tenant. */
export function dispatcherLaws(name: string, open: () => Promise<TestDispatcher>): void {
  describe(name, () => {
    let opened: TestDispatcher;
    /** What runs now, and what has run, in its order. */
    const running = new Map<string, () => void>();
    const began: string[] = [];
    let holds = (_id: string) => false;
    beforeAll(async () => {
      opened = await open();
      await opened.dispatcher.start(async (id) => {
        began.push(id);
        if (id.startsWith("bad")) throw new Error("this one fails");
        if (holds(id)) await new Promise<void>((resolve) => running.set(id, resolve));
        running.delete(id);
      });
    });
    afterAll(() => opened.close());
    const patience = { timeout: 30_000 };

    test("a wake is run, and one that fails harms no other", async () => {
      await opened.dispatcher.wake("bad-1", "a");
      await opened.dispatcher.wake("good-1", "a");
      await expect.poll(() => began, patience).toEqual(expect.arrayContaining(["bad-1", "good-1"]));
    });

    test("a wake for later is not run before its time", async () => {
      const at = Date.now() + 700;
      await opened.dispatcher.wake("later", "a", { at });
      await opened.dispatcher.wake("now", "a");
      await expect.poll(() => began, patience).toContain("later");
      expect(began.indexOf("now")).toBeLessThan(began.indexOf("later"));
      expect(Date.now()).toBeGreaterThanOrEqual(at);
    });

    test("a tenant with many sessions does not hold up one with few", async () => {
      holds = (id) => id.startsWith("fair");
      for (let n = 0; n < 12; n++) await opened.dispatcher.wake(`fair-a-${n}`, "a");
      await expect.poll(() => running.size, patience).toBe(1);
      await opened.dispatcher.wake("fair-b", "b");
      // One place of the two is never the first tenant's.
      await expect.poll(() => [...running.keys()], patience).toContain("fair-b");
      expect([...running.keys()].filter((id) => id.startsWith("fair-a"))).toHaveLength(1);
      holds = () => false;
      await expect
        .poll(() => {
          for (const end of running.values()) end();
          return began.filter((id) => id.startsWith("fair-a")).length;
        }, patience)
        .toBe(12);
    });

    test("stop waits for what runs", async () => {
      holds = (id) => id === "last";
      await opened.dispatcher.wake("last", "c");
      await expect.poll(() => running.has("last"), patience).toBe(true);
      let isStopped = false;
      const stopping = opened.dispatcher.stop().then(() => (isStopped = true));
      await new Promise((resolve) => setTimeout(resolve, 50));
      expect(isStopped).toBe(false);
      running.get("last")!();
      await stopping;
    });
  });
}
