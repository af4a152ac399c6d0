/**
 * The files of the workspace that a command names or runs, with their present content. A yes to
 * `./build.sh` covers only what the script contained when the question was asked.
 */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { basename } from "node:path";
import type { Command } from "../spec/access.ts";
import { understand } from "./command/understand.ts";
import { ownFiles } from "./command/wrote.ts";
import { isInsideAny, statOf } from "./paths.ts";
import type { Policy } from "./policy-type.ts";

const maxWords = 400;
const maxFolders = 6;
/** A larger file is identified by its size, its time and its inode. */
const maxBytes = 32_000_000;

/** Each file once: where it is, whether it may be run, and its content. */
export function filesOf(commands: readonly Command[], policy: Policy): readonly (readonly string[])[] {
  const found = new Map<string, readonly string[]>();
  for (const command of commands)
    for (const file of filesOfOne(command, policy)) if (!found.has(file[0]!)) found.set(file[0]!, file);
  return [...found.values()];
}

function filesOfOne(command: Command, policy: Policy): readonly (readonly string[])[] {
  const known = policy.files?.get(command);
  if (known !== undefined) return known;
  const found = findFiles(command, policy);
  policy.files?.set(command, found);
  return found;
}

function findFiles(command: Command, policy: Policy): readonly (readonly string[])[] {
  const found: (readonly string[])[] = [];
  const looked = new Set<string>();
  const roots = [policy.workspace, ...policy.writable];
  const note = (word: string, folder: string): string | undefined => {
    const real = policy.real(word, folder);
    if (real === undefined || looked.has(real) || !isInsideAny(real, roots)) return undefined;
    looked.add(real);
    const stats = statOf(real);
    if (stats?.isFile() === true) found.push([real, (stats.mode & 0o111) === 0 ? "" : "runs", contentOf(real, stats)]);
    return stats?.isDirectory() === true ? real : undefined;
  };
  const { shell, argv, cwd = "." } = command;
  const words = wordsOf([...(shell === undefined ? [] : [shell]), ...(argv ?? [])]);
  const folders = new Set([policy.real(cwd, policy.workspace) ?? policy.workspace]);
  const programs = words.flatMap((word) => ownFiles.get(basename(word)) ?? []);
  for (const word of [...words, ...programs])
    for (const folder of folders) {
      const entered = note(word, folder);
      // `cd sub && ./build.sh`: later words may be relative to the folder that was entered.
      if (entered !== undefined && folders.size < maxFolders) folders.add(entered);
    }
  // Reading the line finds more: file patterns, and words beyond the limit above.
  for (const step of understand(command, policy).steps)
    for (const word of [...step.argv, ...step.runs, ...(ownFiles.get(step.name ?? "") ?? [])])
      for (const folder of step.found.cwds) note(word, folder);
  return found;
}

/** Whether the program reads this file by itself to learn what to do, as `make` does its Makefile. */
export function isOwnFile(program: string, path: string): boolean {
  return ownFiles.get(basename(program))?.includes(basename(path)) === true;
}

/** Every piece of the text that could be a path, whatever the shell makes of it. */
function wordsOf(texts: readonly string[]): readonly string[] {
  const pieces = texts.flatMap((text) => [text, ...text.slice(0, 100_000).split(/[\s'"=;|&<>(){}$`,:]+/)]);
  return [...new Set(pieces)].filter((piece) => piece !== "" && piece.length < 1_024).slice(0, maxWords);
}

/** The content of a file as a short text that changes with it. */
export function contentOf(path: string, stats: { size: number; mtimeMs: number; ino: number }): string {
  if (stats.size > maxBytes) return `${stats.size} ${stats.mtimeMs} ${stats.ino}`;
  try {
    return createHash("sha256").update(readFileSync(path)).digest("hex");
  } catch {
    // We cannot read it, so its size, time and inode have to identify it.
    return `${stats.size} ${stats.mtimeMs} ${stats.ino}`;
  }
}
