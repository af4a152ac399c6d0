import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import {
  createEngine,
  defineTool,
  type ApprovalAnswer,
  type ApprovalRequest,
  type CallEvent,
} from "../../src/index.ts";
import { toSchema } from "../../src/schema/schema.ts";
import { eventSchema } from "../../src/session/index.ts";
import type { Ended } from "../../src/spec/call.ts";
import type { Recorder } from "../../src/spec/stages.ts";
import { canHold } from "../runtime/effects/held.ts";

/** Runs a line, as the shell tools do. */
const shell = defineTool({
  name: "sh",
  description: "Runs a line.",
  input: { type: "object", properties: { line: { type: "string" } }, required: ["line"] } as const,
  access: ({ line }, { cwd }) => ({ commands: [{ shell: line, cwd }] }),
  mutates: true,
  run: async ({ line }, { exec }) => (await exec.run({ shell: line, login: false })).output.head,
});

interface Scene {
  readonly workspace: string;
  readonly events: CallEvent[];
  readonly asked: ApprovalRequest[];
  readonly records: { readonly outcome: string }[];
  call(line: string): ReturnType<ReturnType<typeof createEngine>["call"]>;
  run(line: string, recorder: Recorder): Promise<Ended>;
  read(name: string): string | undefined;
}

interface SceneOptions {
  readonly answer?: (request: ApprovalRequest) => ApprovalAnswer | undefined;
  readonly gate?: Parameters<typeof createEngine>[0]["gate"];
  readonly approval?: "never" | "on-request" | "unless-trusted";
}

function scene({
  answer = () => ({ answer: "once" }),
  gate = {},
  approval = "unless-trusted",
}: SceneOptions = {}): Scene {
  const base = realpathSync(mkdtempSync(join(tmpdir(), "held-line-")));
  const workspace = join(base, "ws");
  mkdirSync(workspace);
  writeFileSync(join(workspace, "a.txt"), "one\n");
  writeFileSync(join(workspace, "b.txt"), "two\n");
  const before = process.env["CALLGATE_HOME"];
  process.env["CALLGATE_HOME"] = join(base, "home");
  const events: CallEvent[] = [];
  const asked: ApprovalRequest[] = [];
  const records: { outcome: string }[] = [];
  const engine = createEngine({
    tools: [shell],
    workspace,
    approval,
    approver: { ask: async (request) => (asked.push(request), answer(request)) },
    gate: { held: "asked", record: (entry) => void records.push({ outcome: entry.outcome }), ...gate },
  });
  engine.on((event) => events.push(event));
  onTestFinished(async () => {
    await engine.close();
    if (before === undefined) delete process.env["CALLGATE_HOME"];
    else process.env["CALLGATE_HOME"] = before;
    rmSync(base, { recursive: true, force: true });
  });
  const path = (name: string) => join(workspace, name);
  return {
    workspace,
    events,
    asked,
    records,
    call: (line) => engine.call("sh", { line }),
    run: (line, recorder) =>
      engine.run(
        { id: "1", name: "sh", kind: "function", arguments: JSON.stringify({ line }), askedAt: 0 },
        new AbortController().signal,
        { recorder },
      ),
    read: (name) => (existsSync(path(name)) ? readFileSync(path(name), "utf8") : undefined),
  };
}

const mixed = "python3 -c \"open('a.txt','w').write('new')\"; rm b.txt; mkdir -p dist; echo x > dist/x";

describe.skipIf(!canHold)(
  "a command that would be asked about (skipped where nothing can be held: needs bubblewrap)",
  () => {
    test("runs held, and the question shows what it did; a yes keeps it", async () => {
      const { call, asked, read, events, records } = scene();
      const ended = await call(mixed);
      expect(ended).toMatchObject({ ok: true, effects: { kept: "all", conflicts: [] }, ruling: { by: "person" } });
      expect(asked).toHaveLength(1);
      expect(asked[0]?.effects?.lines.map(({ mark, text }) => `${mark} ${text}`)).toEqual([
        "- b.txt (4 B)",
        "~ a.txt (4 B → 3 B)",
        "+ dist/ (1 file, 2 B)",
      ]);
      expect(asked[0]?.diff).toContain("-one");
      expect([read("a.txt"), read("b.txt"), read("dist/x")]).toEqual(["new", undefined, "x\n"]);
      const schema = toSchema(eventSchema);
      for (const event of events)
        expect(await schema.validate(JSON.parse(JSON.stringify(event)))).toMatchObject({ ok: true });
      const types = events.map(({ type }) => type).filter((type) => type.startsWith("effects"));
      expect(types).toEqual(["effects.listed", "effects.decided", "effects.settled"]);
      expect(records.map(({ outcome }) => outcome)).toEqual(["permitted", "kept"]);
    });

    test("what is kept is recorded before it is; if it cannot be recorded, nothing is kept", async () => {
      const { run, read } = scene();
      const seen: unknown[] = [];
      const recorder = {
        async started() {},
        async decided() {
          seen.push(read("a.txt"));
        },
        async ended() {},
      };
      expect(await run(mixed, recorder)).toMatchObject({ ok: true });
      expect([...seen, read("a.txt")]).toEqual(["one\n", "new"]);

      const full = scene();
      const failing = { ...recorder, decided: () => Promise.reject(new Error("no space left")) };
      await expect(full.run(mixed, failing)).rejects.toThrow("no space left");
      expect([full.read("a.txt"), full.read("b.txt"), full.read("dist/x")]).toEqual(["one\n", "two\n", undefined]);
    });

    test("a no, or nobody, drops it: the workspace is as it was, and the model is told", async () => {
      for (const answer of [{ answer: "no", message: "not now" } as const, undefined]) {
        const { call, read, records } = scene({ answer: () => answer });
        const ended = await call(mixed);
        expect(ended).toMatchObject({
          ok: false,
          code: answer ? "rejected" : "needs_approval",
          effects: { kept: "none" },
        });
        expect(JSON.stringify(ended.content)).toContain("not kept");
        expect([read("a.txt"), read("b.txt"), read("dist/x")]).toEqual(["one\n", "two\n", undefined]);
        expect(records.at(-1)?.outcome).toBe("dropped");
      }
    });

    test("a part can be kept, and the model is told that it was a part", async () => {
      const { call, read } = scene({ answer: () => ({ answer: "once", keep: ["dist/x"] }) });
      const ended = await call(mixed);
      expect(ended).toMatchObject({ ok: true, effects: { kept: "part" } });
      expect(JSON.stringify(ended.content)).toContain("Only a part");
      expect([read("a.txt"), read("b.txt"), read("dist/x")]).toEqual(["one\n", "two\n", "x\n"]);
    });

    test("rules on effects keep or drop without a question, and the strictest wins", async () => {
      const allow = { effects: { only: ["dist/**"] }, decision: "allow" } as const;
      const deny = { effects: { removes: "*.txt" }, decision: "deny" } as const;
      const { call, asked, read } = scene({ gate: { rules: [allow, deny] } });
      expect(await call("mkdir -p dist; date > dist/x; sync")).toMatchObject({ ok: true, ruling: { by: "rule" } });
      expect(await call(mixed)).toMatchObject({ ok: false, code: "denied", effects: { kept: "none" } });
      expect(asked).toEqual([]);
      expect(read("b.txt")).toBe("two\n");
    });

    test("git's hooks and settings are asked about whatever a rule allows; a commit is told in git's words", async () => {
      const everything = { effects: { only: ["**"] }, decision: "allow" } as const;
      const { call, asked, workspace, read } = scene({
        gate: { rules: [everything] },
        answer: () => ({ answer: "no" }),
      });
      const git = (...words: string[]) =>
        execFileSync("git", ["-C", workspace, "-c", "user.name=n", "-c", "user.email=e", ...words]);
      git("init", "-q", "-b", "main");
      git("add", ".");
      git("commit", "-qm", "first");
      const commit = "git -c user.name=n -c user.email=e commit --allow-empty -qm second; echo done";
      expect(await call(commit)).toMatchObject({ ok: true, effects: { kept: "all" } });
      expect(git("log", "--format=%s").toString()).toBe("second\nfirst\n");
      expect(git("status", "--porcelain").toString()).toBe("");
      git("fsck", "--strict");
      expect(asked).toHaveLength(0);
      const hook = "echo 'touch /tmp/owned' > .git/hooks/pre-commit; git config core.fsmonitor ./evil";
      expect(await call(hook)).toMatchObject({ ok: false, code: "rejected" });
      expect(asked[0]?.effects?.lines.filter(({ mark }) => mark === "!").map(({ paths }) => paths[0])).toEqual([
        ".git/config",
        ".git/hooks/pre-commit",
      ]);
      expect(read(".git/hooks/pre-commit")).toBeUndefined();
    });

    test("a hook can drop it, and sees what it did", async () => {
      const seen: string[] = [];
      const hook = {
        before: ({ effects }: { readonly effects?: readonly { readonly path: string }[] }) => {
          seen.push(...(effects ?? []).map(({ path }) => path));
          return effects === undefined ? undefined : { block: "not on a Friday" };
        },
      };
      const { call, read, asked } = scene({ gate: { hooks: [hook] } });
      expect(await call(mixed)).toMatchObject({ ok: false, code: "denied", ruling: { by: "hook" } });
      expect(seen).toContain("b.txt");
      expect(asked).toEqual([]);
      expect(read("b.txt")).toBe("two\n");
    });

    test("'session' remembers the folders that were written to, not the command", async () => {
      const { call, asked } = scene({ answer: () => ({ answer: "session" }) });
      await call("mkdir -p dist; date > dist/x; sync");
      await call("mkdir -p dist; date > dist/y; sync -f .");
      expect(asked).toHaveLength(1);
      await call("date > other; sync");
      expect(asked).toHaveLength(2);
    });

    test("what talks to the network, or wants out of the sandbox, is asked about before it runs", async () => {
      const { call, asked } = scene({ answer: () => ({ answer: "no" }) });
      await call("curl http://127.0.0.1:9/");
      expect(asked[0]?.effects).toBeUndefined();
      expect(asked).toHaveLength(1);
    });

    test("with held = off it is asked about before it runs", async () => {
      const { call, asked, read } = scene({ gate: { held: "off" }, answer: () => ({ answer: "no" }) });
      await call(mixed);
      expect(asked[0]?.effects).toBeUndefined();
      expect(read("b.txt")).toBe("two\n");
    });

    const renames = "mkdir d; date > d/f; sync; python3 -c \"import os; os.rename('old', 'new')\"";

    test("where it failed because it was held, the question offers to run it directly", async () => {
      const { call, asked, workspace, read, events } = scene({ answer: () => ({ answer: "direct" }) });
      mkdirSync(join(workspace, "old"));
      const ended = await call(renames);
      expect(asked).toHaveLength(1);
      expect(asked[0]?.effects?.direct).toContain("renaming a folder");
      expect(asked[0]?.effects?.lines[0]?.text).toContain("renaming a folder that was there does not work while held");
      expect(ended).toMatchObject({ ok: true, ruling: { by: "person" } });
      expect(ended.grant?.writes).toBeUndefined();
      expect([existsSync(join(workspace, "old")), existsSync(join(workspace, "new"))]).toEqual([false, true]);
      expect(read("d/f")).toBeDefined();
      const schema = toSchema(eventSchema);
      for (const event of events)
        expect(await schema.validate(JSON.parse(JSON.stringify(event)))).toMatchObject({ ok: true });
    });

    test("a failure that has nothing to do with being held offers nothing, and says nothing about it", async () => {
      const { call, asked } = scene({ answer: () => ({ answer: "direct" }) });
      const ended = await call("date > x; sync; false");
      expect(asked[0]?.effects?.direct).toBeUndefined();
      expect(ended).toMatchObject({ ok: false, code: "rejected", effects: { kept: "none" } });
    });

    test("nobody there to be asked: the model is told why it failed", async () => {
      const { call, workspace } = scene({ answer: () => ({ answer: "no" }) });
      mkdirSync(join(workspace, "old"));
      const ended = await call(renames);
      expect(JSON.stringify(ended.content)).toContain("renaming a folder that was there does not work while held");
    });

    test("with undo = all a command that cannot be held runs directly instead of failing", async () => {
      const { call, asked, workspace } = scene({ approval: "on-request", gate: { undo: "all" } });
      mkdirSync(join(workspace, "old"));
      await call("python3 -c \"import os; os.rename('old', 'new')\"");
      expect(existsSync(join(workspace, "new"))).toBe(true);
      expect(asked).toEqual([]);
    });

    test("mode 'never': what is refused for its danger runs held where a rule can keep what it does, and only that is kept", async () => {
      const dangerous = "rm -rf dist; mkdir dist; date > dist/x";
      const rules = [{ effects: { only: ["dist/**"] }, decision: "allow" } as const];
      const { call, asked, read, records } = scene({ approval: "never", gate: { rules } });
      expect(await call(dangerous)).toMatchObject({ ok: true, effects: { kept: "all" }, ruling: { by: "rule" } });
      expect(await call("rm -rf dist b.txt")).toMatchObject({ ok: false, code: "denied", effects: { kept: "none" } });
      expect([asked.length, read("b.txt"), read("dist/x") === undefined]).toEqual([0, "two\n", false]);
      expect(records.map(({ outcome }) => outcome)).toEqual(["permitted", "kept", "permitted", "dropped"]);
      const without = scene({ approval: "never" });
      const refused = await without.call(dangerous);
      expect(refused).toMatchObject({ ok: false, code: "denied" });
      expect(refused.effects).toBeUndefined();
    });

    test("'always' saves the rule that was shown, and it counts at once and in the next session", async () => {
      const saved: unknown[] = [];
      const always = { file: "rules.toml", save: async (rule: unknown) => void saved.push(rule) };
      const { call, asked } = scene({ answer: () => ({ answer: "always" }), gate: { always } });
      await call("mkdir -p dist; date > dist/x; sync");
      expect(asked[0]?.always).toMatchObject({ file: "rules.toml" });
      expect(saved).toEqual([{ effects: { only: ["dist/**"] }, decision: "allow" }]);
      expect(await call("date > dist/y; sync")).toMatchObject({ ok: true, ruling: { by: "rule" } });
      expect(asked).toHaveLength(1);
    });

    test("with undo = all every command that needs no question is held and kept at once", async () => {
      const { call, asked, read } = scene({ approval: "on-request", gate: { undo: "all" } });
      const ended = await call("mkdir -p dist; echo x > dist/x");
      expect(ended).toMatchObject({ ok: true, grant: { writes: "undoable" }, effects: { kept: "all" } });
      expect(asked).toEqual([]);
      expect(read("dist/x")).toBe("x\n");
    });
  },
);
