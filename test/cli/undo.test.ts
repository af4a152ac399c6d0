/** One list of what can be taken back and done again, and the session that hears of it. */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { partsToText } from "../../src/base/content.ts";
import type { ModelRequest } from "../../src/spec/model.ts";
import { createScriptedModel, serveModel, type ModelServer, type ScriptedAnswer } from "../../src/testing/index.ts";
import { openJournal } from "../../src/store/journal.ts";
import { listSessions } from "../../src/store/sessions.ts";
import { canHold } from "../runtime/effects/held.ts";
import { has } from "../needs.ts";
import { ensureBuilt, lines, run, tempFolder } from "./run.ts";

let server: ModelServer;
const requests: ModelRequest[] = [];
beforeAll(async () => {
  ensureBuilt();
  const answers = Array.from({ length: 50 }, () => answer);
  server = await serveModel(createScriptedModel(answers, "scripted"));
}, 60_000);
afterAll(() => server.close());
beforeEach(() => void requests.splice(0));

/** Does what it is told: `run LINE`, `write FILE`, or talks. */
function answer(request: ModelRequest): ScriptedAnswer {
  requests.push(request);
  const last = request.input.findLast((item) => item.type === "result" || item.type === "message");
  if (last === undefined || last.type === "result") return { text: "Done." };
  const [word, ...rest] = partsToText(last.content).split(" ");
  if (word === "run") return { calls: [{ name: "shell_command", input: { command: rest.join(" ") } }] };
  if (word !== "write") return { text: "Yes." };
  const patch = `*** Begin Patch\n*** Add File: ${rest[0]}\n+written\n*** End Patch`;
  return { calls: [{ name: "apply_patch", input: { input: patch } }] };
}

function scene(more: Readonly<Record<string, string>> = {}) {
  const cwd = tempFolder("work");
  const env = { CALLGATE_HOME: tempFolder("state"), ...more };
  mkdirSync(env.CALLGATE_HOME, { recursive: true });
  writeFileSync(join(cwd, "a.txt"), "one\n");
  writeFileSync(join(env.CALLGATE_HOME, "callgate.toml"), 'undo = "all"\n');
  const model = ["--base-url", server.baseUrl, "--wire", "responses", "--model", "scripted"];
  const exec = (...args: readonly string[]) => run(["exec", ...model, ...args], { cwd, env });
  const undo = (...args: readonly string[]) => run(["undo", ...args], { cwd, env });
  const read = (name: string) => (existsSync(join(cwd, name)) ? readFileSync(join(cwd, name), "utf8") : undefined);
  const list = async () => JSON.parse((await undo("--list", "--json")).stdout) as Record<string, unknown>[];
  return { cwd, env, exec, undo, read, list };
}

const told = () =>
  requests.flatMap(({ input }) =>
    input.flatMap((item) => (item.type === "message" ? [partsToText(item.content)] : [])),
  );

test("a turn of file tools is taken back, done again and taken back: its session's journal, show and the model know", async () => {
  const { cwd, env, exec, undo, read, list } = scene();
  await exec("write new.txt");
  expect(read("new.txt")).toBe("written\n");
  const [turn] = await list();
  expect(turn).toMatchObject({ kind: "files", state: "kept" });
  expect((await undo("--dry-run")).stdout).toBe("would be removed new.txt\n");
  expect((await undo()).stdout).toBe("removed new.txt\n");
  expect(await list()).toMatchObject([{ turn: turn!["turn"], state: "undone" }]);
  expect(await undo("--redo", "--dry-run")).toMatchObject({ code: 0, stdout: "would be restored new.txt\n" });
  expect(read("new.txt")).toBeUndefined();
  expect(JSON.parse((await undo("--redo", "--json")).stdout)).toMatchObject({ ok: true, state: "kept", conflicts: [] });
  expect(read("new.txt")).toBe("written\n");
  writeFileSync(join(cwd, "new.txt"), "mine\n");
  const stopped = await undo("--json");
  expect([stopped.code, JSON.parse(stopped.stdout)]).toMatchObject([1, { ok: false, conflicts: ["new.txt"] }]);
  writeFileSync(join(cwd, "new.txt"), "written\n");
  await undo(String(turn!["turn"]));

  const shown = (await run(["show", "last"], { cwd, env })).stdout;
  expect(shown).toMatch(/taken back: file tools: new\.txt[\s\S]*done again: file tools: new\.txt[\s\S]*taken back/);
  await exec("--resume", "last", "hello");
  expect(told().filter((text) => text.startsWith("[The user "))).toEqual([
    "[The user took back what was done here: file tools: new.txt. Those files are as they were before it.]",
    "[The user did again what had been taken back: file tools: new.txt.]",
    "[The user took back what was done here: file tools: new.txt. Those files are as they were before it.]",
  ]);
  requests.splice(0);
  await exec("--resume", "last", "hello again");
  expect(told().filter((text) => text.startsWith("[The user "))).toHaveLength(3); // the same three, not told again
});

test("while a session is open, what was taken back waits beside its journal", async () => {
  const { env, exec, undo } = scene();
  await exec("write new.txt");
  const [session] = listSessions(env.CALLGATE_HOME);
  const journal = openJournal(session!.path); // as a session in another terminal has it
  expect((await undo()).code).toBe(0);
  expect(lines(readFileSync(`${session!.path}.undone`, "utf8"))).toMatchObject([{ type: "effects.undone" }]);
  journal.close();
  await exec("--resume", "last", "hello");
  expect(told().some((text) => text.startsWith("[The user took back"))).toBe(true);
  expect(existsSync(`${session!.path}.undone`)).toBe(false);
});

test.skipIf(!has("bubblewrap"))(
  "a command that cannot be held is taken back by snapshot, and is named so (needs bubblewrap)",
  async () => {
    const { env, exec, undo, read, list } = scene({ CALLGATE_LAUNCHER: "off" });
    const { stderr } = await exec("run echo two >> a.txt; mkdir d; echo n > d/new");
    expect(read("a.txt")).toBe("one\ntwo\n");
    const [found] = await list();
    expect(found).toMatchObject({ kind: "snapshot", state: "kept", leftOut: [] });
    expect(stderr).toContain(`callgate undo ${String(found!["run"])} takes it back (by snapshot)`);
    expect((await undo("--list")).stdout).toContain("by snapshot, a.txt, d/new");
    expect((await undo()).stdout).toMatch(
      new RegExp(`^restored a.txt\nremoved d/new\ntaken back: .*d/new.* \\(${String(found!["run"])}\\)\n$`),
    );
    expect([read("a.txt"), read("d/new")]).toEqual(["one\n", undefined]);
    await undo("--redo");
    expect([read("a.txt"), read("d/new")]).toEqual(["one\ntwo\n", "n\n"]);
    expect(listSessions(env.CALLGATE_HOME)).toHaveLength(1);
  },
);

test("a turn is found by its name from any folder; a folder that was named is the one that is meant", async () => {
  const { cwd, env, exec, read, list } = scene();
  await exec("write new.txt");
  const [{ turn } = {}] = await list();
  const other = tempFolder("elsewhere");
  const undo = (...args: readonly string[]) => run(["undo", String(turn), ...args], { cwd: other, env });
  expect(await undo("--cwd", other)).toMatchObject({ code: 1, stderr: expect.stringContaining(`belongs to ${cwd}`) });
  expect(read("new.txt")).toBe("written\n");
  expect(await undo()).toMatchObject({ code: 0, stdout: "removed new.txt\n", stderr: expect.stringContaining(cwd) });
  expect(read("new.txt")).toBeUndefined();
  expect(JSON.parse((await undo("--redo", "--json")).stdout)).toMatchObject({ ok: true, turn, state: "kept" });
  expect(read("new.txt")).toBe("written\n");
  const unknown = await run(["undo", "nobody"], { cwd: other, env });
  expect(unknown).toMatchObject({ code: 1, stderr: expect.stringContaining("--cwd names another folder") });
  rmSync(cwd, { recursive: true });
  expect(await undo()).toMatchObject({ code: 1, stderr: expect.stringContaining(`${cwd}, which is no longer there`) });
});

describe.skipIf(!canHold)("with kept runs (skipped where nothing can be held: needs bubblewrap)", () => {
  test.each([
    ["in our own folder", undefined],
    ["on the disk of its workspace", "/dev/shm"],
  ])("a run that is kept %s is found by its name from any folder", async (_where, disk) => {
    const state = disk === undefined ? undefined : mkdtempSync(join(disk, "callgate-state-"));
    if (state !== undefined) onTestFinished(() => rmSync(state, { recursive: true }));
    const { env, exec, read, list } = scene(state === undefined ? {} : { CALLGATE_HOME: state });
    await exec("run echo two >> a.txt");
    const [found] = await list();
    expect(found).toMatchObject({ kind: "command" });
    const undone = await run(["undo", String(found!["run"])], { cwd: tempFolder("elsewhere"), env });
    expect(undone).toMatchObject({
      code: 0,
      stdout: `taken back: echo two >> a.txt: 1 changed (${String(found!["run"])})\n`,
    });
    expect(read("a.txt")).toBe("one\n");
  });

  test("files and commands are one list: taken back newest first, done again last taken back first", async () => {
    const { cwd, env, exec, undo, read, list } = scene();
    await exec("run echo two >> a.txt");
    await exec("write new.txt");
    await exec("run echo three >> a.txt; echo more >> new.txt");
    const all = await list();
    expect(all.map(({ kind, state }) => `${String(kind)} ${String(state)}`)).toEqual([
      "command kept",
      "files kept",
      "command kept",
    ]);
    for (let times = 0; times < 3; times++) expect(await undo()).toMatchObject({ code: 0, stderr: "" });
    expect([read("a.txt"), read("new.txt")]).toEqual(["one\n", undefined]);
    expect(await undo()).toMatchObject({ code: 1, stderr: expect.stringContaining("nothing to take back") });
    for (let times = 0; times < 3; times++) expect(await undo("--redo")).toMatchObject({ code: 0, stderr: "" });
    expect([read("a.txt"), read("new.txt")]).toEqual(["one\ntwo\nthree\n", "written\nmore\n"]);
    expect(await undo("--redo")).toMatchObject({ code: 1, stderr: expect.stringContaining("nothing to do again") });
    const replayed = await run(["policy", "replay"], { cwd, env });
    expect(replayed.stdout).toBe("3 calls, 0 would be decided differently\n");
    writeFileSync(join(env.CALLGATE_HOME, "rules.toml"), '[[rule]]\neffects = { more_than = 1 }\ndecision = "deny"\n');
    expect((await run(["policy", "replay"], { cwd, env })).stdout).toMatch(
      /shell_command: allow → deny[\s\S]*3 calls, 1 /,
    );
    const again = await exec("--resume", "last", "hello");
    expect(again.code).toBe(0);
    expect(told().filter((text) => text.startsWith("[The user "))).toEqual([
      expect.stringMatching(/took back .*three/),
      expect.stringMatching(/did again .*three/),
    ]);
  });
});
