/** What is told of a held command: to the journal in bounds, to the model only what is not as it thinks. */
import { expect, test } from "vitest";
import { chosenPaths, heldPart, prunedWords, remarksOn, summary } from "../../src/result/effects.ts";
import type { Ran } from "../../src/spec/call.ts";
import type { Effect, Effects, Settled } from "../../src/spec/effects.ts";

const file = (path: string, kind: Effect["kind"]): Effect => ({ path, kind, type: "file" });
const effects = (list: readonly Effect[], more: Partial<Effects> = {}): Effects => ({
  run: "run_1",
  list,
  lines: [],
  ...more,
});
const settled = (kept: Settled["kept"], conflicts: readonly string[] = []) =>
  ({ run: "run_1", kept, conflicts }) as unknown as Settled;

test("a long list is cut, but never its deletions, and the counts are those of the whole", () => {
  const list = [
    ...Array.from({ length: 300 }, (_, n) => file(`a${n}`, "added")),
    ...Array.from({ length: 250 }, (_, n) => file(`r${n}`, "removed")),
  ];
  const { counts, entries } = summary(effects(list));
  expect(counts).toEqual({ added: 300, changed: 0, removed: 250, mode: 0 });
  expect(entries.filter(({ kind }) => kind === "removed")).toHaveLength(250);
  expect(entries.filter(({ kind }) => kind === "added")).toHaveLength(200);
  const short = list.slice(0, 200);
  expect(summary(effects(short)).entries).toEqual(short);
});

test("conflicts are listed by their paths", () => {
  const list = [file("a", "changed"), { ...file("b", "changed"), conflict: true as const }];
  expect(summary(effects(list)).conflicts).toEqual(["b"]);
});

test("the end of a call tells what was held only once it is settled", () => {
  const list = [file("a", "added")];
  expect(heldPart({ effects: effects(list) } as Ran)).toEqual({});
  expect(heldPart({} as Ran)).toEqual({});
  expect(heldPart({ effects: effects(list), settled: settled("all") } as Ran)).toEqual({
    effects: { run: "run_1", kept: "all", conflicts: [], list },
  });
});

test("the model is told what of its changes is not there, and nothing where all of it is", () => {
  const list = [file("a", "added")];
  expect(remarksOn(settled("all"), effects(list))).toEqual([]);
  expect(remarksOn(settled("none"), effects([]))).toEqual([]);
  expect(remarksOn(settled("none"), effects(list))).toEqual(["Nothing of what the command changed was kept."]);
  expect(remarksOn(settled("part"), effects(list))).toEqual([expect.stringContaining("Only a part")]);
  expect(remarksOn(settled("all", ["a"]), effects(list))).toEqual([
    "Not kept, because somebody else changed it meanwhile: a.",
  ]);
  const many = Array.from({ length: 21 }, (_, n) => `f${n}`);
  expect(remarksOn(settled("all", many), effects(list))[0]).toMatch(/f19, ….$/);
  expect(remarksOn(settled("all", many.slice(1)), effects(list))[0]).toMatch(/f20.$/);
  expect(remarksOn(settled("none"), effects([], { direct: "links cannot be moved" }))).toEqual([
    expect.stringContaining("links cannot be moved"),
  ]);
});

/** What a person chooses is what was shown. */
const lines = ["a", "b", "c"].map((path) => ({ mark: "+", text: path, paths: [path, `${path}/x`] }) as const);

test.each<[readonly string[], readonly string[] | undefined]>([
  [["1"], ["a", "a/x"]],
  [["1-2"], ["a", "a/x", "b", "b/x"]],
  [
    ["3", "1"],
    ["c", "c/x", "a", "a/x"],
  ],
  [
    ["2", "2-2"],
    ["b", "b/x"],
  ],
  [["0"], undefined],
  [["4"], undefined],
  [["2-4"], undefined],
  [["2-1"], undefined],
  [["1", "x"], undefined],
  [["-1"], undefined],
  [[], undefined],
])("lines %j: %j", (words, paths) => {
  expect(chosenPaths(words, lines)).toEqual(paths);
});

test("the runs that made room are counted", () => {
  expect(prunedWords(["r1"])).toContain("the older run r1");
  expect(prunedWords(["r1", "r2"])).toContain("2 older runs");
});
