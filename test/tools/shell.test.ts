import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { partsToText } from "../../src/base/content.ts";
import type { ExecLayout } from "../../src/result/cut.ts";
import type { AnyTool, Situation } from "../../src/spec/tool.ts";
import { commandAccess } from "../../src/tools/command.ts";
import { builtins } from "../../src/tools/index.ts";
import { confining } from "../runtime/process/spawners.ts";
import { engineIn, newWorkspace } from "./workspace.ts";
import { has } from "../needs.ts";

const patch = "*** Begin Patch\n*** Add File: made.txt\n+made\n*** End Patch\n";

describe.each(confining)("shell tools through $name", ({ launcher, isThere }) => {
  if (!isThere) return void test.skip("nothing confines here", () => {});
  const workspace = newWorkspace();
  mkdirSync(join(workspace, "sub"));
  const open = (layout: ExecLayout) => engineIn(workspace, { launcher, result: { layout } });
  const engines = { plain: open("plain"), codex: open("codex"), json: open("codex-json"), sections: open("sections") };
  afterAll(async () => {
    await Promise.all(Object.values(engines).map(({ engine }) => engine.close()));
    rmSync(workspace, { recursive: true, force: true });
  });

  test("shell runs words, without a shell between", async () => {
    expect(await engines.plain.ask("shell", { command: ["echo", "$HOME", "*"] })).toBe("$HOME *\n");
  });

  test("container.exec is the same tool", async () => {
    expect(await engines.plain.ask("container.exec", { command: ["echo", "hi"] })).toBe("hi\n");
  });

  test("shell_command runs a line in the folder it names", async () => {
    expect(await engines.plain.ask("shell_command", { command: "echo a | tr a b; pwd", workdir: "sub" })).toBe(
      `b\n${workspace}/sub\n`,
    );
  });

  test("a command that fails has not succeeded, and tells its exit code", async () => {
    const ended = await engines.codex.call("shell_command", { command: "echo no >&2; exit 3" });
    expect(ended).toMatchObject({ ok: false, code: "failed", exitCode: 3 });
    expect(partsToText(ended.content)).toMatch(/^Exit code: 3\nWall time: \d+(\.\d)? seconds\nOutput:\nno\n$/);
  });

  test("a command that runs too long ends with 124 and says so", async () => {
    const ended = await engines.codex.call("shell", { command: ["sleep", "30"], timeout_ms: 150 });
    expect(ended.exitCode).toBe(124);
    expect(partsToText(ended.content)).toContain("command timed out after");
  });

  test("a death by signal is 128 and its number", async () => {
    expect((await engines.plain.call("shell_command", { command: "kill -TERM $$" })).exitCode).toBe(143);
  });

  test("local_shell takes the provider's action and the function form alike", async () => {
    const native = {
      type: "exec",
      command: ["bash", "-c", "echo $A; pwd"],
      env: { A: "x" },
      working_directory: "sub",
      timeout_ms: null,
      user: null,
    };
    expect(await engines.plain.ask("local_shell", native)).toBe(`x\n${workspace}/sub\n`);
    const text = await engines.sections.ask("local_shell", {
      command: "echo out; echo err >&2; exit 2",
      request_permission_elevation: false,
    });
    expect(text).toBe("stdout:\nout\n\nstderr:\nerr\n\nexit_code: 2");
    expect(await engines.plain.call("local_shell", { command: "id", user: "nobody" })).toMatchObject({
      ok: false,
      code: "invalid_input",
    });
  });

  test("internal_system_execute runs a line", async () => {
    expect(await engines.plain.ask("internal_system_execute", { command: "echo inside" })).toBe("inside\n");
  });

  test("an old shell tool's JSON holds output and exit code", async () => {
    const text = await engines.json.ask("shell", { command: ["bash", "-c", "echo x; exit 1"] });
    expect(JSON.parse(text)).toMatchObject({ output: "x\n", metadata: { exit_code: 1 } });
  });

  test.each([
    ["a line", "shell_command", { command: `cd sub && apply_patch <<'EOF'\n${patch}EOF\n` }],
    ["words", "shell", { command: ["bash", "-lc", `cd sub && apply_patch <<'EOF'\n${patch}EOF`] }],
    ["a session's line", "exec_command", { cmd: `cd sub && apply_patch <<'EOF'\n${patch}EOF\n` }],
  ])("a patch typed as %s reaches the patch engine", async (_name, tool, input) => {
    rmSync(join(workspace, "sub/made.txt"), { force: true });
    expect(await engines.plain.ask(tool, input)).toContain("A made.txt");
    expect(readFileSync(join(workspace, "sub/made.txt"), "utf8")).toBe("made\n");
  });

  test("a patch without its command is told how to be applied", async () => {
    const ended = await engines.plain.call("shell", { command: ["bash", "-lc", patch] });
    expect(ended.ok).toBe(false);
    expect(partsToText(ended.content)).toContain("apply_patch");
    expect(existsSync(join(workspace, "made.txt"))).toBe(false);
  });

  test("a wish to leave the sandbox is refused where nobody can agree", async () => {
    for (const wish of [{ with_escalated_permissions: true }, { sandbox_permissions: "require_escalated" }]) {
      const ended = await engines.plain.call("shell", { command: ["true"], justification: "I must", ...wish });
      expect(ended.ok).toBe(false);
      expect(ended.access?.escalation).toEqual({ justification: "I must" });
    }
  });

  // Landlock has no rule for a file that is not there yet.
  test.skipIf(!has("bubblewrap"))(
    "what the sandbox stopped runs again with what was agreed to (needs bubblewrap)",
    async () => {
      const outside = mkdtempSync(join(homedir(), ".callgate-test-")); // a temp folder would be the sandbox's own
      const asked: string[] = [];
      const { engine, call } = engineIn(workspace, {
        launcher,
        approval: "on-failure",
        approver: {
          async ask({ reason }) {
            asked.push(reason);
            return { answer: "once" };
          },
        },
      });
      const ended = await call("shell_command", { command: `echo run >> count; echo out > ${outside}/made` });
      expect(asked).toHaveLength(1);
      expect(asked[0]).toContain("The sandbox may have stopped it");
      expect(ended.ok).toBe(true);
      expect(readFileSync(join(workspace, "count"), "utf8")).toBe("run\nrun\n");
      expect(readFileSync(join(outside, "made"), "utf8")).toBe("out\n");
      await call("shell_command", { command: `echo > ${outside}/made; touch /usr/callgate-probe` });
      expect(asked).toHaveLength(2); // widened for one target: the other refusal is told, not asked about again
      await engine.close();
      rmSync(outside, { recursive: true });
      rmSync(join(workspace, "count"));
    },
  );

  test("output is told as it comes", async () => {
    const seen: string[] = [];
    const stop = engines.plain.engine.on((event) => event.type === "exec.output" && seen.push(event.text));
    await engines.plain.call("shell_command", { command: "echo one; sleep 0.05; echo two" });
    stop();
    expect(seen.join("")).toBe("one\ntwo\n");
  });
});

describe("what a shell tool says of itself", () => {
  const situation: Situation = {
    workspace: "/w",
    cwd: "/w",
    sandbox: "workspace-write",
    writableRoots: ["/w", "/tmp/x"],
    network: "off",
    canEscalate: true,
    platform: "linux",
  };
  const names = ["shell", "shell_command", "local_shell", "exec_command", "internal_system_execute"];
  const describeTool = (tool: AnyTool, at: Situation) =>
    typeof tool.description === "string" ? tool.description : tool.description(at);

  test.each(names)("%s names the writable places, the network and how to ask for more, as they are now", (name) => {
    const tool = builtins.find((candidate) => candidate.name === name)!;
    const words = describeTool(tool, situation);
    expect(words).toContain("only under /w, /tmp/x");
    expect(words).toContain("network: off");
    // In the very parameters that the tool has: one without them tells of none.
    const asking = tool.elevation?.split("=")[0];
    if (asking !== undefined) expect(words).toContain(`ask with ${asking}`);
    else expect(words).not.toContain("ask with");
    expect(describeTool(tool, { ...situation, canEscalate: false })).not.toContain("ask with");
    expect(describeTool(tool, { ...situation, sandbox: "none" })).toContain("without a sandbox");
  });
});

describe("what a shell call touches", () => {
  test("is its command, in the folder it will run in", () => {
    expect(commandAccess({ argv: ["ls"], cwd: "sub" }, "/w")).toEqual({
      commands: [{ argv: ["ls"], cwd: "/w/sub" }],
    });
  });

  test("is also the variables it is given, because they can change what a program does", () => {
    const env = { PATH: "/w/evil" };
    expect(commandAccess({ argv: ["ls", "-l"], env }, "/w").commands).toEqual([
      { argv: ["env", "PATH=/w/evil", "ls", "-l"], cwd: "/w" },
    ]);
    expect(commandAccess({ shell: "ls", env }, "/w").commands?.[0]?.argv).toEqual([
      "env",
      "PATH=/w/evil",
      "bash",
      "-c",
      "ls",
    ]);
  });

  test("is also the shell that a model chooses", () => {
    const access = builtins.find(({ name }) => name === "exec_command")!.access as (
      input: object,
      at: object,
    ) => object;
    expect(access({ cmd: "ls", shell: "/w/evil" }, { cwd: "/w", workspace: "/w" })).toEqual({
      commands: [{ argv: ["/w/evil", "-c", "ls"], cwd: "/w", stays: true }],
    });
  });

  test("is the patch's files when a patch is typed", () => {
    const line = `cd sub && apply_patch <<'EOF'\n${patch}EOF\n`;
    expect(commandAccess({ shell: line }, "/w")).toEqual({ write: ["/w/sub/made.txt"] });
  });
});
