/**
 * Entry of `callgate/tools`, and the only list of the built-in tools. A built-in tool is declared and
 * run like anybody's: this folder imports the public entry and nothing else of the engine.
 */
import type { AnyTool } from "../index.ts";
import { applyPatch } from "./apply-patch.ts";
import { execCommand } from "./exec-command.ts";
import { grepFiles } from "./grep-files.ts";
import codeAnalyze from "./internal/code/analyze.ts";
import codeFormat from "./internal/code/format.ts";
import codeSearch from "./internal/code/search.ts";
import databaseQuery from "./internal/database/query.ts";
import databaseUpdate from "./internal/database/update.ts";
import fileCopy from "./internal/file/copy.ts";
import fileDelete from "./internal/file/delete.ts";
import fileList from "./internal/file/list.ts";
import fileMkdir from "./internal/file/mkdir.ts";
import fileMove from "./internal/file/move.ts";
import fileRead from "./internal/file/read.ts";
import fileWrite from "./internal/file/write.ts";
import networkDownload from "./internal/network/download.ts";
import networkRequest from "./internal/network/request.ts";
import systemEnv from "./internal/system/env.ts";
import systemExecute from "./internal/system/execute.ts";
import systemInfo from "./internal/system/info.ts";
import { listDir } from "./list-dir.ts";
import { localShell } from "./local-shell.ts";
import { readFile } from "./read-file.ts";
import { shell } from "./shell.ts";
import { shellCommand } from "./shell-command.ts";
import { strReplaceEditor } from "./str-replace-editor.ts";
import { updatePlan } from "./update-plan.ts";
import { viewImage } from "./view-image.ts";
import { webSearch } from "./web-search.ts";
import { writeStdin } from "./write-stdin.ts";

export { applyPatch, applyPatchFiles, applyPatchFunction } from "./apply-patch.ts";
export { toCommandResult } from "./command.ts";
export { execCommand } from "./exec-command.ts";
export { grepFiles } from "./grep-files.ts";
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

/** The set of tools named `internal_{group}_{action}`, each in the file that its name says. */
export const internalTools: readonly AnyTool[] = [
  codeAnalyze,
  codeFormat,
  codeSearch,
  databaseQuery,
  databaseUpdate,
  fileCopy,
  fileDelete,
  fileList,
  fileMkdir,
  fileMove,
  fileRead,
  fileWrite,
  networkDownload,
  networkRequest,
  systemEnv,
  systemExecute,
  systemInfo,
];

/**
 * Every built-in tool. A model sees those that its profile names: one way to run commands, one to
 * patch. A tool that is imported by its own name is always offered.
 */
export const builtins: readonly AnyTool[] = [
  applyPatch,
  execCommand,
  grepFiles,
  listDir,
  localShell,
  readFile,
  shell,
  shellCommand,
  strReplaceEditor,
  updatePlan,
  viewImage,
  webSearch,
  writeStdin,
  ...internalTools,
].map((tool): AnyTool => ({ ...tool, offered: "by-profile" }));
/** Types that the signatures above mention. */
export type { Chunk, ChunkLine, Hunk, UpdateHunk } from "./patch/parse.ts";
export type { ProgressOptions } from "./patch/progress.ts";
