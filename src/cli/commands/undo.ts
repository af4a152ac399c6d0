import { realpathSync } from "node:fs";
import { relative, resolve } from "node:path";
import { buildCommand } from "@stricli/core";
import { CallError } from "../../base/error.ts";
import { createFiles } from "../../runtime/files.ts";
import { createUndoLog, undoFile, undoTurn } from "../../workspace/undo.ts";
import { toggle } from "../config/flags.ts";
import { exitCodes, print, printJson, runCommand, say, UsageError } from "../io.ts";
import { visible } from "../chat/visible.ts";

interface Flags {
  readonly dryRun?: boolean;
  readonly json?: boolean;
  readonly cwd?: string;
}

export const command = buildCommand<Flags>({
  docs: {
    brief: "take back what the last turn's file tools did in this folder",
    fullDescription:
      "All of it or nothing: if one of the files has changed since, nothing is done and the reason is said.",
  },
  parameters: {
    flags: {
      dryRun: toggle("say what would be taken back, and do nothing"),
      json: toggle("print the outcome as JSON"),
      cwd: { kind: "parsed", parse: String, optional: true, brief: "the folder, if not this one" },
    },
  },
  func: (flags: Flags) => runCommand(() => undo(flags)),
});

async function undo({ dryRun, json, cwd = "." }: Flags): Promise<number> {
  const workspace = realpathSync(resolve(cwd));
  const log = createUndoLog(undoFile(workspace));
  const record = log.last();
  if (record === undefined) throw new UsageError(`there is no turn to take back in ${workspace}`, exitCodes.failed);
  const grant = {
    policy: "workspace-write",
    confined: true,
    write: [workspace],
    protect: [],
    mask: [],
    network: "off",
  } as const;
  try {
    const done = await undoTurn(record, createFiles({ workspace, cwd: workspace, grant }), { dryRun: dryRun === true });
    if (!dryRun) log.drop();
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
