/** Workspaces whose commands are held, for the tests of effects: as this user, and as root for somebody else. */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  chownSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { listEffects, settleRun } from "../../../src/runtime/effects/runs.ts";
import { StartError, type HeldRun } from "../../../src/runtime/process/child.ts";
import { launcherPath } from "../../../src/runtime/process/launcher-path.ts";
import { runToEnd } from "../../../src/runtime/process/run.ts";
import { createProcesses } from "../../../src/runtime/processes.ts";
import { createSandbox } from "../../../src/runtime/sandbox/sandbox.ts";
import type { Grant } from "../../../src/spec/access.ts";
import type { Choice, Effect, Settled } from "../../../src/spec/effects.ts";

export interface HeldWorkspace {
  readonly workspace: string;
  readonly home: string;
  /** Runs a bash line held, and leaves it undecided. */
  hold(line: string, grant?: Partial<Grant>): Promise<Undecided>;
  /** The same line, confined alike and written directly, in a folder of the same owner. */
  direct(line: string, folder?: string): Promise<number | null>;
  /** An empty folder beside the workspace, of the same owner. */
  sibling(name: string): string;
  close(): Promise<void>;
}

export interface Undecided {
  readonly run: HeldRun;
  readonly exitCode: number | null;
  readonly output: string;
  readonly effects: readonly Effect[];
  settle(choice: Choice): Promise<Settled>;
}

/** Who owns the workspace; root can also act for somebody else. */
export const owners = process.getuid?.() === 0 ? ([0, 4242] as const) : ([process.getuid?.() ?? 0] as const);

export const canHold = process.platform === "linux" && (await whyNot()) === undefined;

async function whyNot(): Promise<string | undefined> {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "held-probe-")));
  const sandbox = createSandbox({ machine: { stateDir: folder } });
  try {
    return await sandbox.whyNotHeld(grantFor(folder), folder);
  } finally {
    await sandbox.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

export function grantFor(workspace: string, more: Partial<Grant> = {}): Grant {
  return {
    policy: "workspace-write",
    confined: true,
    write: [workspace],
    protect: [".git", ".callgate"],
    mask: [],
    network: "off",
    ...more,
  };
}

export function createHeldWorkspace(uid: number = owners[0]): HeldWorkspace {
  const base = realpathSync(mkdtempSync(join(tmpdir(), "held-")));
  const own = (path: string) => {
    mkdirSync(path, { mode: 0o755 });
    chownSync(path, uid, uid);
    return path;
  };
  if (uid !== process.getuid?.()) chownSync(base, uid, uid);
  const workspace = own(join(base, "ws"));
  const home = join(base, "home");
  const sandbox = createSandbox({ machine: { stateDir: home } });
  const processes = createProcesses();
  const env = { PATH: process.env["PATH"] ?? "/usr/bin:/bin", LC_ALL: "C", HOME: "/nowhere" };

  /** Sockets of tests that run beside this one come and go while a sandbox is built, which then is built once more. */
  async function run(line: string, cwd: string, grant: Grant) {
    return runOnce(line, cwd, grant).catch((error: unknown) => {
      if (!(error instanceof StartError) || error.step !== "sandbox") throw error;
      return runOnce(line, cwd, grant);
    });
  }

  async function runOnce(line: string, cwd: string, grant: Grant) {
    const launch = { argv: ["/bin/bash", "-c", line], cwd, env, grant };
    const confined = await sandbox.confine(launch, { apart: true });
    const signal = new AbortController().signal;
    const end = await runToEnd(processes.spawner, confined, { maxOutputBytes: 1e6, onOutput: undefined, signal });
    await confined.cleanup(end);
    return { confined, end };
  }

  return {
    workspace,
    home,
    async hold(line, grant = {}) {
      const at = Date.now();
      const { confined, end } = await run(line, workspace, grantFor(workspace, { ...grant, writes: "held" }));
      const held = confined.run!;
      return {
        run: held,
        exitCode: end.exitCode,
        output: end.output.head,
        effects: await listEffects(held),
        settle: (choice) => settleRun(held, choice, { at, command: ["bash", "-c", line], cwd: workspace }),
      };
    },
    async direct(line, folder = workspace) {
      return (await run(line, folder, grantFor(folder, { protect: [] }))).end.exitCode;
    },
    sibling: (name) => own(join(base, name)),
    async close() {
      await processes.close();
      await sandbox.close();
      spawnSync("chmod", ["-R", "u+rwX", base]);
      rmSync(base, { recursive: true, force: true });
    },
  };
}

/** One launcher call as the run's owner, killed before its Nth change of the disk. */
export function heldCall(run: HeldRun, words: readonly string[], stop?: number, input = ""): number | null {
  const { status } = spawnSync(launcherPath()!, ["held", ...words], {
    input,
    cwd: "/",
    env: stop === undefined ? {} : { CALLGATE_TEST_STOP: String(stop) },
    ...(run.uid === undefined ? {} : { uid: run.uid, gid: run.gid }),
  });
  return status;
}

export interface Seen {
  readonly path: string;
  readonly what: string;
}

/** Everything below a folder and the folder itself: `content` for what a program can read, `exact` for the disk as it is. */
export function snapshot(folder: string, how: "content" | "times" | "exact"): readonly string[] {
  const found: string[] = [];
  const walk = (path: string, name: string) => {
    try {
      see(path, name);
    } catch (error) {
      // Only root sees what modes close to everybody.
      if (!(error instanceof Error && "code" in error && error.code === "EACCES")) throw error;
      found.push(`${name} closed`);
    }
  };
  const see = (path: string, name: string) => {
    const stat = lstatSync(path, { bigint: true });
    const kind = stat.isDirectory() ? "folder" : stat.isSymbolicLink() ? "link" : stat.isFile() ? "file" : "other";
    const content =
      kind === "file"
        ? createHash("sha256").update(readFileSync(path)).digest("hex").slice(0, 12)
        : kind === "link"
          ? readlinkSync(path)
          : "";
    const facts = [name, kind, (stat.mode & 0o7777n).toString(8), stat.uid, stat.gid, content];
    if (how !== "content") facts.push(stat.mtimeNs, kind === "folder" ? 0n : stat.ino);
    if (how === "exact") facts.push(stat.ctimeNs, stat.nlink, stat.ino);
    found.push(facts.join(" "));
    if (kind === "folder") for (const one of readdirSync(path).toSorted()) walk(join(path, one), `${name}/${one}`);
  };
  walk(folder, ".");
  return found;
}
