/**
 * Which backend works here, decided by trying them in order. The answer is kept on disk until the
 * kernel, the boot or a program changes, so a new process pays one file read.
 */
import { mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { isObject, parseJson } from "../../base/json.ts";
import type { Backend, ProbeResult } from "./backend.ts";
import type { Machine } from "./machine.ts";

export interface Rung {
  /** Stable across runs: the cache refers to it. */
  readonly id: string;
  readonly backend: Backend;
  /** Programs whose replacement makes an old answer worthless. */
  readonly programs: readonly string[];
}

export interface RungResult extends ProbeResult {
  readonly id: string;
  readonly name: string;
}

/** A lower rung may have won only because a higher one was missing or had a bad moment: that is looked at again. */
const lowerRungLastsMs = 60 * 60 * 1000;

/** The first rung that works, or undefined. */
export async function findRung(
  rungs: readonly Rung[],
  machine: Machine,
  now: () => number = Date.now,
): Promise<Rung | undefined> {
  const file = join(machine.stateDir, "sandbox-probe.json");
  const key = cacheKey(rungs, machine);
  const known = readCache(file, key);
  // Only a success is believed: what failed once may have been repaired since.
  const remembered = rungs.findIndex(({ id }) => id === known?.rung);
  const isFresh = remembered === 0 || (known !== undefined && now() - known.at < lowerRungLastsMs);
  if (remembered >= 0 && isFresh) return rungs[remembered];
  for (const rung of rungs) {
    if (!(await works(rung))) continue;
    writeCache(file, { key, rung: rung.id, at: now() });
    return rung;
  }
  return undefined;
}

/** Asked twice before it is given up: a machine under load must not end up with less protection. */
async function works({ backend }: Rung): Promise<boolean> {
  return (await backend.probe()).ok || (await backend.probe()).ok;
}

/** Every rung, tried now; for `doctor`. */
export async function tryRungs(rungs: readonly Rung[]): Promise<readonly RungResult[]> {
  const results: RungResult[] = [];
  for (const { id, backend } of rungs) results.push({ id, name: backend.name, ...(await backend.probe()) });
  return results;
}

function cacheKey(rungs: readonly Rung[], machine: Machine): string {
  const programs = [...new Set(rungs.flatMap(({ programs }) => programs))].map((path) => {
    const stat = statSync(path, { throwIfNoEntry: false });
    return `${path} ${stat?.mtimeMs ?? 0} ${stat?.size ?? 0}`;
  });
  return [machine.boot, machine.uid, ...rungs.map(({ id }) => id), ...programs].join("\n");
}

interface Remembered {
  readonly key: string;
  readonly rung: string;
  readonly at: number;
}

function readCache(file: string, key: string): Remembered | undefined {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch {
    return undefined; // never asked before
  }
  const parsed = parseJson(text);
  if (!parsed.ok || !isObject(parsed.value) || parsed.value["key"] !== key) return undefined;
  const [rung, at] = [parsed.value["rung"], parsed.value["at"]];
  return typeof rung === "string" && typeof at === "number" ? { key, rung, at } : undefined;
}

function writeCache(file: string, remembered: Remembered): void {
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    writeFileSync(file, JSON.stringify(remembered), { mode: 0o600 });
  } catch {
    // A read-only state folder costs the next process a probe, nothing else.
  }
}
