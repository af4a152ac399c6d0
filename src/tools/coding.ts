/** The list of the tools that a coding agent needs: the first that a session of the command loads. */
import type { AnyTool } from "../index.ts";
import { applyPatch } from "./apply-patch.ts";
import { execCommand } from "./exec-command.ts";
import { grepFiles } from "./grep-files.ts";
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

export const codingTools: readonly AnyTool[] = [
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
];

/** A model sees those that its profile names: one way to run commands, one to patch. */
export function byProfile(tools: readonly AnyTool[]): readonly AnyTool[] {
  return tools.map((tool) => ({ ...tool, offered: "by-profile" }));
}
