/** Who is told of what happens, and how pieces of one text become one. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { JsonObject } from "../../src/base/json.ts";
import { createListeners } from "../../src/store/listeners.ts";
import { joinLive } from "../../src/store/live-events.ts";
import type { StoreChange } from "../../src/store/session-store.ts";

const change = (id: string): StoreChange => ({ type: "session", id, tenant: "t" });

describe("listeners", () => {
  test("whoever watches all hears all, whoever watches one hears it alone, whatever comes and goes", () => {
    const step = fc.oneof(
      fc.record({ do: fc.constant("watch" as const), id: fc.option(fc.constantFrom("a", "b"), { nil: undefined }) }),
      fc.record({ do: fc.constant("stop" as const), place: fc.nat(5) }),
      fc.record({ do: fc.constant("tell" as const), id: fc.constantFrom("a", "b", "c") }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
        const listeners = createListeners();
        const watching: { id: string | undefined; heard: string[]; due: string[]; stop: () => void; on: boolean }[] =
          [];
        for (const one of steps) {
          if (one.do === "watch") {
            const heard: string[] = [];
            const stop = listeners.watch(({ id }) => void heard.push(id), one.id);
            watching.push({ id: one.id, heard, due: [], stop, on: true });
          } else if (one.do === "stop") {
            const chosen = watching[one.place];
            chosen?.stop();
            if (chosen) chosen.on = false;
          } else {
            for (const each of watching)
              if (each.on && (each.id === undefined || each.id === one.id)) each.due.push(one.id);
            listeners.tell(change(one.id));
          }
          expect(listeners.isEmpty).toBe(!watching.some(({ on }) => on));
        }
        for (const { heard, due } of watching) expect(heard).toEqual(due);
        listeners.clear();
        expect(listeners.isEmpty).toBe(true);
      }),
    );
  });

  test("one who stops late, after others began anew, takes nothing away from them", () => {
    const listeners = createListeners();
    const heard: string[] = [];
    const first = listeners.watch(() => undefined, "a");
    first();
    listeners.watch(({ id }) => void heard.push(id), "a");
    first();
    listeners.tell(change("a"));
    expect(heard).toEqual(["a"]);
  });
});

describe("live events", () => {
  const delta = (text: string, more: JsonObject = {}): JsonObject => ({
    type: "item.delta",
    index: 0,
    field: "text",
    delta: text,
    ...more,
  });
  const output = (text: string, more: JsonObject = {}): JsonObject => ({
    type: "exec.output",
    id: "c",
    stream: "stdout",
    text,
    ...more,
  });

  test("pieces of one text are joined without a loss, in any grouping", () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: "binary" }), { minLength: 2 }), (pieces) => {
        const joined = pieces.map((piece) => delta(piece)).reduce((a, b) => joinLive(a, b)!);
        expect(joined).toEqual(delta(pieces.join("")));
        const told = pieces.map((piece) => output(piece)).reduceRight((b, a) => joinLive(a, b)!);
        expect(told).toEqual(output(pieces.join("")));
      }),
    );
  });

  test.each([
    ["another item", delta("a"), delta("b", { index: 1 })],
    ["another field", delta("a"), delta("b", { field: "arguments" })],
    ["another part", delta("a"), delta("b", { part: 1 })],
    ["another stream", output("a"), output("b", { stream: "stderr" })],
    ["another call", output("a"), output("b", { id: "d" })],
    ["another kind", delta("a"), output("b")],
    [
      "progress of another call",
      { type: "call.progress", id: "c", progress: "1" },
      { type: "call.progress", id: "d", progress: "2" },
    ],
    [
      "progress with data",
      { type: "call.progress", id: "c", progress: "1" },
      { type: "call.progress", id: "c", progress: { data: 1 } },
    ],
    ["what has no pieces", { type: "warning", message: "a" }, { type: "warning", message: "b" }],
  ])("pieces of %s stay apart", (_what, a, b) => {
    expect(joinLive(a, b)).toBeUndefined();
  });

  test("of progress in words only the last is worth telling", () => {
    const [first, last] = ["1 of 2", "2 of 2"].map((progress) => ({ type: "call.progress", id: "c", progress }));
    expect(joinLive(first!, last!)).toBe(last);
    expect(joinLive({ ...first!, progress: { data: 1 } }, last!)).toBe(last);
  });
});
