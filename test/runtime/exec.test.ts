import { existsSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { CallError } from "../../src/base/error.ts";
import type { Grant } from "../../src/spec/access.ts";
import { createExec } from "../../src/runtime/exec.ts";
import { createProcesses } from "../../src/runtime/processes.ts";
import { whileCollecting } from "../garbage.ts";
import { launchers } from "./process/spawners.ts";

const open: Grant = { policy: "full-access", confined: false, write: ["/"], protect: [], mask: [], network: "on" };
const cwd = realpathSync(mkdtempSync(join(tmpdir(), "callgate-exec-")));
const env = { PATH: process.env["PATH"] ?? "/usr/bin:/bin", HOME: process.env["HOME"] ?? "/", CALLGATE_TEST: "set" };

describe.each(launchers)("a command through $name", ({ launcher }) => {
  const processes = createProcesses({ launcher });
  afterAll(() => processes.close());
  const exec = (signal = new AbortController().signal) =>
    createExec({ processes, grant: open, cwd, env, signal, shell: "/bin/bash" });

  test("gives its output, its exit code and where it came from", async () => {
    const result = await exec().run({ argv: ["bash", "-c", "echo out; echo err >&2; exit 3"] });
    expect(result).toMatchObject({ exitCode: 3, signal: null, timedOut: false, heldOpen: false, sandbox: "none" });
    expect(result.stdout.head).toBe("out\n");
    expect(result.stderr.head).toBe("err\n");
    expect(result.output.totalBytes).toBe(8);
  });

  test("starts in the folder it names, relative to the call's", async () => {
    const { stdout } = await exec().run({ argv: ["pwd"], cwd: ".." });
    expect(stdout.head.trim()).toBe(realpathSync(join(cwd, "..")));
  });

  test("sees the given environment, the quiet settings and nothing else", async () => {
    const { stdout } = await exec().run({ argv: ["env"], env: { EXTRA: "1", PAGER: "mine" } });
    const lines = stdout.head.split("\n");
    expect(lines).toContain("CALLGATE_TEST=set");
    expect(lines).toContain("EXTRA=1");
    expect(lines).toContain("PAGER=mine");
    expect(lines).toContain("GIT_TERMINAL_PROMPT=0");
    expect(lines.some((line) => line.startsWith("VITEST"))).toBe(false);
  });

  test("reads an empty input unless one is given", async () => {
    expect((await exec().run({ argv: ["cat"] })).stdout.totalBytes).toBe(0);
    expect((await exec().run({ argv: ["cat"], stdin: "given ✓" })).stdout.head).toBe("given ✓");
  });

  test("takes an input larger than any pipe", async () => {
    const { stdout } = await exec().run({ argv: ["wc", "-c"], stdin: Buffer.alloc(3_000_000, "a") });
    expect(stdout.head.trim()).toBe("3000000");
  });

  test("that is killed by a signal says which", async () => {
    const result = await exec().run({ argv: ["bash", "-c", "kill -TERM $$"] });
    expect(result).toMatchObject({ exitCode: null, signal: "SIGTERM" });
  });

  test("that runs too long is ended and says so", async () => {
    const result = await exec().run({ argv: ["bash", "-c", "echo begun; sleep 60"], timeoutMs: 200 });
    expect(result).toMatchObject({ timedOut: true, signal: "SIGKILL" });
    expect(result.stdout.head).toBe("begun\n");
    expect(result.durationMs).toBeLessThan(20_000);
  });

  test("that is stopped by the caller ends the call as aborted", async () => {
    const stop = new AbortController();
    const running = exec(stop.signal).run({ argv: ["sleep", "60"] });
    setTimeout(() => stop.abort(), 50);
    await expect(running).rejects.toSatisfy((error) => CallError.is(error) && error.code === "aborted");
  });

  test("ends with the signal of its own request, though nothing else refers to that", async () => {
    const running = whileCollecting(() => exec().run({ argv: ["sleep", "20"], signal: AbortSignal.timeout(200) }));
    await expect(running).rejects.toMatchObject({ code: "aborted" });
  });

  test("does not start for a call that was stopped already", async () => {
    const file = join(cwd, "never");
    await expect(exec(AbortSignal.abort()).run({ argv: ["touch", file] })).rejects.toMatchObject({ code: "aborted" });
    expect(existsSync(file)).toBe(false);
  });

  test("may be given more time than a timer can hold", async () => {
    expect(await exec().run({ argv: ["sleep", "0.05"], timeoutMs: 1e15 })).toMatchObject({
      exitCode: 0,
      timedOut: false,
    });
  });

  test("that does not exist, cannot be executed or has no folder is told apart", async () => {
    const failures = await Promise.allSettled([
      exec().run({ argv: ["no-such-program-here"] }),
      exec().run({ argv: ["/etc/passwd"] }),
      exec().run({ argv: ["true"], cwd: "/no/such/folder" }),
      exec().run({ argv: ["echo", "a\0b"] }),
      exec().run({ argv: [] }),
      exec().run({ argv: ["echo", "x".repeat(1_000_000)] }),
    ]);
    const errors = failures.map((failure) => (failure.status === "rejected" ? failure.reason : undefined));
    expect(errors.every((error) => CallError.is(error))).toBe(true);
    expect(errors.map((error: CallError) => error.code)).toEqual([
      "failed",
      "failed",
      "invalid_input",
      "failed",
      "invalid_input",
      "failed",
    ]);
    expect(errors[0].message).toContain("no such program");
    expect(errors[5].message).toContain("too long");
    expect((await exec().run({ argv: ["true"] })).exitCode).toBe(0);
  });

  test("whose background job holds the output open does not hang", async () => {
    const result = await exec().run({ argv: ["bash", "-c", "sleep 60 & echo started"] });
    expect(result).toMatchObject({ exitCode: 0, heldOpen: true });
    expect(result.stdout.head).toBe("started\n");
    expect(result.durationMs).toBeLessThan(20_000);
  });

  test("streams whole characters as they come, in order", async () => {
    const chunks: string[] = [];
    const line = `for i in 1 2 3; do printf '\\xe2\\x9c'; sleep 0.05; printf '\\x93'; done`;
    const { stdout } = await exec().run({ shell: line, login: false, onOutput: ({ text }) => chunks.push(text) });
    expect(stdout.head).toBe("✓✓✓");
    expect(chunks.join("")).toBe("✓✓✓");
    expect(chunks.every((text) => !text.includes("\ufffd"))).toBe(true);
  });

  test("that floods keeps its first and last lines and a count of the rest", async () => {
    const { stdout } = await exec().run({ argv: ["seq", "1", "2000000"], maxOutputBytes: 20_000 });
    expect(stdout.totalBytes).toBe(14888896);
    expect(stdout.head.startsWith("1\n2\n3\n")).toBe(true);
    expect(stdout.tail.endsWith("1999999\n2000000\n")).toBe(true);
    expect(stdout.droppedBytes + stdout.head.length + stdout.tail.length).toBe(stdout.totalBytes);
    expect(stdout.head.length + stdout.tail.length).toBeLessThanOrEqual(20_000);
  });

  test("that prints no text is called binary", async () => {
    expect((await exec().run({ argv: ["head", "-c", "5000", "/dev/urandom"] })).stdout.binary).toBe(true);
    expect((await exec().run({ argv: ["printf", "caf\\351"] })).stdout).toMatchObject({ binary: false, head: "café" });
  });

  test("runs beside others without mixing their outputs", async () => {
    const results = await Promise.all(
      Array.from({ length: 20 }, (_, n) => exec().run({ argv: ["bash", "-c", `seq ${n} ${n + 3000}`] })),
    );
    for (const [n, { stdout }] of results.entries()) {
      expect(stdout.head).toBe(Array.from({ length: 3001 }, (_, i) => `${n + i}\n`).join(""));
    }
  });

  test("under a grant that asks for a sandbox does not run without one", async () => {
    const confined = createExec({
      processes,
      grant: { ...open, confined: true },
      cwd,
      env,
      signal: new AbortController().signal,
    });
    await expect(confined.run({ argv: ["true"] })).rejects.toMatchObject({ code: "no_sandbox" });
  });
});

test("what login files export is held to the policy: tool chains yes, secrets no", async () => {
  const home = mkdtempSync(join(tmpdir(), "callgate-home-"));
  writeFileSync(join(home, ".bash_profile"), "export GITHUB_TOKEN=secret NVM_DIR=/opt/nvm PATH=$PATH:/opt/mine");
  const processes = createProcesses({ launcher: "off" });
  const signal = new AbortController().signal;
  const login = { processes, grant: open, cwd, env: { ...env, HOME: home }, signal, shell: "/bin/bash" };
  const safe = (await createExec(login).run({ shell: "env" })).stdout.head;
  expect(safe).toContain("NVM_DIR=/opt/nvm");
  expect(safe).toMatch(/PATH=.*:\/opt\/mine/);
  expect(safe).toContain("CALLGATE_TEST=set");
  expect(safe).not.toContain("secret");
  const all = createExec({
    ...login,
    env: { ...login.env },
    environment: { inherit: "all", ignoreDefaultExcludes: true },
  });
  expect((await all.run({ shell: "env" })).stdout.head).toContain("GITHUB_TOKEN=secret");
  await processes.close();
  rmSync(home, { recursive: true });
});

afterAll(() => rmSync(cwd, { recursive: true, force: true }));
