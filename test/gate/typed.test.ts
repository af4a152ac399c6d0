/** What is typed into a running process is judged like what is run. */
import { realpathSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createPolicy, type PolicyOptions } from "../../src/gate/options.ts";
import { decideAccess } from "../../src/gate/policy.ts";
import { createEngine } from "../../src/index.ts";
import type { ApprovalRequest } from "../../src/spec/stages.ts";
import { execCommand, writeStdin } from "../../src/tools/index.ts";

const workspace = realpathSync(mkdtempSync(join(tmpdir(), "callgate-typed-")));
const bash = ["/bin/bash", "-c", "bash --norc"];
const python = ["/bin/bash", "-c", "python3 -q"];
const deny = [{ command: "touch", decision: "deny" }] as const;

function decide(typed: readonly string[], shell: string, options: Partial<PolicyOptions> = {}) {
  const policy = createPolicy({ workspace, confinement: { name: "test", available: true }, ...options });
  const access = { commands: [{ shell, cwd: workspace, typed }] };
  return decideAccess({ tool: "write_stdin", access, mutates: true }, policy);
}

test("a line for a shell is read as a command line, and is never known to be harmless", () => {
  expect(decide(bash, "npm test\n").decision).toBe("allow");
  expect(decide(bash, "rm -rf src\n").decision).toBe("ask");
  expect(decide(["/bin/bash"], "rm -rf src\n").decision).toBe("ask");
  expect(decide(bash, "rm -rf src\n", { settings: { approval: "never" } }).decision).toBe("deny");
  expect(decide(bash, "ls\n", { settings: { approval: "unless-trusted" } }).decision).toBe("ask");
  expect(decide(bash, "touch a\n", { rules: deny }).decision).toBe("deny");
  expect(decide(bash, "env touch a\n", { rules: deny }).decision).toBe("deny");
});

test("half a line, or keys that edit one, cannot hide a denied command", () => {
  for (const piece of ["tou", "ls", "xtouch a\u007f\n", "\u001b[A\n", "toux\u0008ch a\n"])
    expect(decide(bash, piece, { rules: deny }).decision, JSON.stringify(piece)).toBe("deny");
  // Without a rule it is what the shell itself was when it was started.
  expect(decide(bash, "y").decision).toBe("ask");
});

test("what another program makes of it is not understood", () => {
  expect(decide(python, "import os; os.system('touch q')\n", { rules: deny }).decision).toBe("deny");
  expect(decide(python, "import os; os.system('tou' + 'ch q')\n", { rules: deny }).decision).toBe("deny");
  expect(decide(python, "1 + 1\n", { rules: deny }).reason).toContain("only running it tells");
  expect(decide(python, "1 + 1\n").decision).toBe("allow");
  expect(decide(python, "1 + 1\n").reason).toContain("what is typed into python3 is not understood");
  expect(decide(python, "1 + 1\n", { settings: { approval: "unless-trusted" } }).decision).toBe("ask");
  const nothing = { confinement: { name: "none", available: false } };
  expect(decide(python, "1 + 1\n", nothing).decision).toBe("ask");
});

test("who waits for input is the program that was started, or the one that a shell was told to run", () => {
  const said = (typed: readonly string[]) => decide(typed, "x y\n").reason;
  expect(said(["python3", "-c", "bash"])).toContain("typed into python3 is not understood");
  expect(said(["/bin/bash", "-c", "exec python3 -q"])).toContain("typed into python3 is not understood");
  expect(said(["/bin/sh", "-lc", "  node"])).toContain("typed into node is not understood");
  expect(said(["bash", "-c", "ls; cat"])).toContain("typed into it is not understood");
  expect(said(["bash", "-c", "exec"])).toContain("typed into it is not understood");
  expect(said(["bash", "script.sh"])).toContain("it is typed into bash");
  for (const typed of [["python3", "-c", "bash"], ["bash", "-c", "cat | sh"], []])
    expect(decide(typed, "ls\n", { rules: deny }).decision, typed.join(" ")).toBe("deny");
});

test("a line for zsh is read as zsh reads it", () => {
  expect(decide(["zsh"], "=touch a\n", { rules: deny }).decision).toBe("deny");
  expect(decide(["zsh"], "ls\n", { settings: { approval: "unless-trusted" } }).decision).toBe("ask");
});

test("a terminal opened outside the sandbox is an escalation for every line, told and asked", async () => {
  const asked: ApprovalRequest[] = [];
  const answers = ["once", "no"] as const;
  const engine = createEngine({
    workspace,
    tools: [execCommand, writeStdin],
    approver: { ask: async (request) => (asked.push(request), { answer: answers[asked.length - 1] ?? "no" }) },
  });
  const opened = await engine.call("exec_command", {
    cmd: "cat",
    tty: true,
    yield_time_ms: 300,
    sandbox_permissions: "require_escalated",
    justification: "a test",
  });
  const id = Number(/session (?:ID )?(\d+)/i.exec(JSON.stringify(opened.content))?.[1]);
  const typed = await engine.call("write_stdin", { session_id: id, chars: "hello\n" });
  expect(asked).toHaveLength(2);
  expect(asked[1]).toMatchObject({ access: { escalation: {}, commands: [{ shell: "hello\n" }] } });
  expect(typed).toMatchObject({ code: "rejected", ruling: { by: "person" } });
  expect(await engine.call("write_stdin", { session_id: id, yield_time_ms: 300 })).toMatchObject({ ok: true });
  expect(await engine.call("write_stdin", { session_id: 1, chars: "x\n" })).toMatchObject({ code: "invalid_input" });
  await engine.close();
});
