import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, readdirSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));
export const cli = join(root, "dist/cli.cjs");

/** The command as it is built; built first if a source is newer. */
export function ensureBuilt(): void {
  const newest = (folder: string): number =>
    Math.max(
      ...readdirSync(folder, { recursive: true, encoding: "utf8" }).map((name) => statSync(join(folder, name)).mtimeMs),
    );
  const built = (() => {
    try {
      return statSync(cli).mtimeMs;
    } catch {
      return 0;
    }
  })();
  if (Math.max(newest(join(root, "src")), newest(join(root, "web"))) > built)
    execFileSync(process.execPath, ["scripts/build.mjs", "--no-types"], { cwd: root });
}

export interface Finished {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunOptions {
  readonly cwd?: string;
  readonly env?: Record<string, string>;
  readonly input?: string;
}

/** A fresh folder for a test's state or workspace. */
export function tempFolder(name: string): string {
  return mkdtempSync(join(tmpdir(), `callgate-${name}-`));
}

/** Runs the real command without a terminal; its state is the test's own. */
export function run(args: readonly string[], options: RunOptions = {}): Promise<Finished> {
  return new Promise((resolve) => {
    const env = {
      PATH: process.env["PATH"] ?? "",
      HOME: tempFolder("home"),
      CALLGATE_HOME: tempFolder("state"),
      ...options.env,
    };
    const child = spawn(process.execPath, [cli, ...args], { cwd: options.cwd ?? tempFolder("work"), env });
    let stdout = "";
    let stderr = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => (stdout += text));
    child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
    child.on("close", (code) => resolve({ code, stdout, stderr }));
    child.stdin.on("error", () => undefined);
    child.stdin.end(options.input ?? "");
  });
}

/** JSON lines to values. */
export function lines(text: string): readonly Record<string, unknown>[] {
  return text
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}
