import { realpathSync } from "node:fs";
import { relative, resolve } from "node:path";
import { buildCommand } from "@stricli/core";
import { CallError } from "../../base/error.ts";
import { defined } from "../../base/json.ts";
import { createUndoLog, filesToUndo, undoFile, undoTurn } from "../../workspace/undo.ts";
import type { UndoRecord } from "../../workspace/undo.ts";
import { toggle } from "../config/flags.ts";
import { exitCodes, print, printJson, runCommand, say } from "../io.ts";
import { visible } from "../chat/visible.ts";
import { runWords, undoable } from "../effects/undoable.ts";
import type { Undoable, UndoableRun } from "../effects/undoable.ts";

interface Flags {
  readonly list?: boolean;
  readonly redo?: boolean;
  readonly dryRun?: boolean;
  readonly json?: boolean;
  readonly cwd?: string;
}

export const command = buildCommand<Flags, [string?]>({
  docs: {
    brief: "take back what the last turn's file tools or the last kept command did in this folder",
    fullDescription:
      "RUN names one of them (--list shows them all); without it the newest is taken back. All of it or nothing: if one of the files has changed since, nothing is done and the reason is said. --redo does a run again that was taken back.",
  },
  parameters: {
    flags: {
      list: toggle("say what can be taken back, newest first, and do nothing"),
      redo: toggle("do again what was taken back last, or RUN"),
      dryRun: toggle("say what would be taken back, and do nothing"),
      json: toggle("print the outcome as JSON"),
      cwd: { kind: "parsed", parse: String, optional: true, brief: "the folder, if not this one" },
    },
    positional: {
      kind: "tuple",
      parameters: [{ parse: String, placeholder: "RUN", optional: true, brief: "a run or a turn of the list" }],
    },
  },
  func: (flags: Flags, run?: string) => runCommand(() => undo(flags, run)),
});

async function undo(flags: Flags, wanted: string | undefined): Promise<number> {
  const workspace = realpathSync(resolve(flags.cwd ?? "."));
  const log = createUndoLog(undoFile(workspace));
  const all = await undoable(workspace, log);
  if (flags.list) return showList(all, flags);
  const state = flags.redo ? "undone" : "kept";
  const found = all.find((one) => (wanted === undefined ? one.state === state : one.id === wanted));
  if (found === undefined) {
    const what = `nothing to ${flags.redo ? "do again" : "take back"}`;
    return refuse(`there is ${wanted === undefined ? what : `no run ${wanted}`} in ${workspace}`, flags, wanted);
  }
  if (found.kind === "command" && found.state !== state)
    return refuse(
      flags.redo ? "it was not taken back" : "it was taken back already (callgate undo RUN --redo does it again)",
      flags,
      found.id,
    );
  return found.kind === "files" ? undoFiles(found.turn, workspace, log, flags) : reverse(found, flags);
}

function refuse(error: string, { json }: Flags, run: string | undefined): number {
  if (json) printJson({ ok: false, ...defined({ run }), error, conflicts: [] });
  else say(visible(`callgate: ${error}`));
  return exitCodes.failed;
}

function showList(all: readonly Undoable[], { json }: Flags): number {
  if (json) printJson(all.map(toJson));
  else if (all.length === 0) say("callgate: there is nothing to take back here");
  else for (const one of all) print(visible(listLine(one)));
  return exitCodes.done;
}

function toJson(one: Undoable): unknown {
  if (one.kind === "files")
    return {
      turn: one.id,
      kind: one.kind,
      at: one.at,
      state: one.state,
      files: one.turn.files.map(({ path }) => path),
    };
  const { run, command, cwd, kept, counts, bytes } = one.record;
  return { run, kind: one.kind, at: one.at, state: one.state, command, cwd, kept, counts, bytes };
}

function listLine(one: Undoable): string {
  const when = new Date(one.at).toISOString().replace("T", " ").slice(0, 19);
  const what = one.kind === "files" ? `file tools: ${one.turn.files.length} files` : runWords(one.record);
  return `${one.id}  ${when}  ${what}${one.state === "undone" ? "  (taken back)" : ""}`;
}

async function reverse({ run }: UndoableRun, { redo, dryRun, json }: Flags): Promise<number> {
  const { reverseRun } = await import("../../runtime/effects/runs.ts");
  try {
    const { ok, conflicts } = await reverseRun(run, `${dryRun ? "check-" : ""}${redo ? "redo" : "undo"}` as const);
    const state = dryRun || !ok ? (redo ? "undone" : "kept") : redo ? "kept" : "undone";
    if (json) printJson({ ok, run: run.id, state, conflicts });
    else if (ok) print(`${dryRun ? "would be " : ""}${redo ? "done again" : "taken back"} ${run.id}`);
    else
      say(
        visible(
          `callgate: nothing was done, because this was changed since:\n${conflicts.map((path) => `  ${path}`).join("\n")}`,
        ),
      );
    return ok ? exitCodes.done : exitCodes.failed;
  } catch (error) {
    if (!CallError.is(error)) throw error;
    if (json) printJson({ ok: false, run: run.id, error: error.message, conflicts: [] });
    else say(visible(`callgate: ${error.message}`));
    return exitCodes.failed;
  }
}

async function undoFiles(
  record: UndoRecord,
  workspace: string,
  log: ReturnType<typeof createUndoLog>,
  { dryRun, json, redo }: Flags,
): Promise<number> {
  if (redo) return refuse("it was not taken back", defined({ json }), record.turn);
  try {
    const done = await undoTurn(record, filesToUndo(workspace), { dryRun: dryRun === true });
    if (!dryRun) log.drop(record);
    if (json) printJson({ ok: true, turn: record.turn, files: done });
    else
      for (const { path, action } of done)
        print(`${dryRun ? "would be " : ""}${action} ${visible(relative(workspace, path))}`);
    return exitCodes.done;
  } catch (error) {
    if (!CallError.is(error)) throw error;
    if (json) printJson({ ok: false, turn: record.turn, error: error.message });
    else say(visible(`callgate: ${error.message}`));
    return exitCodes.failed;
  }
}
