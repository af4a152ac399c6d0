/**
 * Which backend works here, decided by trying them in order. The answer is kept on disk until the
 * kernel, the boot or a program changes, so a new process pays one file read.
 */
import { mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
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

/** The first rung that works, or undefined. */
export async function findRung(rungs: readonly Rung[], machine: Machine): Promise<Rung | undefined> {
  const file = join(machine.stateDir, "sandbox-probe.json");
  const key = cacheKey(rungs, machine);
  const known = readCache(file, key);
  // Only a success is believed: what failed once may have been repaired since.
  const remembered = rungs.find(({ id }) => id === known);
  if (remembered !== undefined) return remembered;
  for (const rung of rungs) {
    if (!(await rung.backend.probe()).ok) continue;
    writeCache(file, key, rung.id);
    return rung;
  }
  return undefined;
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

function readCache(file: string, key: string): unknown {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch {
    return undefined;
  }
  const parsed = parseJson(text);
  return parsed.ok && isObject(parsed.value) && parsed.value["key"] === key ? parsed.value["rung"] : undefined;
}

function writeCache(file: string, key: string, rung: string): void {
  try {
    mkdirSync(join(file, ".."), { recursive: true, mode: 0o700 });
    writeFileSync(file, JSON.stringify({ key, rung }), { mode: 0o600 });
  } catch {
    // A read-only state folder costs the next process a probe, nothing else.
  }
}
