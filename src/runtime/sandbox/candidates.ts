/**
 * Which backend works here, decided by trying them in order. The answer is kept on disk until the
 * kernel, the boot or a program changes, so that a new process pays for one file read.
 */
import { mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { isObject, parseJson } from "../../base/json.ts";
import type { Backend, ProbeResult } from "./backend.ts";
import type { Machine } from "./machine.ts";

export interface Candidate {
  /** The same in every run, because the cache refers to it. */
  readonly id: string;
  readonly backend: Backend;
  /** Programs whose replacement makes an old answer invalid. */
  readonly programs: readonly string[];
}

/** One backend, and what trying it showed. */
export interface CandidateResult extends ProbeResult {
  readonly id: string;
  readonly name: string;
}

/**
 * A later candidate may have won only because an earlier one was missing or failed once, so it is
 * tried again after this time.
 */
const laterCandidateLastsMs = 60 * 60 * 1000;

/** The first candidate that works, or undefined. */
export async function findCandidate(
  candidates: readonly Candidate[],
  machine: Machine,
  now: () => number = Date.now,
): Promise<Candidate | undefined> {
  const file = join(machine.stateDir, "sandbox-probe.json");
  const key = cacheKey(candidates, machine);
  const known = readCache(file, key);
  // Only a success is believed, because what failed once may have been repaired since.
  const remembered = candidates.findIndex(({ id }) => id === known?.candidate);
  const isFresh = remembered === 0 || (known !== undefined && now() - known.at < laterCandidateLastsMs);
  if (remembered >= 0 && isFresh) return candidates[remembered];
  for (const candidate of candidates) {
    if (!(await works(candidate))) continue;
    writeCache(file, { key, candidate: candidate.id, at: now() });
    return candidate;
  }
  return undefined;
}

/** Tried twice before it is given up, because a machine under load must not end up with less protection. */
async function works({ backend }: Candidate): Promise<boolean> {
  return (await backend.probe()).ok || (await backend.probe()).ok;
}

/** Every candidate, tried now; for `doctor`. */
export async function tryCandidates(candidates: readonly Candidate[]): Promise<readonly CandidateResult[]> {
  const results: CandidateResult[] = [];
  for (const { id, backend } of candidates) results.push({ id, name: backend.name, ...(await backend.probe()) });
  return results;
}

function cacheKey(candidates: readonly Candidate[], machine: Machine): string {
  const programs = [...new Set(candidates.flatMap(({ programs }) => programs))].map((path) => {
    const stat = statSync(path, { throwIfNoEntry: false });
    return `${path} ${stat?.mtimeMs ?? 0} ${stat?.size ?? 0}`;
  });
  return [machine.boot, machine.uid, ...candidates.map(({ id }) => id), ...programs].join("\n");
}

interface Remembered {
  readonly key: string;
  readonly candidate: string;
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
  const [candidate, at] = [parsed.value["candidate"], parsed.value["at"]];
  return typeof candidate === "string" && typeof at === "number" ? { key, candidate, at } : undefined;
}

function writeCache(file: string, remembered: Remembered): void {
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    writeFileSync(file, JSON.stringify(remembered), { mode: 0o600 });
  } catch {
    // If the state folder is read-only, the next process probes again, and nothing worse happens.
  }
}
