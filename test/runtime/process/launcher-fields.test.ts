/** What the launcher is told about a command, field by field, as native/request.c reads it. */
import { expect, test } from "vitest";
import { encodeLaunch, encodeWrapper } from "../../../src/runtime/process/launcher-protocol.ts";
import type { Confined } from "../../../src/runtime/process/child.ts";
import { unconfined } from "./spawners.ts";

const sink = { liveBytes: 10, tailBytes: 20, graceMs: 30 };
const launch = (more: Partial<Confined> = {}): Confined =>
  unconfined({ argv: ["sh", "-c", "ä"], cwd: "/w", env: { A: "1" }, ...more });

/** The fields of a request by their letter, in order. */
function fieldsOf(request: Buffer): Readonly<Record<string, readonly Buffer[]>> {
  const found: Record<string, Buffer[]> = {};
  for (let at = 0; at < request.length;) {
    const [tag, size] = [String.fromCharCode(request[at] ?? 0), request.readUInt32LE(at + 1)];
    (found[tag] ??= []).push(request.subarray(at + 5, at + 5 + size));
    at += 5 + size;
  }
  return found;
}
const fields = (more: Partial<Confined> = {}, told: Parameters<typeof encodeLaunch>[1] = sink, wrapper?: Buffer) =>
  fieldsOf(encodeLaunch(launch(more), told, wrapper));
const texts = (list: readonly Buffer[] = []) => list.map((bytes) => bytes.toString());
const longs = (list: readonly Buffer[] = []) =>
  list.map((bytes) => Array.from({ length: bytes.length / 8 }, (_, index) => Number(bytes.readBigUInt64LE(index * 8))));

test("words, folder, environment and what is kept of the output", () => {
  const told = fields();
  expect(texts(told["a"])).toEqual(["sh\0", "-c\0", "ä\0"]);
  expect(texts(told["c"])).toEqual(["/w\0"]);
  expect(texts(told["e"])).toEqual(["A=1\0"]);
  expect([...longs(told["b"]), ...longs(told["T"])]).toEqual([[10], [20]]);
  expect(told["g"]?.[0]?.readUInt32LE()).toBe(30);
  expect(Object.keys(told).toSorted()).toEqual(["T", "a", "b", "c", "e", "g"]);
  const kept = fields({}, { ...sink, keep: { path: "/k", bytes: 99 } })["k"]?.[0];
  expect([kept?.readBigUInt64LE(), kept?.subarray(8).toString()]).toEqual([99n, "/k\0"]);
});

test("an input or a terminal is announced only where there is one", () => {
  expect(fields({ stdin: "" })["i"]).toHaveLength(1);
  const terminal = fields({ tty: { columns: 70_000, rows: 24 } });
  expect(terminal["i"]).toHaveLength(1);
  expect([terminal["t"]?.[0]?.readUInt16LE(0), terminal["t"]?.[0]?.readUInt16LE(2)]).toEqual([0xffff, 24]);
});

test("the user it runs as goes to whoever starts it: the wrapper if there is one", () => {
  const numbers = (bytes: Buffer | undefined) => [bytes?.readUInt32LE(0), bytes?.readUInt32LE(4)];
  expect(numbers(fields({ uid: 7, gid: 8 })["u"]?.[0])).toEqual([7, 8]);
  expect(numbers(fields({ uid: 7 })["u"]?.[0])).toEqual([7, 7]);
  expect(numbers(fields({ uid: 0 })["u"]?.[0])).toEqual([0, 0]);
  const wrapper = encodeWrapper(launch({ uid: 7, wrapper: ["bwrap", "--x"], stamp: "stamp" }), 3);
  const inside = fields({ uid: 7 }, sink, wrapper);
  expect(inside["u"]).toBeUndefined();
  expect(inside["H"]?.[0]?.equals(wrapper)).toBe(true);
  const outer = fieldsOf(wrapper);
  expect(numbers(outer["u"]?.[0])).toEqual([7, 7]);
  expect(texts(outer["a"])).toEqual(["bwrap\0", "--x\0"]);
  expect(texts(outer["n"])).toEqual(["stamp\0"]);
});

test("a sandbox is made ahead only where the same one can serve again", () => {
  const ahead = (more: Partial<Confined>) => fieldsOf(encodeWrapper(launch(more), 3))["w"]?.[0]?.readUInt32LE();
  expect([ahead({ reusable: true }), ahead({ reusable: false }), ahead({})]).toEqual([3, 0, 0]);
});

test("descriptors carry their number and their bytes", () => {
  const [given] = fields({ fds: [{ fd: 9, data: Buffer.from("x") }] })["d"] ?? [];
  expect([given?.[0], given?.subarray(1).toString()]).toEqual([9, "x"]);
});

test("limits of a process: files, descriptors, and processes counted as the kernel counts them there", () => {
  const limits = { processes: 10, fileBytes: 20, openFiles: 30 };
  const read = (more: Partial<Confined>) =>
    (fields(more)["r"] ?? []).map((bytes) => [
      bytes.readUInt32LE(),
      Number(bytes.readBigUInt64LE(4)),
      Number(bytes.readBigUInt64LE(12)),
    ]);
  // Outside a namespace of its own, all other processes of the user count too: those come on top.
  expect(read({ limits })).toEqual([
    [0x100, 74, 74],
    [1, 20, 20],
    [7, 30, 30],
  ]);
  expect(read({ limits, wrapper: ["bwrap"] })[0]).toEqual([6, 74, 74]);
  expect(read({})).toEqual([]);
  expect(read({ limits: { fileBytes: 20 } })).toEqual([[1, 20, 20]]);
});

test("limits of the whole command: processes, memory, temp space, and where that is", () => {
  const caps = (more: Partial<Confined>) => fields(more)["m"]?.[0];
  expect(caps({})).toBeUndefined();
  expect(caps({ limits: { fileBytes: 5 } })).toBeUndefined();
  const told = caps({ limits: { memoryBytes: 5.7 }, env: { TMPDIR: "/t" } });
  expect(longs([told?.subarray(0, 24) ?? Buffer.alloc(0)])).toEqual([[0, 5, 0]]);
  expect(told?.subarray(24).toString()).toBe("/t\0");
  const some = caps({ limits: { processes: 1, tempBytes: 3 } });
  expect(longs([some?.subarray(0, 24) ?? Buffer.alloc(0)])).toEqual([[1, 0, 3]]);
  expect(some?.subarray(24).toString()).toBe("/tmp\0");
});

test("Landlock rules and the filter go with them", () => {
  const landlock = {
    handledFs: 1,
    handledNet: 2,
    scoped: 3,
    rules: [{ path: "/w", access: 4 }],
    netRules: [{ port: 80, access: 5 }],
    held: ["/h"],
    seccomp: Buffer.from("f"),
  };
  const told = fields({ landlock });
  expect(longs(told["L"])).toEqual([[1, 2, 3]]);
  expect([told["l"]?.[0]?.readBigUInt64LE(), told["l"]?.[0]?.subarray(8).toString()]).toEqual([4n, "/w\0"]);
  expect(longs(told["p"])).toEqual([[80, 5]]);
  expect([texts(told["h"]), texts(told["s"])]).toEqual([["/h\0"], ["f"]]);
});

test("what no command may start: the rule, its program, its words and options, and the files it is known by", () => {
  const starts = {
    filter: Buffer.from("f"),
    rules: [
      {
        rule: "deny command git push",
        program: ["git", "hub"],
        words: [
          { oneOf: ["push", "p"] },
          {
            options: [
              {
                text: "-rf",
                groups: [
                  { letters: "r", names: ["recursive"] },
                  { letters: "f", names: [] },
                ],
              },
            ],
          },
        ],
      },
    ],
    files: [
      { fingerprint: 513n, isHidden: true, name: "git", path: "/usr/bin/git" },
      { fingerprint: 1n, isHidden: false, name: "hub", path: "/usr/bin/hub" },
    ],
  };
  const told = fields({ starts });
  expect(texts(told["s"])).toEqual(["f"]);
  expect(texts(told["x"])[0]?.split("\0")).toEqual([
    "ndeny command git push",
    "pgit",
    "phub",
    "w",
    "=push",
    "=p",
    "o",
    "t-rf",
    "lr",
    "grecursive",
    "lf",
    "",
  ]);
  const files = (told["y"] ?? []).map((bytes) => [bytes.readBigUInt64LE(), bytes[8], bytes.subarray(9).toString()]);
  expect(files).toEqual([
    [513n, 1, "git\0/usr/bin/git\0"],
    [1n, 0, "hub\0/usr/bin/hub\0"],
  ]);
  expect(fields({ starts: { rules: [], files: [] } })["s"]).toBeUndefined();
});

test("a word with a NUL is refused, wherever it stands", () => {
  for (const more of [{ argv: ["a\0b"] }, { cwd: "/\0" }, { env: { A: "\0" } }])
    expect(() => fields(more)).toThrow("NUL");
});
