/** Finds a patch that was written as a command. Anything but the plain forms is an ordinary command. */
import { resolve } from "node:path";
import { parsePatch } from "./parse.ts";
import { patchedPaths } from "./patch.ts";

export type PatchCommand =
  | { readonly kind: "patch"; readonly text: string; readonly workdir?: string }
  /** A patch where a command was expected, without the command's name. */
  | { readonly kind: "bare" };

/** `apply_patch PATCH` as words, or a shell line with one here-document, with or without `cd FOLDER &&` before it. */
export function findPatchCommand(
  command: { readonly argv: readonly string[] } | { readonly shell: string },
): PatchCommand | undefined {
  if ("shell" in command) return inScript(command.shell);
  const { argv } = command;
  const [first = "", second = ""] = argv;
  if (argv.length === 1) return isBarePatch(first) ? { kind: "bare" } : undefined;
  if (argv.length === 2 && isPatchName(first)) return { kind: "patch", text: second };
  const script = scriptOf(argv);
  return script === undefined ? undefined : inScript(script);
}

/** The absolute paths of the files that a patch will touch. If the patch cannot be read, it throws what is wrong. */
export function patchTargets(patch: Extract<PatchCommand, { kind: "patch" }>, cwd: string): readonly string[] {
  const folder = resolve(cwd, patch.workdir ?? "");
  return patchedPaths(parsePatch(patch.text)).map((path) => resolve(folder, path));
}

function isPatchName(word: string): boolean {
  return word === "apply_patch" || word === "applypatch";
}

function isBarePatch(text: string): boolean {
  return /^\s*\*\*\* Begin Patch\s*\n/.test(text);
}

/** The script of `bash -lc SCRIPT` and similar commands. */
function scriptOf(argv: readonly string[]): string | undefined {
  const [program = "", ...rest] = argv;
  const stem = program
    .replace(/^.*[\\/]/, "")
    .replace(/\.exe$/i, "")
    .toLowerCase();
  const script = rest.at(-1);
  const flags = rest.slice(0, -1).join(" ").toLowerCase();
  if (["bash", "zsh", "sh"].includes(stem)) return flags === "-lc" || flags === "-c" ? script : undefined;
  if (["pwsh", "powershell"].includes(stem)) return /^(?:-noprofile )?-command$/.test(flags) ? script : undefined;
  return stem === "cmd" && flags === "/c" ? script : undefined;
}

const folderWord = /^\s*cd[ \t]+(?:'([^'\n]+)'|"([^"$`\\\n]+)"|([^\s'"$`\\;&|<>()*?[\]{}~#!]+))[ \t]*&&[ \t]*/;
const heredocStart = /^\s*apply_?patch[ \t]*<<(-?)[ \t]*(?:'([^'\n]+)'|"([^"\n]+)"|([\w.-]+))[ \t]*\r?\n/;

function inScript(script: string): PatchCommand | undefined {
  if (isBarePatch(script)) return { kind: "bare" };
  const cd = folderWord.exec(script);
  const rest = cd ? script.slice(cd[0].length) : script;
  const start = heredocStart.exec(rest);
  if (!start) return undefined;
  const delimiter = start[2] ?? start[3] ?? start[4];
  const untab = (line: string) => (start[1] === "-" ? line.replace(/^\t+/, "") : line);
  const lines = rest.slice(start[0].length).split("\n").map(untab);
  const end = lines.findIndex((line) => line.replace(/\r$/, "") === delimiter);
  // Without its end, or with anything after it, the line is more than a patch.
  if (end < 0 || lines.slice(end + 1).some((line) => line.trim() !== "")) return undefined;
  const text = lines.slice(0, end).join("\n");
  const workdir = cd?.[1] ?? cd?.[2] ?? cd?.[3];
  return workdir === undefined ? { kind: "patch", text } : { kind: "patch", text, workdir };
}
