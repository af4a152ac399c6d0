import { execFileSync, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));
export const cli = join(root, "dist/cli.cjs");

/** The command as it is built; built first if a source is newer. Test files run side by side, and only one builds. */
export function ensureBuilt(): void {
  while (existsSync(building) || isOld()) {
    if (takeTurn()) {
      try {
        if (isOld()) execFileSync(process.execPath, ["scripts/build.mjs", "--no-types"], { cwd: root });
      } finally {
        rmSync(building, { recursive: true });
      }
      return;
    }
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100);
  }
}

function isOld(): boolean {
  const newest = (folder: string): number =>
    Math.max(
      ...readdirSync(folder, { recursive: true, encoding: "utf8" }).map((name) => statSync(join(folder, name)).mtimeMs),
    );
  const built = statSync(cli, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  return Math.max(newest(join(root, "src")), newest(join(root, "web"))) > built;
}

/** Exists while somebody builds. */
const building = join(tmpdir(), `callgate-building-${createHash("sha256").update(root).digest("hex").slice(0, 12)}`);
/** A build takes seconds, so after this long nobody is at it any more. */
const abandonedMs = 120_000;

function takeTurn(): boolean {
  try {
    mkdirSync(building);
    return true;
  } catch {
    const since = statSync(building, { throwIfNoEntry: false })?.mtimeMs ?? Date.now();
    if (Date.now() - since > abandonedMs) rmSync(building, { recursive: true, force: true });
    return false;
  }
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
