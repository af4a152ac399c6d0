import { existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { canHold } from "../runtime/effects/held.ts";
import { run } from "./run.ts";

interface Folder {
  readonly workspace: string;
  readonly env: Readonly<Record<string, string>>;
  read(name: string): string | undefined;
}

function folder(): Folder {
  const base = realpathSync(mkdtempSync(join(tmpdir(), "held-cli-")));
  onTestFinished(() => rmSync(base, { recursive: true, force: true }));
  const workspace = join(base, "ws");
  mkdirSync(workspace);
  for (const name of ["a.txt", "b.txt", "run.sh"]) writeFileSync(join(workspace, name), `${name}\n`);
  const read = (name: string) =>
    existsSync(join(workspace, name)) ? readFileSync(join(workspace, name), "utf8") : undefined;
  return { workspace, env: { CALLGATE_HOME: join(base, "home") }, read };
}

const line = "echo more >> a.txt; rm b.txt; chmod +x run.sh; mkdir -p dist; echo x > dist/x; exit 7";

describe.skipIf(!canHold)("sandbox --held (skipped where nothing can be held: needs bubblewrap)", () => {
  test("keep: lists what was done, keeps it, and undo takes it back", async () => {
    const { workspace: cwd, env, read } = folder();
    const held = await run(["sandbox", "--held", "keep", "--json", "--", "sh", "-c", line], { cwd, env });
    const outcome = JSON.parse(held.stdout);
    expect(held.code).toBe(7);
    expect(outcome).toMatchObject({ exitCode: 7, kept: "all", conflicts: [] });
    const effects = outcome.effects.map(({ path, kind }: { path: string; kind: string }) => `${kind} ${path}`);
    expect(effects).toEqual(["changed a.txt", "removed b.txt", "added dist", "added dist/x", "mode run.sh"]);
    expect(read("dist/x")).toBe("x\n");

    const list = JSON.parse((await run(["undo", "--list", "--json"], { cwd, env })).stdout);
    expect(list).toMatchObject([{ run: outcome.run, kind: "command", state: "kept" }]);
    const undone = await run(["undo", outcome.run, "--json"], { cwd, env });
    expect(JSON.parse(undone.stdout)).toEqual({ ok: true, run: outcome.run, state: "undone", conflicts: [] });
    expect([read("a.txt"), read("b.txt"), read("dist/x")]).toEqual(["a.txt\n", "b.txt\n", undefined]);
    await run(["undo", "--redo"], { cwd, env });
    expect(read("b.txt")).toBeUndefined();
  });

  test("drop, and ask where nobody can be asked: nothing changes, and nothing of the run is left", async () => {
    const { workspace: cwd, env, read } = folder();
    for (const how of ["drop", "ask"]) {
      const held = await run(["sandbox", "--held", how, "--json", "--", "sh", "-c", line], { cwd, env });
      expect(JSON.parse(held.stdout)).toMatchObject({ kept: "none", conflicts: [] });
      expect([read("a.txt"), read("b.txt"), read("dist/x")]).toEqual(["a.txt\n", "b.txt\n", undefined]);
    }
    expect(JSON.parse((await run(["undo", "--list", "--json"], { cwd, env })).stdout)).toEqual([]);
  });

  test("--only keeps a part", async () => {
    const { workspace: cwd, env, read } = folder();
    const words = ["sandbox", "--held", "keep", "--only", "dist/**", "--json", "--", "sh", "-c", line];
    expect(JSON.parse((await run(words, { cwd, env })).stdout)).toMatchObject({ kept: "part" });
    expect([read("a.txt"), read("b.txt"), read("dist/x")]).toEqual(["a.txt\n", "b.txt\n", "x\n"]);
  });

  test("a file that was changed since stops undo, and is named", async () => {
    const { workspace: cwd, env, read } = folder();
    await run(["sandbox", "--held", "keep", "--", "sh", "-c", line], { cwd, env });
    writeFileSync(join(cwd, "a.txt"), "mine\n");
    const undone = await run(["undo", "--json"], { cwd, env });
    expect(undone.code).toBe(1);
    expect(JSON.parse(undone.stdout)).toMatchObject({ ok: false, state: "kept", conflicts: ["a.txt"] });
    expect([read("a.txt"), read("b.txt")]).toEqual(["mine\n", undefined]);
  });

  test("input and output are the command's own", async () => {
    const { workspace: cwd, env } = folder();
    const held = await run(["sandbox", "--held", "drop", "--", "sh", "-c", "cat; echo err >&2"], {
      cwd,
      env,
      input: "in\n",
    });
    expect(held.stdout).toBe("in\n");
    expect(held.stderr).toContain("err");
  });

  test("rules judge a list that was printed", async () => {
    const { workspace: cwd, env } = folder();
    const held = await run(["sandbox", "--held", "drop", "--json", "--", "sh", "-c", line], { cwd, env });
    writeFileSync(join(cwd, "list.json"), held.stdout);
    const rules =
      '[[rule]]\neffects = { removes = "*.txt" }\ndecision = "deny"\nmatch = ["- b.txt"]\nnot_match = ["+ b.txt"]\n';
    writeFileSync(join(cwd, "rules.toml"), rules);
    const words = ["policy", "check", "--effects", "list.json", "--rules", "rules.toml", "--json"];
    expect(JSON.parse((await run(words, { cwd, env })).stdout)).toMatchObject({ decision: "deny" });
    writeFileSync(join(cwd, "rules.toml"), rules.replace("removes", "removed"));
    const wrong = await run(words, { cwd, env });
    expect(wrong.code).toBe(2);
    expect(wrong.stderr).toContain("did you mean 'removes'?");
  });

  test("where renaming a folder fails because it is held, that is said, and the way out", async () => {
    const { workspace: cwd, env } = folder();
    mkdirSync(join(cwd, "old"));
    const words = ["--", "python3", "-c", "import os; os.rename('old', 'new')"];
    const held = await run(["sandbox", "--held", "keep", ...words], { cwd, env });
    expect(held.code).toBe(1);
    expect(held.stderr).toContain("renaming a folder that was there does not work while held; without --held it runs");
    const json = JSON.parse((await run(["sandbox", "--held", "keep", "--json", ...words], { cwd, env })).stdout);
    expect(json).toMatchObject({ exitCode: 1, kept: "none", direct: expect.stringContaining("renaming a folder") });
    expect((await run(["sandbox", ...words], { cwd, env })).code).toBe(0);
  });

  test("what cannot be taken back says why", async () => {
    const { workspace: cwd, env } = folder();
    const held = await run(["sandbox", "--held", "keep", "--json", "--", "sh", "-c", line], { cwd, env });
    const { run: id } = JSON.parse(held.stdout);
    await run(["undo", id], { cwd, env });
    const twice = await run(["undo", id, "--json"], { cwd, env });
    expect([twice.code, JSON.parse(twice.stdout)]).toEqual([
      1,
      {
        ok: false,
        run: id,
        error: "it was taken back already (callgate undo RUN --redo does it again)",
        conflicts: [],
      },
    ]);
    const stranger = await run(["undo", "nobody", "--json"], { cwd, env });
    expect(JSON.parse(stranger.stdout)).toMatchObject({ ok: false, error: expect.stringContaining("no run nobody") });
    await run(["undo", id, "--redo"], { cwd, env });
    const again = await run(["undo", id, "--redo"], { cwd, env });
    expect(again.stderr).toContain("it was not taken back");
  });

  test("where nothing can be held it is said before anything runs", async () => {
    const { workspace: cwd, env, read } = folder();
    const held = await run(["sandbox", "--held", "keep", "--", "sh", "-c", line], {
      cwd,
      env: { ...env, CALLGATE_LAUNCHER: "off" },
    });
    expect(held.code).toBe(3);
    expect(held.stderr).toContain("cannot be held");
    expect(read("b.txt")).toBe("b.txt\n");
  });
});
