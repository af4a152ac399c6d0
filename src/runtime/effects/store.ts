/** The runs that were kept and can be undone: what each of them was, and how much is stored for them. */
import { lstatSync, readdirSync, readFileSync, statfsSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { isObject, parseJson } from "../../base/json.ts";
import type { Effect, Settled } from "../../spec/effects.ts";
import type { HeldRun } from "../process/child.ts";

/** Stored with each run that was kept. */
export interface RunRecord {
  readonly run: string;
  readonly at: number;
  readonly command: readonly string[];
  readonly cwd: string;
  /** The session that ran it, if there was one. */
  readonly session?: string;
  /** The folders it wrote to, the workspace first. */
  readonly roots: readonly string[];
  readonly state: "kept" | "undone";
  /** When its state last changed, in milliseconds. */
  readonly since: number;
  readonly kept: Settled["kept"];
  readonly counts: Counts;
  /** How many bytes are stored so that it can be undone. */
  readonly bytes: number;
}

export type RunAbout = Pick<RunRecord, "at" | "command" | "cwd" | "session">;

export interface Counts {
  readonly added: number;
  readonly changed: number;
  readonly removed: number;
  readonly mode: number;
}

/** Counts files, and folders whose own mode changed. */
export function countEffects(list: readonly Effect[]): Counts {
  const counts = { added: 0, changed: 0, removed: 0, mode: 0 };
  for (const { kind, type } of list) if (type !== "folder" || kind === "mode") counts[kind] += 1;
  return counts;
}

export function writeRecord(folder: string, record: Omit<RunRecord, "state" | "since">): void {
  writeFileSync(join(folder, "run.json"), JSON.stringify(record), { mode: 0o600 });
}

/** Oldest first. A run without a record was never kept. */
export function readRuns(folder: string): readonly RunRecord[] {
  if (statSync(folder, { throwIfNoEntry: false }) === undefined) return [];
  return readdirSync(folder)
    .flatMap((name) => readRecord(join(folder, name)) ?? [])
    .toSorted((a, b) => a.at - b.at);
}

function readRecord(folder: string): RunRecord | undefined {
  try {
    const parsed = parseJson(readFileSync(join(folder, "run.json"), "utf8"));
    const state = readFileSync(join(folder, "state"), "utf8");
    const since = statSync(join(folder, "state")).mtimeMs;
    // This is our own file, written above. The state beside it is the launcher's and decides.
    return parsed.ok && isObject(parsed.value)
      ? ({ ...parsed.value, state, since } as unknown as RunRecord)
      : undefined;
  } catch {
    return undefined; // not kept, or not a folder of ours
  }
}

/** The run behind a record, with the user it has to be handled as. */
export function toRun({ run, roots }: RunRecord, place: string): HeldRun {
  const folder = join(place, run);
  const { uid, gid } = lstatSync(folder);
  const isRoot = process.getuid?.() === 0;
  return { id: run, folder, roots, ...(isRoot && uid !== 0 ? { uid, gid } : {}) };
}

export interface Bounds {
  readonly runs: number;
  readonly bytes: number;
}

const bounds: Bounds = { runs: 50, bytes: 2_000_000_000 };

/** Drops the oldest runs until the rest is within bounds: fifty runs, two gigabytes, a quarter of the free disk. */
export async function makeRoom(
  place: string,
  newest: string,
  drop: (run: HeldRun) => Promise<void>,
  most: Bounds = bounds,
): Promise<readonly string[]> {
  const runs = readRuns(place);
  const { bavail, bsize } = statfsSync(place);
  let total = runs.reduce((sum, { bytes }) => sum + bytes, 0);
  const limit = Math.min(most.bytes, (bavail * bsize + total) / 4);
  const pruned: string[] = [];
  for (const record of runs) {
    if (runs.length - pruned.length <= most.runs && total <= limit) break;
    if (record.run === newest) continue; // what was kept just now can always be undone
    await drop(toRun(record, place));
    pruned.push(record.run);
    total -= record.bytes;
  }
  return pruned;
}
