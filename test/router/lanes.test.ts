import fc from "fast-check";
import { expect, test } from "vitest";
import { createLanes } from "../../src/router/runner.ts";
import type { Asked, Ended } from "../../src/spec/call.ts";

const ask = (name: string): Asked => ({ id: name, name, kind: "function", arguments: "{}", askedAt: 0 });
const end = (asked: Asked): Ended => ({ ...asked, ok: true, content: [], endedAt: 0, durationMs: 0 });

/** Lanes whose calls end when told to, and a record of what runs at once. */
function createProbe(ready?: Promise<void>) {
  const running = new Set<string>();
  const overlaps: string[][] = [];
  const finish = new Map<string, (error?: Error) => void>();
  const lanes = createLanes({
    isParallel: ({ name }) => name.startsWith("look"),
    isMutating: ({ name }) => name.startsWith("change"),
    run: (asked) =>
      new Promise((resolve, reject) => {
        running.add(asked.name);
        overlaps.push([...running]);
        finish.set(asked.name, (error) => {
          running.delete(asked.name);
          if (error) reject(error);
          else resolve(end(asked));
        });
      }),
    ...(ready ? { ready } : {}),
  });
  return { lanes, running, overlaps, finish };
}

const tick = () => new Promise((resolve) => setTimeout(resolve, 0));

test("calls that only look run together", async () => {
  const { lanes, running } = createProbe();
  for (const name of ["look1", "look2", "look3"]) void lanes.add(ask(name));
  await tick();
  expect([...running]).toEqual(["look1", "look2", "look3"]);
});

test("a call that changes something waits for those before it and holds those after it", async () => {
  const { lanes, running, finish } = createProbe();
  for (const name of ["look1", "change1", "look2"]) void lanes.add(ask(name));
  await tick();
  expect([...running]).toEqual(["look1"]);
  finish.get("look1")!();
  await tick();
  expect([...running]).toEqual(["change1"]);
  finish.get("change1")!();
  await tick();
  expect([...running]).toEqual(["look2"]);
});

test("a call that fails badly does not hold the ones behind it", async () => {
  const { lanes, running, finish } = createProbe();
  const failing = lanes.add(ask("change1"));
  void lanes.add(ask("look1"));
  await tick();
  finish.get("change1")!(new Error("fault"));
  await expect(failing).rejects.toThrow("fault");
  await tick();
  expect([...running]).toEqual(["look1"]);
});

test("until the host says ready, changing calls wait and looking ones do not", async () => {
  let open: () => void = () => undefined;
  const { lanes, running, finish } = createProbe(new Promise<void>((resolve) => (open = resolve)));
  void lanes.add(ask("look1"));
  void lanes.add(ask("change1"));
  await tick();
  expect([...running]).toEqual(["look1"]);
  // Nothing but the host holds the changing call from here on.
  finish.get("look1")!();
  await tick();
  expect([...running]).toEqual([]);
  open();
  await tick();
  expect([...running]).toEqual(["change1"]);
});

test("whatever the order, a changing call never overlaps another call", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.boolean(), { maxLength: 12 }), async (kinds) => {
      const { lanes, overlaps, finish } = createProbe();
      const names = kinds.map((looks, index) => `${looks ? "look" : "change"}${index}`);
      const all = names.map((name) => lanes.add(ask(name)));
      for (let left = names.length; left > 0;) {
        await tick();
        for (const [name, done] of finish) {
          finish.delete(name);
          done();
          left--;
        }
      }
      expect((await Promise.all(all)).map(({ name }) => name)).toEqual(names);
      for (const together of overlaps)
        if (together.length > 1) expect(together.every((name) => name.startsWith("look"))).toBe(true);
    }),
    { numRuns: 40 },
  );
});

test("a call that waits for the host is told of, once before and once after; one that need not wait is not", async () => {
  const told: string[] = [];
  const base = {
    isParallel: () => false,
    isMutating: ({ name }: Asked) => name.startsWith("change"),
    run: async (asked: Asked) => end(asked),
    onWait: ({ name }: Asked, state: string) => told.push(`${name} ${state}`),
  };
  let open = () => {};
  const waiting = createLanes({ ...base, ready: new Promise<void>((resolve) => (open = resolve)) });
  await waiting.add(ask("look1"));
  const changing = waiting.add(ask("change1"));
  await tick();
  expect(told).toEqual(["change1 waiting"]);
  open();
  await changing;
  expect(told).toEqual(["change1 waiting", "change1 released"]);
  await createLanes({ ...base, ready: Promise.resolve() }).add(ask("change2"));
  expect(told).toHaveLength(2);
});

test("a call that gave up its turn for a call of its own goes on only when it has a turn again", async () => {
  const finish = new Map<string, () => void>();
  const log: string[] = [];
  const lanes = createLanes({
    isParallel: ({ name }) => name.startsWith("look"),
    isMutating: () => false,
    async run(asked, inner) {
      log.push(`${asked.name} runs`);
      if (asked.name === "look1") await inner.add(ask("inner"), { signal: new AbortController().signal, depth: 1 });
      else await new Promise<void>((resolve) => finish.set(asked.name, resolve));
      log.push(`${asked.name} done`);
      return end(asked);
    },
  });
  const all = [lanes.add(ask("look1"))];
  await tick();
  all.push(lanes.add(ask("alone")));
  await tick();
  finish.get("inner")!();
  await tick();
  // The one that was in line meanwhile runs alone: the maker of the inner call waits for it.
  expect(log).toEqual(["look1 runs", "inner runs", "inner done", "alone runs"]);
  finish.get("alone")!();
  await Promise.all(all);
  expect(log.slice(4)).toEqual(["alone done", "look1 done"]);
});
