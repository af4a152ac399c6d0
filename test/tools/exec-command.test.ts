import { rmSync } from "node:fs";
import { afterAll, describe, expect, test } from "vitest";
import { partsToText } from "../../src/base/content.ts";
import { exitCodeOf } from "../../src/result/cut.ts";
import { wholeOf } from "../../src/result/truncate.ts";
import type { ToolResult } from "../../src/spec/result.ts";
import type { ExecOutcome } from "../../src/spec/tool.ts";
import { createExec } from "../../src/runtime/exec.ts";
import { createProcesses } from "../../src/runtime/processes.ts";
import { execCommand } from "../../src/tools/exec-command.ts";
import { writeStdin } from "../../src/tools/write-stdin.ts";
import { has } from "../needs.ts";
import { launchers } from "../runtime/process/spawners.ts";
import { contextIn, engineIn, grantFor, newWorkspace } from "./workspace.ts";

describe.each(launchers)("sessions through $name", ({ launcher }) => {
  const workspace = newWorkspace();
  const processes = createProcesses({ launcher });
  const grant = grantFor(workspace, { confined: false, policy: "full-access" });
  const env = { PATH: process.env["PATH"] ?? "", HOME: workspace };
  const exec = createExec({
    processes,
    grant,
    cwd: workspace,
    env,
    signal: new AbortController().signal,
    shell: "/bin/bash",
    onOutput: ({ text }) => void (told += text),
  });
  let told = "";
  const ctx = contextIn(workspace, { exec });
  const outcome = (result: unknown): ExecOutcome & { readonly output: string } => {
    const exec = (result as ToolResult).exec!;
    return { ...exec, exitCode: exitCodeOf(exec), output: wholeOf(exec.output) ?? "" };
  };
  afterAll(async () => {
    await processes.close();
    rmSync(workspace, { recursive: true, force: true });
  });

  test("a command that ends in time has an exit code and no session", async () => {
    const ended = outcome(await execCommand.run({ cmd: "echo hi; exit 5", login: false }, ctx));
    expect(ended).toMatchObject({ output: "hi\n", exitCode: 5, maxTokens: 10_000 });
    expect(ended.chunkId).toMatch(/^[0-9a-f]{6}$/);
    expect(ended.sessionId).toBeUndefined();
    // Whoever follows the call has heard it as well.
    expect(told).toBe("hi\n");
  });

  const hasTerminal = launcher !== "off" || has("script");
  test.skipIf(!hasTerminal)("one that is still running is talked to by its session id (needs script)", async () => {
    const cmd = 'while read -r line; do echo "got $line"; done; echo bye';
    const started = outcome(await execCommand.run({ cmd, tty: true, yield_time_ms: 250, login: false }, ctx));
    expect(started.sessionId).toBeTypeOf("number");
    expect(started.exitCode).toBe(null);
    const session_id = started.sessionId!;
    expect(outcome(await writeStdin.run({ session_id, chars: "one\n", yield_time_ms: 1500 }, ctx)).output).toContain(
      "got one",
    );
    const last = outcome(await writeStdin.run({ session_id, chars: "\u0004", yield_time_ms: 20_000 }, ctx));
    expect(last.output).toContain("bye");
    expect(last.exitCode).toBe(0);
    await expect(writeStdin.run({ session_id, chars: "x" }, ctx)).rejects.toMatchObject({
      message: `write_stdin failed: Unknown process id ${session_id}`,
    });
  });

  test("one without a terminal refuses text and says how to get one", async () => {
    const { sessionId } = outcome(await execCommand.run({ cmd: "sleep 20", yield_time_ms: 250, login: false }, ctx));
    await expect(writeStdin.run({ session_id: sessionId!, chars: "text" }, ctx)).rejects.toMatchObject({
      hint: expect.stringContaining("tty=true"),
    });
    const ended = outcome(
      await writeStdin.run({ session_id: sessionId!, chars: "\u0003", yield_time_ms: 20_000 }, ctx),
    );
    expect(ended.exitCode).toBe(130);
  });

  test("waiting times are kept within their bounds", async () => {
    const started = performance.now();
    const { sessionId } = outcome(await execCommand.run({ cmd: "sleep 20", yield_time_ms: 1, login: false }, ctx));
    expect(performance.now() - started).toBeGreaterThan(240);
    await exec.terminals.close(sessionId!);
  });

  test("a folder that is not there is told with the command", async () => {
    await expect(execCommand.run({ cmd: "ls", workdir: "gone" }, ctx)).rejects.toMatchObject({
      code: "invalid_input",
      message: expect.stringMatching(/^exec_command failed for `ls`: the working directory .* does not exist/),
    });
  });

  test("the login environment is there when it is wanted", async () => {
    expect(outcome(await execCommand.run({ cmd: "echo $PATH", login: true }, ctx)).output.trim()).not.toBe("");
  });
});

test("through the whole line, a justification without a wish is refused before anything runs", async () => {
  const workspace = newWorkspace();
  const { engine, call } = engineIn(workspace);
  const ended = await call("exec_command", { cmd: "echo never", justification: "because" });
  expect(ended).toMatchObject({ ok: false, code: "invalid_input" });
  expect(partsToText(ended.content)).toContain("sandbox_permissions");
  await engine.close();
  rmSync(workspace, { recursive: true });
});
