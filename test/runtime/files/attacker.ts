import { spawn } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { CallError } from "../../../src/base/error.ts";
import type { Files } from "../../../src/spec/capability.ts";
import { filesIn, newWorkspace } from "../../tools/workspace.ts";

/** Swaps the folder `d` for a link to the outside and back, and `f.txt` in it for a link, as fast as it can. */
const attack = `
import { renameSync, symlinkSync, unlinkSync, writeFileSync } from "node:fs";
const [ws, out] = process.argv.slice(1);
process.chdir(ws);
process.stdout.write("ready\\n");
const quiet = (run) => { try { run(); } catch {} };
for (;;) {
  for (let turn = 0; turn < 50; turn++) {
    quiet(() => { renameSync("d", "kept"); renameSync("link", "d"); });
    quiet(() => { renameSync("d", "link"); renameSync("kept", "d"); });
  }
  quiet(() => unlinkSync("d/f.txt"));
  quiet(() => symlinkSync(out + "/target.txt", "d/f.txt"));
}`;

export interface AttackResult {
  readonly writes: number;
  readonly succeeded: number;
  readonly refused: number;
  /** Files outside that were made or changed: must be none. */
  readonly outside: number;
  /** Reads of a file inside that gave what is outside: must be none. */
  readonly leaked: number;
}

/** Writes `count` times into a folder that another process swaps under our hands. */
export async function runAttack(count: number): Promise<AttackResult> {
  const parent = newWorkspace();
  const ws = join(parent, "ws");
  const out = join(parent, "out");
  mkdirSync(join(ws, "d"), { recursive: true });
  mkdirSync(out);
  writeFileSync(join(out, "target.txt"), "target");
  writeFileSync(join(out, "read.txt"), "outside");
  writeFileSync(join(ws, "d/read.txt"), "inside");
  symlinkSync(out, join(ws, "link"));
  const attacker = spawn(process.execPath, ["--input-type=module", "-e", attack, ws, out], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  await new Promise((resolve) => attacker.stdout.once("data", resolve));
  try {
    const files = filesIn(ws);
    let succeeded = 0;
    let leaked = 0;
    for (let index = 0; index < count; index++) {
      succeeded += (await attempt(files, index)) ? 1 : 0;
      leaked += (await leaks(files)) ? 1 : 0;
    }
    const made = readdirSync(out).filter((name) => name !== "target.txt" && name !== "read.txt").length;
    const changed = readFileSync(join(out, "target.txt"), "utf8") === "target" ? 0 : 1;
    return { writes: count, succeeded, refused: count - succeeded, outside: made + changed, leaked };
  } finally {
    attacker.kill("SIGKILL");
  }
}

async function leaks(files: Files): Promise<boolean> {
  try {
    const [whole, lines] = [await files.readText("d/read.txt"), await files.slice("d/read.txt", 1, 1)];
    return whole.text === "outside" || lines.lines[0] === "outside";
  } catch (error) {
    if (CallError.is(error)) return false;
    throw error;
  }
}

/** The kinds of change in turn: a fixed name, a new name, a new folder, a removal. */
async function attempt(files: Files, index: number): Promise<boolean> {
  try {
    if (index % 4 === 0) await files.write("d/f.txt", `written ${index}`, { evenIfChanged: true });
    if (index % 4 === 1) await files.write(`d/new-${index}.txt`, "x");
    if (index % 4 === 2) await files.write(`d/sub-${index}/x.txt`, "x", { parents: true });
    if (index % 4 === 3) await files.remove("d/target.txt");
    return true;
  } catch (error) {
    if (CallError.is(error)) return false;
    throw error;
  }
}
