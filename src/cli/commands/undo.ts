import { existsSync, realpathSync } from "node:fs";
import { relative, resolve } from "node:path";
import { buildCommand } from "@stricli/core";
import { CallError } from "../../base/error.ts";
import { defined } from "../../base/json.ts";
import { createUndoLog, undoFile } from "../../workspace/undo.ts";
import { toggle } from "../config/flags.ts";
import { exitCodes, print, printJson, runCommand, say } from "../io.ts";
import { visible } from "../chat/visible.ts";
import { tellSession } from "../effects/tell-session.ts";
import { findWorkspaceOf, nextOf, undoable, type Reversal, type Undoable } from "../effects/undoable.ts";

interface Flags {
  readonly list?: boolean;
  readonly redo?: boolean;
  readonly dryRun?: boolean;
  readonly json?: boolean;
  readonly cwd?: string;
}

export const command = buildCommand<Flags, [string?]>({
  docs: {
    brief: "undo what the last turn's file tools or the last command did in this folder",
    fullDescription:
      "RUN names one of them (--list shows them all), also from another folder; without it the newest of this folder is taken back. All of it or nothing: if one of the files has changed since, nothing is done and the reason is said. --redo does again what was taken back. Commands that could not be held are listed 'by snapshot': what anybody changed in the folder while they ran goes back with them.",
  },
  parameters: {
    flags: {
      list: toggle("say what can be taken back, newest first, and do nothing"),
      redo: toggle("do again what was taken back last, or RUN"),
      dryRun: toggle("say what would be taken back, and do nothing"),
      json: toggle("print the outcome as JSON"),
      cwd: { kind: "parsed", parse: String, optional: true, brief: "the folder, if not this one", placeholder: "DIR" },
    },
    positional: {
      kind: "tuple",
      parameters: [{ parse: String, placeholder: "RUN", optional: true, brief: "a run or a turn of the list" }],
    },
  },
  func: (flags: Flags, run?: string) => runCommand(() => undo(flags, run)),
});

async function undo(flags: Flags, wanted: string | undefined): Promise<number> {
  const here = realpathSync(resolve(flags.cwd ?? "."));
  const all = await undoable(here, createUndoLog(undoFile(here)));
  if (flags.list) return showList(all, flags);
  const { redo = false } = flags;
  if (wanted === undefined) {
    const next = nextOf(all, redo);
    if (next === undefined) return refuse(`there is nothing to ${redo ? "do again" : "take back"} in ${here}`, flags);
    return reverseOne(next, here, flags);
  }
  const known = all.find(({ id }) => id === wanted);
  if (known !== undefined) return reverseOne(known, here, flags);
  const workspace = findWorkspaceOf(wanted, process.env);
  const words = `there is no run ${wanted} in ${here}`;
  if (workspace === undefined)
    return refuse(`${words} or in the folder of any recorded session (--cwd names another folder)`, flags, wanted);
  // Whoever named a folder meant that one, so no other is changed.
  if (flags.cwd !== undefined) return refuse(`${words}; it belongs to ${workspace}`, flags, wanted);
  if (!existsSync(workspace))
    return refuse(`${wanted} belongs to ${workspace}, which is no longer there`, flags, wanted);
  const there = await undoable(workspace, createUndoLog(undoFile(workspace)));
  const found = there.find(({ id }) => id === wanted);
  if (found === undefined) return refuse(`there is no run ${wanted} any more in ${workspace}`, flags, wanted);
  if (!flags.json) say(visible(`callgate: ${wanted} belongs to ${workspace}`));
  return reverseOne(found, workspace, flags);
}

async function reverseOne(found: Undoable, workspace: string, flags: Flags): Promise<number> {
  const { redo = false } = flags;
  if (found.state !== (redo ? "undone" : "kept"))
    return refuse(
      redo ? "it was not taken back" : "it was taken back already (callgate undo RUN --redo does it again)",
      flags,
      found.id,
    );
  return reverse(found, workspace, flags);
}

function refuse(error: string, { json }: Flags, run?: string): number {
  if (json) printJson({ ok: false, ...defined({ run }), error, conflicts: [] });
  else say(visible(`callgate: ${error}`));
  return exitCodes.failed;
}

function showList(all: readonly Undoable[], { json }: Flags): number {
  if (json) printJson(all.map((one) => one.json));
  else if (all.length === 0) say("callgate: there is nothing to take back here");
  else for (const one of all) print(visible(listLine(one)));
  return exitCodes.done;
}

function listLine({ id, at, what, state }: Undoable): string {
  const when = new Date(at).toISOString().replace("T", " ").slice(0, 19);
  return `${id}  ${when}  ${oneLine(what)}${state === "undone" ? "  (taken back)" : ""}`;
}

/** One line, whatever the command was. */
function oneLine(what: string): string {
  return what.replaceAll(/\s*\n\s*/g, " ");
}

async function reverse(one: Undoable, workspace: string, { dryRun = false, json = false }: Flags): Promise<number> {
  const done = await one.reverse(dryRun).catch((error: unknown): Reversal => {
    if (!CallError.is(error)) throw error;
    return { ok: false, conflicts: [], error: error.message };
  });
  const isRedo = one.state === "undone";
  const { session, what } = one;
  if (done.ok && !dryRun && session !== undefined)
    tellSession(session, { type: isRedo ? "effects.redone" : "effects.undone", run: one.id, what }, process.env);
  if (json) printJson(toJson(one, done, dryRun));
  else show(one, done, { workspace, dryRun });
  return done.ok ? exitCodes.done : exitCodes.failed;
}

function toJson(one: Undoable, { ok, conflicts, files, error }: Reversal, dryRun: boolean) {
  const changed = one.state === "kept" ? "undone" : "kept";
  const state = ok && !dryRun ? changed : one.state;
  return { ok, [one.kind === "files" ? "turn" : "run"]: one.id, state, conflicts, ...defined({ files, error }) };
}

function show(
  one: Undoable,
  { ok, conflicts, files, error }: Reversal,
  { workspace, dryRun }: { readonly workspace: string; readonly dryRun: boolean },
): void {
  const would = dryRun ? "would be " : "";
  if (!ok && one.kind === "command" && conflicts.length > 0) {
    const paths = conflicts.map((path) => `  ${path}`).join("\n");
    return say(visible(`callgate: nothing was done, because this was changed since:\n${paths}`));
  }
  if (!ok) return say(visible(`callgate: ${error ?? "nothing was done"}`));
  for (const { path, action } of files ?? []) print(`${would}${action} ${visible(relative(workspace, path))}`);
  if (one.kind === "files") return;
  const how = one.state === "undone" ? "done again" : "taken back";
  print(visible(`${would}${how}: ${oneLine(one.what)} (${one.id})`));
}
