/**
 * Held runs: what a command did, and what becomes of it. The launcher does the work (native/settle.c):
 * it renames by folder descriptors and finishes what was interrupted. This file talks to it.
 */
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { CallError } from "../../base/error.ts";
import { defined, isObject, parseJson } from "../../base/json.ts";
import type { Choice, Effect, EffectType, Settled } from "../../spec/effects.ts";
import type { HeldRun } from "../process/child.ts";
import { launcherPath } from "../process/launcher-path.ts";
import { countEffects, makeRoom, writeRecord } from "./store.ts";
import type { RunAbout } from "./store.ts";

/** The id of a new run. Ids sort by time and cannot be guessed. */
export function newRunId(now = Date.now()): string {
  return `r${now.toString(36)}-${randomBytes(3).toString("hex")}`;
}

/** The list is made when the command's last process is gone. It stays as it was shown. */
export async function listEffects(run: HeldRun): Promise<readonly Effect[]> {
  claim(run);
  return (await rawList(run)).map(({ effect }) => effect);
}

/** Marks the run as ours to decide, so that another process that tidies up leaves it alone while we live. */
function claim(run: HeldRun): void {
  const stat = readFileSync("/proc/self/stat", "utf8");
  const started = stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19];
  writeFileSync(join(run.folder, "owner"), `${process.pid} ${started}`, { mode: 0o644 });
}

/** Keeps what was chosen. A file that somebody else has changed in the meantime is left alone and named. */
export async function settleRun(run: HeldRun, choice: Choice, about: RunAbout): Promise<Settled> {
  const list = choice === "none" ? [] : await rawList(run);
  const wanted = list.filter(({ effect }) => isChosen(effect, choice));
  if (wanted.length === 0) {
    await dropRun(run);
    return { run: run.id, kept: "none", conflicts: [], steps: 0, bytes: 0 };
  }
  const outcome = await held(run, ["keep", run.folder], ranges(wanted.map(({ index }) => index)));
  const conflicts = pathsIn(outcome["conflicts"], run);
  const steps = Number(outcome["steps"]);
  const whole = conflicts.length === 0 && wanted.length === list.filter(({ effect }) => !effect.implied).length;
  // A folder's mode is set without a rename, so it is not among the steps.
  const isModeKept = ({ effect }: Raw) =>
    effect.kind === "mode" && effect.type === "folder" && !conflicts.includes(effect.path);
  const kept = whole ? "all" : steps > 0 || wanted.some(isModeKept) ? "part" : "none";
  const settled: Settled = { run: run.id, kept, conflicts, steps, bytes: Number(outcome["bytes"]) };
  if (kept === "none") {
    await dropRun(run);
    return settled;
  }
  const counts = countEffects(wanted.map(({ effect }) => effect).filter(({ path }) => !conflicts.includes(path)));
  const { roots } = run;
  writeRecord(run.folder, { run: run.id, ...about, roots, kept, counts, bytes: settled.bytes });
  const pruned = await makeRoom(dirname(run.folder), run.id, dropRun);
  return pruned.length === 0 ? settled : { ...settled, pruned };
}

export async function dropRun(run: Pick<HeldRun, "folder" | "uid" | "gid">): Promise<void> {
  await held(run, ["drop", run.folder]);
}

export interface Reversed {
  readonly ok: boolean;
  /** Paths that are not as the run left them. If there are any, nothing was done. */
  readonly conflicts: readonly string[];
}

/** Reverses all of it or nothing: a path that is no longer as the run left it stops it. `check-…` only looks. */
export async function reverseRun(run: HeldRun, what: "undo" | "redo" | "check-undo" | "check-redo"): Promise<Reversed> {
  const outcome = await held(run, [what, run.folder]);
  const conflicts = pathsIn(outcome["conflicts"], run);
  return { ok: conflicts.length === 0, conflicts };
}

/** Finishes what a kill interrupted, and removes runs that were never decided. Returns what was done to which run. */
export async function recoverRuns(place: Pick<HeldRun, "folder" | "uid" | "gid">): Promise<readonly Recovered[]> {
  if (statSync(place.folder, { throwIfNoEntry: false }) === undefined) return [];
  const lines = await ask(place, ["recover", place.folder]);
  return lines.map((line) => ({ run: String(line["run"]), state: String(line["state"]) as Recovered["state"] })); // as native/settle.c says it
}

/**
 * Finds a file that belongs to another user or group, because a sandbox has only one of each. Large
 * trees are searched in part.
 */
export async function findStranger(run: HeldRun): Promise<string | undefined> {
  const [line] = await ask(run, ["strangers", ...run.roots]);
  return line === undefined ? undefined : placed(line, run);
}

export interface Recovered {
  readonly run: string;
  readonly state: "kept" | "undone" | "dropped";
}

function isChosen(effect: Effect, choice: Choice): boolean {
  if (choice === "all") return !effect.implied;
  return choice !== "none" && !effect.implied && choice.paths.includes(effect.path);
}

/** `3 5-9`, the form that the launcher reads. */
function ranges(indices: readonly number[]): string {
  const words: string[] = [];
  for (let at = 0; at < indices.length; at++) {
    const from = indices[at]!;
    while (at + 1 < indices.length && indices[at + 1] === indices[at]! + 1) at++;
    words.push(from === indices[at] ? `${from}` : `${from}-${indices[at]}`);
  }
  return words.join("\n");
}

interface Raw {
  readonly index: number;
  readonly effect: Effect;
}

async function rawList(run: HeldRun): Promise<readonly Raw[]> {
  const lines = await ask(run, ["list", run.folder, ...run.roots]);
  if (lines.at(-1)?.["end"] !== true) throw new CallError("failed", "what the command did could not be read");
  const paths = new Map<number, string>();
  return lines.slice(0, -1).map((line) => {
    const path = placed(line, run);
    const index = Number(line["index"]);
    paths.set(index, path);
    const inside = paths.get(Number(line["inside"] ?? -1));
    return { index, effect: toEffect(line, path, inside) };
  });
}

type Line = Readonly<Record<string, unknown>>;

function toEffect(line: Line, path: string, inside: string | undefined): Effect {
  const number = (name: string) => (line[name] === undefined ? undefined : Number(line[name]));
  const text = (name: string) => (line[name] === undefined ? undefined : String(line[name]));
  const mark = (name: string) => (line[name] === true ? (true as const) : undefined);
  const mode = (name: string) =>
    line[name] === undefined ? undefined : Number(line[name]).toString(8).padStart(4, "0");
  return {
    path,
    // Both as native/effects.c writes them.
    kind: line["kind"] as Effect["kind"],
    type: line["type"] as EffectType,
    ...defined({
      typeBefore: text("typeBefore") as EffectType | undefined,
      size: number("size"),
      sizeBefore: number("sizeBefore"),
      mode: mode("mode"),
      modeBefore: mode("modeBefore"),
      target: text("target"),
      targetBefore: text("targetBefore"),
      otherNames: number("otherNames"),
      touched: mark("touched"),
      attributes: mark("attributes"),
      inside,
      implied: mark("implied"),
      conflict: mark("conflict"),
    }),
  };
}

function placed(line: Line, run: HeldRun): string {
  const path = String(line["path"]);
  const root = Number(line["root"]);
  return root === 0 ? path : join(run.roots[root] ?? "", path);
}

function pathsIn(value: unknown, run: HeldRun): readonly string[] {
  return Array.isArray(value) ? value.filter(isObject).map((line) => placed(line, run)) : [];
}

async function held(run: Pick<HeldRun, "uid" | "gid">, words: readonly string[], input = ""): Promise<Line> {
  return (await ask(run, words, input)).at(-1) ?? {};
}

/** Calls the launcher once, as the user who owns the files. It prints JSON lines; an `error` among them is thrown. */
function ask(
  { uid, gid }: Pick<HeldRun, "uid" | "gid">,
  words: readonly string[],
  input = "",
): Promise<readonly Line[]> {
  const launcher = launcherPath();
  if (launcher === undefined) throw new CallError("no_sandbox", "held runs need the launcher, and there is none");
  return new Promise((done, failed) => {
    const child = spawn(launcher, ["held", ...words], {
      stdio: ["pipe", "pipe", "ignore"],
      cwd: "/",
      env: {},
      ...defined({ uid, gid }),
    });
    const chunks: Buffer[] = [];
    child.stdout.on("data", (chunk: Buffer) => chunks.push(chunk));
    child.stdin.on("error", () => {}); // the launcher may end without reading it
    child.stdin.end(input);
    child.once("error", failed);
    child.once("close", (code, signal) => {
      const lines = Buffer.concat(chunks).toString("utf8").split("\n").filter(Boolean).map(toLine);
      const error = lines.find((line) => line["error"] !== undefined);
      if (error !== undefined) failed(new CallError("failed", errorWords(error), { data: error }));
      else if (code === 0 || code === 2) done(lines);
      else failed(new CallError("failed", `the launcher ended (${signal ?? code}) before it was done`));
    });
  });
}

function errorWords(line: Line): string {
  return `${String(line["error"])}: ${String(line["path"])} (${String(line["reason"])})`;
}

function toLine(text: string): Line {
  const parsed = parseJson(text);
  return parsed.ok && isObject(parsed.value) ? parsed.value : {};
}
