/** A throw-away workspace as the attack data describes it, and a policy for it. */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createPolicy, type PolicyOptions } from "../../src/gate/options.ts";
import { decideCommand, type CommandVerdict, type Policy } from "../../src/gate/policy.ts";
import type { Rule } from "../../src/gate/rules.ts";
import type { Command } from "../../src/spec/access.ts";

export interface TestWorkspace {
  readonly ws: string;
  readonly out: string;
  readonly home: string;
  /** `{WS}`, `{OUT}` and `{HOME}` filled in. */
  fill(text: string): string;
  /** The reverse, with one line for each text, as it is written in pages of what is told. */
  plain(text: string): string;
  run(line: string): void;
  policy(options?: Partial<PolicyOptions>): Policy;
  decide(command: string | Command, options?: Partial<PolicyOptions>): CommandVerdict;
  remove(): void;
}

export function createWorkspace(): TestWorkspace {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "callgate-gate-")));
  const [ws, out, home] = [join(root, "ws"), join(root, "out"), join(root, "home")];
  mkdirSync(join(ws, "src"), { recursive: true });
  mkdirSync(join(out, "victim"), { recursive: true });
  mkdirSync(join(home, ".ssh"), { recursive: true });
  writeFileSync(join(home, ".ssh/id_rsa"), "key\n");
  writeFileSync(join(ws, "README.md"), "hello a world\nline two\n");
  writeFileSync(join(ws, "package.json"), "{}\n");
  writeFileSync(join(ws, "src/a.txt"), "a\n");
  writeFileSync(join(ws, "p.sh"), `#!/bin/sh\ntouch ${out}/pwned\n`, { mode: 0o755 });
  writeFileSync(join(out, "secret.txt"), "secret\n");
  writeFileSync(join(out, "target.txt"), "target\n");
  const env = { PATH: process.env["PATH"] ?? "", HOME: home, GIT_CONFIG_NOSYSTEM: "1" };
  const run = (line: string) => void execFileSync("bash", ["-c", line], { cwd: ws, stdio: "ignore", env });
  run("git init -q && git add README.md src && git -c user.name=a -c user.email=a@b commit -qm one");
  const policy = (options: Partial<PolicyOptions> = {}) =>
    createPolicy({
      settings: { approval: "unless-trusted", sandbox: "workspace-write" },
      workspace: ws,
      confinement: { name: "test", available: true },
      home,
      ...options,
    });
  const fill = (text: string) => text.replaceAll("{WS}", ws).replaceAll("{OUT}", out).replaceAll("{HOME}", home);
  return {
    ws,
    out,
    home,
    fill,
    plain: (text) =>
      text.replaceAll(ws, "{WS}").replaceAll(out, "{OUT}").replaceAll(home, "{HOME}").replaceAll("\n", "⏎"),
    run: (line) => run(fill(line)),
    policy,
    decide: (command, options) =>
      decideCommand(typeof command === "string" ? { shell: fill(command), cwd: ws } : command, policy(options)),
    remove: () => rmSync(root, { recursive: true, force: true }),
  };
}

/** `allow:x`, `deny:x` as the attack data writes them. */
export function toRules(policy: string | undefined): readonly Rule[] {
  const match = /^(allow|deny|deny-read|deny-write|allow-write):(.*)$/s.exec(policy ?? "");
  if (match === null) return [];
  const [, kind, value = ""] = match;
  if (kind === "allow" || kind === "deny") return [{ command: value, decision: kind }];
  const [decision, access] = kind!.split("-") as ["allow" | "deny", "read" | "write"];
  return [{ path: value, access, decision }];
}
