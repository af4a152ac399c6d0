/**
 * Entry of `callgate/tools`, and the only list of the built-ins. A built-in is declared and run like
 * anybody's tool: this folder imports the public entry and nothing else of the engine.
 */
import type { AnyTool } from "../index.ts";
import { applyPatch } from "./apply-patch.ts";
import { listDir } from "./list-dir.ts";
import { readFile } from "./read-file.ts";
import { updatePlan } from "./update-plan.ts";

export { applyPatch, applyPatchFiles, applyPatchFunction } from "./apply-patch.ts";
export { listDir } from "./list-dir.ts";
export { applyPatch as runPatch, type PatchOptions, type PatchOutcome } from "./patch/patch.ts";
export { readFile } from "./read-file.ts";
export { updatePlan } from "./update-plan.ts";

/** Every built-in under its own name; profiles choose among them. */
export const builtins: readonly AnyTool[] = [applyPatch, listDir, readFile, updatePlan];
