/** What a diff may look at: regular files of a bearable size, never what a link, a pipe or a device leads to. */
import { execFileSync } from "node:child_process";
import { chownSync, mkdirSync, readdirSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { maxReadBytes, readSides, readSmall } from "../../../src/runtime/effects/contents.ts";
import { countEffects, readRuns, toRun, writeRecord } from "../../../src/runtime/effects/store.ts";
import type { RunRecord } from "../../../src/runtime/effects/store.ts";
import type { Effect } from "../../../src/spec/effects.ts";
import { freshFolder } from "../sandbox/folder.ts";

const textOf = (bytes: Uint8Array | undefined) => (bytes === undefined ? undefined : Buffer.from(bytes).toString());

test("a file is read up to the bound, and nothing else is", () => {
  const folder = freshFolder();
  const at = (name: string) => join(folder, name);
  writeFileSync(at("file"), "content");
  writeFileSync(at("empty"), "");
  writeFileSync(at("large"), "");
  truncateSync(at("large"), maxReadBytes);
  expect([textOf(readSmall(at("file"))), textOf(readSmall(at("empty")))]).toEqual(["content", ""]);
  expect(readSmall(at("large"))?.length).toBe(maxReadBytes);
  truncateSync(at("large"), maxReadBytes + 1);
  symlinkSync("file", at("link"));
  mkdirSync(at("folder"));
  execFileSync("mkfifo", [at("pipe")]);
  for (const path of [at("large"), at("link"), at("folder"), at("pipe"), at("gone"), "/dev/zero"])
    expect([path, readSmall(path)]).toEqual([path, undefined]);
});

test("whatever is looked at, no descriptor stays open", () => {
  const folder = freshFolder();
  writeFileSync(join(folder, "file"), "content");
  const before = readdirSync("/proc/self/fd").length;
  for (let round = 0; round < 20; round++)
    for (const name of ["file", "gone", ".", "/dev/null"]) readSmall(join(folder, name));
  expect(readdirSync("/proc/self/fd").length).toBe(before);
});

test("both sides of an effect are those of the root it lies in", () => {
  const folder = freshFolder();
  const [first, second, run] = ["first", "second", "run"].map((name) => join(folder, name)) as [string, string, string];
  for (const path of [first, second, join(run, "u0"), join(run, "u1")]) mkdirSync(path, { recursive: true });
  for (const [path, text] of [
    [join(first, "a"), "first before"],
    [join(second, "a"), "second before"],
    [join(run, "u0", "a"), "first after"],
    [join(run, "u1", "a"), "second after"],
  ] as const)
    writeFileSync(path, text);
  const sides = { folder: run, roots: [first, second] };
  const read = (path: string, kind: Effect["kind"]) => {
    const { before, after } = readSides({ path, kind, type: "file" }, sides);
    return [textOf(before), textOf(after)];
  };
  expect(read("a", "changed")).toEqual(["first before", "first after"]);
  expect(read("a", "added")).toEqual([undefined, "first after"]);
  expect(read("a", "removed")).toEqual(["first before", undefined]);
  expect(read(join(second, "a"), "changed")).toEqual(["second before", "second after"]);
  expect(read(`${second}-not`, "changed")).toEqual([undefined, undefined]);
  expect(readSides({ path: "a", kind: "changed", type: "file" }, undefined)).toEqual({});
});

const record = (run: string, at: number): Omit<RunRecord, "state" | "since"> => ({
  run,
  at,
  command: ["true"],
  cwd: "/",
  roots: ["/ws"],
  kept: "all",
  counts: { added: 0, changed: 0, removed: 0, mode: 0 },
  bytes: 1,
});

test("runs are told oldest first, with the state that stands beside them; what was never kept is none", () => {
  const place = freshFolder();
  for (const [name, at] of [
    ["later", 20],
    ["early", 10],
    ["unkept", 5],
    ["broken", 1],
  ] as const) {
    mkdirSync(join(place, name));
    writeRecord(join(place, name), record(name, at));
    if (name !== "unkept") writeFileSync(join(place, name, "state"), name === "early" ? "undone" : "kept");
  }
  writeFileSync(join(place, "broken", "run.json"), "{");
  writeFileSync(join(place, "file"), "");
  expect(readRuns(place).map(({ run, state }) => [run, state])).toEqual([
    ["early", "undone"],
    ["later", "kept"],
  ]);
  expect(readRuns(join(place, "gone"))).toEqual([]);
});

test("a run is handled as the one who made it: root takes the owner's place, others have only their own", () => {
  const place = freshFolder();
  mkdirSync(join(place, "r1"));
  const told = () => toRun({ ...record("r1", 1), state: "kept", since: 0 }, place);
  expect(told()).toEqual({ id: "r1", folder: join(place, "r1"), roots: ["/ws"] });
  if (process.getuid?.() !== 0) return;
  chownSync(join(place, "r1"), 65534, 65533);
  expect(told()).toEqual({ id: "r1", folder: join(place, "r1"), roots: ["/ws"], uid: 65534, gid: 65533 });
});

test("files are counted, and folders only where their own mode changed", () => {
  const effect = (kind: Effect["kind"], type: Effect["type"]): Effect => ({ path: "x", kind, type });
  expect(
    countEffects([
      effect("added", "file"),
      effect("added", "folder"),
      effect("removed", "file"),
      effect("removed", "folder"),
      effect("changed", "file"),
      effect("mode", "folder"),
      effect("mode", "file"),
    ]),
  ).toEqual({ added: 1, changed: 1, removed: 1, mode: 2 });
});
