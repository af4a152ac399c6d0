/** Every recorded attack that concerns commands, in a real workspace with its setup, under the policy it names. */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { decideCommand } from "../../src/gate/policy.ts";
import { createPolicy } from "../../src/gate/gate.ts";
import type { Rule } from "../../src/gate/rules.ts";
import type { Decision } from "../../src/gate/modes.ts";

interface Attack {
  readonly id: string;
  readonly kind: string;
  readonly input: unknown;
  readonly expected: string;
  readonly policy?: string;
  readonly shell?: string;
  readonly setup?: readonly string[];
}

const file = new URL("../../../shared/data/attacks.jsonl", import.meta.url);
const attacks = readFileSync(file, "utf8")
  .trim()
  .split("\n")
  .map((line): Attack => JSON.parse(line) as Attack);
const commands = attacks.filter((attack) => attack.kind === "command");
const base = realpathSync(mkdtempSync(join(tmpdir(), "callgate-attacks-")));
afterAll(() => rmSync(base, { recursive: true, force: true }));

function prepare(attack: Attack): { readonly ws: string; readonly fill: (text: string) => string } {
  const root = join(base, attack.id);
  const ws = join(root, "ws");
  const out = join(root, "out");
  mkdirSync(join(ws, "src"), { recursive: true });
  mkdirSync(join(out, "victim"), { recursive: true });
  mkdirSync(join(root, "home"));
  writeFileSync(join(ws, "README.md"), "hello a world\nline two\n");
  writeFileSync(join(ws, "src/a.txt"), "a\n");
  writeFileSync(join(ws, "p.sh"), `#!/bin/sh\ntouch ${out}/pwned\n`, { mode: 0o755 });
  writeFileSync(join(out, "secret.txt"), "secret\n");
  const env = { PATH: process.env["PATH"] ?? "", HOME: join(root, "home"), GIT_CONFIG_NOSYSTEM: "1" };
  const git = (...args: string[]) => execFileSync("git", args, { cwd: ws, stdio: "ignore", env });
  git("init", "-q");
  git("add", "README.md");
  git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "one");
  const fill = (text: string) =>
    text.replaceAll("{WS}", ws).replaceAll("{OUT}", out).replaceAll("{HOME}", join(root, "home"));
  for (const step of attack.setup ?? []) execFileSync("bash", ["-c", fill(step)], { cwd: ws, stdio: "ignore", env });
  return { ws, fill };
}

function toRules(policy: string | undefined): readonly Rule[] {
  const match = /^(allow|deny):(.*)$/s.exec(policy ?? "");
  return match === null ? [] : [{ command: match[2]!, decision: match[1] === "allow" ? "allow" : "deny" }];
}

function toText(input: unknown): string {
  if (typeof input === "string") return input;
  const { repeat, times } = input as { repeat: string; times: number };
  return repeat.repeat(times);
}

const expectations: Record<string, (decision: Decision) => boolean> = {
  must_not_auto_approve: (decision) => decision !== "allow",
  must_not_leak: (decision) => decision !== "allow",
  must_be_denied: (decision) => decision === "deny",
  should_auto_approve: (decision) => decision === "allow",
};

test.each(commands.map((attack) => [attack.id, attack] as const))("%s", (_id, attack) => {
  const { ws, fill } = prepare(attack);
  const policy = createPolicy({
    settings: { approval: "unless-trusted", sandbox: "workspace-write" },
    workspace: ws,
    confinement: { name: "test", available: true },
    rules: toRules(attack.policy),
    home: join(ws, "../home"),
  });
  const dialect = attack.shell === "zsh" || attack.shell === "powershell" ? attack.shell : "bash";
  const verdict = decideCommand({ shell: fill(toText(attack.input)), dialect, cwd: ws }, policy);
  expect(
    expectations[attack.expected]?.(verdict.decision),
    `${attack.expected}, but ${verdict.decision}: ${verdict.reason}`,
  ).toBe(true);
});
