/**
 * Entry of `callgate/tools`. A built-in tool is declared and run like anybody's: this folder imports the public entry
 * and nothing else of the engine.
 */
import type { AnyTool } from "../index.ts";
import { byProfile, codingTools } from "./coding.ts";
import { internalTools } from "./internal/index.ts";

export { applyPatch, applyPatchFiles, applyPatchFunction } from "./apply-patch.ts";
export { toCommandResult } from "./command.ts";
export { execCommand } from "./exec-command.ts";
export { grepFiles } from "./grep-files.ts";
export { internalTools };
export { listDir } from "./list-dir.ts";
export { localShell } from "./local-shell.ts";
export { createPatchProgress, type PatchProgress, type PatchProgressReader } from "./patch/progress.ts";
export { readFile } from "./read-file.ts";
export { addCodeMode, type CodeModeOptions } from "./run-code.ts";
export { shell } from "./shell.ts";
export { shellCommand } from "./shell-command.ts";
export { strReplaceEditor } from "./str-replace-editor.ts";
export { updatePlan } from "./update-plan.ts";
export { viewImage } from "./view-image.ts";
export { webSearch, webSearchService, type WebSearch, type WebSearchResult } from "./web-search.ts";
export { writeStdin } from "./write-stdin.ts";

/**
 * Every built-in tool. A model sees those that its profile names: one way to run commands, one to
 * patch. A tool that is imported by its own name is always offered.
 */
export const builtins: readonly AnyTool[] = byProfile([...codingTools, ...internalTools]);
/** Types that the signatures above mention. */
export type { Chunk, ChunkLine, Hunk, UpdateHunk } from "./patch/parse.ts";
export type { ProgressOptions } from "./patch/progress.ts";
