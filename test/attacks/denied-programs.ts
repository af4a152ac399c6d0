/** A workspace, and one line run in it under a deny rule without the gate's reading: only the sandbox stands in its way. */
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { toDeniedProgram } from "../../src/gate/command/prefix.ts";
import { compileRules } from "../../src/gate/rules.ts";
import { createExec } from "../../src/runtime/exec.ts";
import { createProcesses } from "../../src/runtime/processes.ts";
import { createSandbox, trySandboxes } from "../../src/runtime/sandbox/sandbox.ts";
import type { Grant } from "../../src/spec/access.ts";
import type { ExecResult } from "../../src/spec/capability.ts";

export const found = await trySandboxes();
export const works = (id: string) => found.some((candidate) => candidate.id === id && candidate.ok);

/** The file `f`, a README, an archive, two commits, and a remote that takes pushes. */
export function makeWorkspace(): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "callgate-denied-")));
  const git = (...words: string[]) =>
    execFileSync("git", ["-c", "user.name=t", "-c", "user.email=t@t", ...words], { cwd: folder, stdio: "ignore" });
  for (const [name, text] of [
    ["f", "precious\n"],
    ["README.md", "hello\n"],
  ] as const)
    writeFileSync(join(folder, name), text);
  execFileSync("tar", ["cf", "a.tar", "README.md"], { cwd: folder });
  git("init", "-q", "-b", "main");
  git("add", "README.md");
  git("commit", "-qm", "one");
  writeFileSync(join(folder, "README.md"), "hello again\n");
  git("commit", "-qam", "two");
  writeFileSync(join(folder, "README.md"), "hello once more\n");
  git("init", "-q", "--bare", "remote.git");
  git("config", "remote.origin.url", join(folder, "remote.git"));
  git("config", "push.default", "current");
  return folder;
}

/** Whether the line had the effect of the program it may not start. */
export function hadEffect(deny: string, folder: string): boolean {
  return deny.startsWith("git push")
    ? existsSync(join(folder, "remote.git", "refs", "heads", "main"))
    : !existsSync(join(folder, "f"));
}

export function denials(...commands: readonly string[]): Grant["denied"] {
  const rules = compileRules(commands.map((command) => ({ command, decision: "deny" as const })));
  return rules.denials.map((rule) => toDeniedProgram(rule, "/"));
}

export interface Wall {
  run(line: string, deny: readonly string[]): Promise<{ readonly folder: string; readonly result: ExecResult | Error }>;
  close(): Promise<void>;
}

/** Lines run one after the other, each in a workspace of its own. */
export function createWall(backend: string, launcher: string | null | undefined): Wall {
  const sandbox = createSandbox({ only: backend, ...(launcher === undefined ? {} : { launcher }) });
  const processes = createProcesses(launcher === undefined ? {} : { launcher: launcher ?? "off" });
  const folders: string[] = [];
  return {
    async run(line, deny) {
      const folder = makeWorkspace();
      folders.push(folder);
      const grant: Grant = {
        policy: "workspace-write",
        confined: true,
        write: [folder],
        protect: [],
        mask: [],
        network: "off",
        ...(deny.length === 0 ? {} : { denied: denials(...deny)! }),
      };
      const env = { PATH: process.env["PATH"] ?? "", HOME: folder, WS: folder };
      const signal = new AbortController().signal;
      const exec = createExec({ processes, sandbox, grant, cwd: folder, env, signal, shell: "/bin/bash" });
      const result = await exec
        .run({ shell: line, login: false, timeoutMs: 30_000 })
        .catch((error: unknown) => (error instanceof Error ? error : new Error(String(error))));
      return { folder, result };
    },
    async close() {
      await processes.close();
      await sandbox.close();
      for (const folder of folders) rmSync(folder, { recursive: true, force: true });
    },
  };
}
