/** applyPatch: a patch's text to changed files, through the files it is given. */
import { CallError, result, type ToolContext, type ToolResult } from "../../index.ts";
import { commit, type Step } from "./commit.ts";
import { parsePatch, type Hunk, type Patch } from "./parse.ts";
import { createPlan } from "./plan.ts";

export interface PatchContext {
  readonly files: ToolContext["files"];
  readonly cwd: string;
  readonly progress?: ToolContext["progress"];
}

export interface PatchOptions {
  /** Relative paths start here; the context's own folder if left out. */
  readonly cwd?: string;
  /** As codex does: hunk by hunk, what was done before a failure stays, the first place that fits is taken. */
  readonly codex?: boolean;
  /** Plans and checks everything, writes nothing. */
  readonly dryRun?: boolean;
}

type PatchAction = "add" | "update" | "delete" | "move";

export interface PatchedFile {
  readonly path: string;
  readonly action: PatchAction;
  readonly from?: string;
}

/** A tool's result as it is; the rest is for callers that show the change. */
export interface PatchOutcome extends ToolResult {
  readonly content: string;
  readonly files: readonly PatchedFile[];
  readonly notes: readonly string[];
  /** Old and new text of every file, for showing the change. */
  readonly changes: readonly {
    readonly path: string;
    readonly before: string | undefined;
    readonly after: string | undefined;
  }[];
}

/** A file changed under our hands this often in a row is being written by somebody else. */
const maxAttempts = 20;

/** Applies a patch: all files, or none and a CallError that says why. */
export async function applyPatch(
  patchText: string,
  ctx: PatchContext,
  options: PatchOptions = {},
): Promise<PatchOutcome> {
  const patch = parsePatch(patchText);
  if (patch.hunks.length === 0) throw new CallError("invalid_input", "The patch changes no file.");
  ctx.progress?.({ message: "patch started", data: { type: "patch.started", files: patchedPaths(patch) } });
  const outcome =
    options.codex === true ? await applyOneByOne(patch, ctx, options) : await applyWhole(patch, ctx, options);
  ctx.progress?.({
    message: "patch ended",
    data: { type: "patch.ended", files: outcome.files.map(({ path, action }) => ({ path, action })) },
  });
  return outcome;
}

/** Every path a patch touches, as it spells them. */
export function patchedPaths(patch: Patch): readonly string[] {
  return patch.hunks.flatMap((hunk) =>
    hunk.kind === "update" && hunk.moveTo !== undefined ? [hunk.path, hunk.moveTo] : [hunk.path],
  );
}

async function applyWhole(patch: Patch, ctx: PatchContext, options: PatchOptions): Promise<PatchOutcome> {
  for (let attempt = 1; ; attempt++) {
    const plan = createPlan(ctx.files, options.cwd ?? ctx.cwd, false);
    for (const hunk of patch.hunks) await plan.add(hunk);
    try {
      if (options.dryRun !== true) await commit(plan.steps(), ctx.files);
      return toOutcome(patch.hunks.map(toPatched), patch.notes, toChanges(plan.steps()));
    } catch (error) {
      if (!CallError.is(error) || error.code !== "stale" || attempt === maxAttempts) throw error;
    }
  }
}

async function applyOneByOne(patch: Patch, ctx: PatchContext, options: PatchOptions): Promise<PatchOutcome> {
  const changes: PatchOutcome["changes"][number][] = [];
  for (const hunk of patch.hunks) {
    const plan = createPlan(ctx.files, options.cwd ?? ctx.cwd, true);
    await plan.add(hunk);
    if (options.dryRun !== true) await commit(plan.steps(), ctx.files);
    changes.push(...toChanges(plan.steps()));
  }
  return toOutcome(patch.hunks.map(toPatched), patch.notes, changes);
}

function toPatched(hunk: Hunk): PatchedFile {
  if (hunk.kind === "update" && hunk.moveTo !== undefined)
    return { path: hunk.moveTo, action: "move", from: hunk.path };
  return { path: hunk.path, action: hunk.kind };
}

export function toChanges(steps: readonly Step[]): PatchOutcome["changes"] {
  return steps.map(({ path, before, after }) => ({ path, before: before?.text, after: after?.text }));
}

const letters: Readonly<Record<PatchAction, string>> = { add: "A", update: "M", move: "M", delete: "D" };

export function toOutcome(
  files: readonly PatchedFile[],
  notes: readonly string[],
  changes: PatchOutcome["changes"],
): PatchOutcome {
  const named = files.map(({ path, action, from }) => ({ path, action, ...(from === undefined ? {} : { from }) }));
  const content = describeOutcome({ files, notes });
  return { ...result({ structured: { files: named } }), content, files, notes, changes };
}

/** What the model reads: added files first, then changed, then deleted, by the names it used. */
export function describeOutcome({ files, notes }: Pick<PatchOutcome, "files" | "notes">): string {
  const rows = files.map(({ path, action }) => `${letters[action]} ${path}`);
  const sorted = ["A", "M", "D"].flatMap((letter) => rows.filter((row) => row.startsWith(letter)));
  const remarks = notes.map((note) => `(Note: ${note}.)`);
  return ["Success. Updated the following files:", ...new Set(sorted), ...remarks].join("\n");
}
