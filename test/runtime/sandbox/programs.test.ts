/** What a rule that denies a program means on this machine: which files are hidden, and what is asked of each start. */
import { chmodSync, mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import {
  createStartJudge,
  findDenied,
  judgesStarts,
  refusedStart,
  shortList,
} from "../../../src/runtime/sandbox/programs.ts";
import type { Grant } from "../../../src/spec/access.ts";
import { launchers } from "../process/spawners.ts";

const folder = mkdtempSync(join(tmpdir(), "callgate-programs-"));
const program = (name: string, text = name) => {
  const path = join(folder, name);
  writeFileSync(path, text);
  chmodSync(path, 0o755);
  return path;
};
const denied = (name: string, words: readonly string[] = []) => ({
  rule: `deny command ${[name, ...words].join(" ")}`,
  program: [name],
  words: words.map((word) => ({ oneOf: [word] })),
});
const inFolder = (paths: readonly string[]) => paths.filter((path) => path.startsWith(folder));

test("a denied program is hidden wherever the path finds it, links followed, and known by its content", () => {
  const real = program("tool-a");
  mkdirSync(join(folder, "bin"));
  symlinkSync(real, join(folder, "bin", "tool-a"));
  const { hidden, known } = findDenied([denied("tool-a")], `relative:${folder}:${folder}/bin`);
  expect(inFolder(hidden)).toEqual([real]);
  expect(known.filter(({ name }) => name === "tool-a")).toMatchObject([{ path: real, isHidden: true }]);
  const copy = findDenied([denied("tool-b")], `${program("tool-b", "tool-a")}/..:${folder}`);
  const [first, second] = [known, copy.known].map((list) => list.find(({ path }) => path.startsWith(folder)));
  expect(first?.fingerprint).toBe(second?.fingerprint);
});

test("a program of which only some words are denied stays there, and is known", () => {
  const path = program("tool-c");
  const { hidden, known } = findDenied([denied("tool-c", ["push"])], folder);
  expect(inFolder(hidden)).toEqual([]);
  expect(known.filter((file) => file.path === path)).toMatchObject([{ name: "tool-c", isHidden: false }]);
});

test("a file that many programs share is not hidden for one of them, unless it is denied itself", () => {
  const box = program("volta-shim");
  symlinkSync(box, join(folder, "tool-d"));
  expect(inFolder(findDenied([denied("tool-d")], folder).hidden)).toEqual([]);
  expect(findDenied([denied("tool-d")], folder).known.find(({ path }) => path === box)?.name).toBe("volta-shim");
  expect(inFolder(findDenied([denied("volta-shim")], folder).hidden)).toEqual([box]);
});

test("a program named by its path is that file alone, and a folder is no program", () => {
  const path = program("tool-e");
  expect(inFolder(findDenied([denied(path)], "").hidden)).toEqual([path]);
  expect(inFolder(findDenied([denied("bin")], folder).hidden)).toEqual([]);
});

test("without a launcher denied programs are hidden and nothing more is promised; without rules nothing is", () => {
  const judge = createStartJudge(undefined, "x64");
  const grant: Grant = { policy: "workspace-write", confined: true, write: [], protect: [], mask: [], network: "off" };
  expect(judge.programs(grant, folder)).toEqual({ hidden: [] });
  const path = program("tool-f");
  const held = judge.programs({ ...grant, denied: [denied("tool-f")] }, folder);
  expect(inFolder(held.hidden)).toEqual([path]);
  expect(held).not.toHaveProperty("starts");
});

const launcher = launchers.find((one) => one.launcher !== "off")?.launcher;
test.skipIf(launcher === undefined || !judgesStarts(launcher))(
  "the launcher is asked about words only where a rule speaks of words (needs the launcher)",
  () => {
    const judge = createStartJudge(launcher, process.arch === "arm64" ? "arm64" : "x64");
    const grant: Grant = {
      policy: "workspace-write",
      confined: true,
      write: [],
      protect: [],
      mask: [],
      network: "off",
    };
    const asked = (...rules: readonly ReturnType<typeof denied>[]) =>
      judge.programs({ ...grant, denied: rules }, folder);
    expect(asked(denied("tool-a"))).toMatchObject({ questions: "program", starts: { rules: [denied("tool-a")] } });
    expect(asked(denied("tool-a", ["push"])).questions).toBe("words");
    expect(asked(denied("tool-a"), denied("tool-c", ["push"])).questions).toBe("words");
    expect(asked(denied("tool-a")).starts?.filter).not.toEqual(asked(denied("tool-a", ["push"])).starts?.filter);
  },
);

test("a start that a rule refused is the command's denial, with the rule; others are none", () => {
  const list = [{ argv: ["ls"] }, { argv: ["git", "push"], refusedBy: "deny command git push" }];
  expect(refusedStart({ programs: { list: list as never, unlisted: 0 } })).toEqual({
    what: "command",
    target: "git push",
    reason: "'git push' was not started: the rule 'deny command git push' denies it",
    rule: "deny command git push",
  });
  expect(refusedStart({ programs: { list: list.slice(0, 1) as never, unlisted: 0 } })).toBeUndefined();
  expect(refusedStart({})).toBeUndefined();
});

test("of many starts the first fifty are told and every refusal, each in bounds, and the others are counted", () => {
  const list = Array.from({ length: 60 }, (_, n) => ({ argv: [`p${n}`], ...(n === 55 ? { refusedBy: "r" } : {}) }));
  const short = shortList({ list: list as never, unlisted: 3 });
  expect(short.list.map(({ argv }) => argv[0])).toEqual([...list.slice(0, 50).map(({ argv }) => argv[0]), "p55"]);
  expect(short.unlisted).toBe(12);
  const [long] = shortList({ list: [{ argv: ["a".repeat(200), "b".repeat(200), "c"] }] as never, unlisted: 0 }).list;
  expect(long?.argv).toEqual(["a".repeat(200), `${"b".repeat(99)}…`]);
});
