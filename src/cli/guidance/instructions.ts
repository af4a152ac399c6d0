/**
 * What a model is told first: our own few lines, then what the user and the project have written for
 * agents. Nothing of a project is read before its content is trusted.
 */
import { existsSync, readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { configDir } from "../../base/paths.ts";
import type { Situation } from "../../spec/tool.ts";
import type { Config } from "../config/config.ts";
import { isTrusted } from "../policy/trust.ts";
import type { Skill } from "./prompts.ts";

/** A file with instructions, as far as it is sent. */
export interface GuidanceFile {
  readonly path: string;
  readonly text: string;
  readonly bytes: number;
  /** How many bytes were left out because there was no room. */
  readonly cut: number;
}

export interface Guidance {
  /** In the order in which they are sent: the user's own, then the project's from its root to this folder. */
  readonly files: readonly GuidanceFile[];
  readonly untrusted: readonly string[];
}

/** The first one that exists in a folder counts. The other is usually a link to it or a copy. */
const names = ["AGENTS.md", "CLAUDE.md"];
const defaultMaxBytes = 32 * 1024;
/** A larger file is not an instruction, and is not even read. */
const maxFileBytes = 1024 * 1024;
const maxFolders = 32;

export function readGuidance(config: Config, cwd: string, env: NodeJS.ProcessEnv): Guidance {
  const found: { readonly path: string; readonly bytes: Buffer }[] = [];
  const untrusted: string[] = [];
  const own = readSmall(join(configDir(env), "AGENTS.md"));
  if (own !== undefined) found.push(own);
  for (const folder of foldersDownTo(cwd)) {
    const path = names.map((name) => join(folder, name)).find((candidate) => existsSync(candidate));
    const file = path === undefined ? undefined : readSmall(path);
    if (file === undefined) continue;
    if (isTrusted(file.path, file.bytes.toString("utf8"))) found.push(file);
    else untrusted.push(file.path);
  }
  return { files: fit(found, config.instructions_max_bytes ?? defaultMaxBytes), untrusted };
}

/** From the repository's root to this folder; the folder alone where there is no repository. */
function foldersDownTo(cwd: string): readonly string[] {
  const folders = [cwd];
  for (let folder = cwd; folders.length < maxFolders; folder = dirname(folder)) {
    if (folder !== cwd) folders.unshift(folder);
    if (existsSync(join(folder, ".git"))) return folders;
    if (dirname(folder) === folder) break;
  }
  return [cwd];
}

function readSmall(path: string): { readonly path: string; readonly bytes: Buffer } | undefined {
  try {
    const stats = statSync(path);
    return stats.isFile() && stats.size <= maxFileBytes ? { path, bytes: readFileSync(path) } : undefined;
  } catch {
    return undefined; // most folders have none
  }
}

/** The nearest files matter most, so they get room first, and what is cut is the end of the farthest. */
function fit(
  found: readonly { readonly path: string; readonly bytes: Buffer }[],
  maxBytes: number,
): readonly GuidanceFile[] {
  let room = maxBytes;
  return found
    .toReversed()
    .map(({ path, bytes }) => {
      const kept = Math.min(room, bytes.length);
      room -= kept;
      const text = bytes.toString("utf8", 0, kept).replace(/\uFFFD$/, "");
      return { path, text, bytes: bytes.length, cut: bytes.length - kept };
    })
    .toReversed();
}

/** What a model is told first. It is short, and the same bytes for a whole session, so that prompt caches hit. */
export function writeInstructions(
  situation: Situation,
  own: string | undefined,
  { files }: Pick<Guidance, "files"> = { files: [] },
  skills: readonly Skill[] = [],
): string {
  const roots = situation.writableRoots.join(", ");
  const lines = [
    "You are an agent that works in a folder on the user's machine through tools.",
    "Look before you change: read files and run commands to learn what is there. Make the smallest change that does what was asked, then check that it works.",
    "Paths are relative to the folder unless absolute. Tools that only look may be called several at a time.",
    "A refused call says why; do not try to get around it. Say plainly what you did, what you could not do, and what is left.",
    "",
    `Folder: ${situation.cwd}`,
    `Platform: ${situation.platform}`,
    `Sandbox: ${situation.sandbox}${situation.sandbox === "workspace-write" ? ` (writable: ${roots})` : ""}; network: ${situation.network}`,
  ];
  const parts = [lines.join("\n"), ...(own === undefined ? [] : [own]), ...tellFiles(files), ...tellSkills(skills)];
  return parts.join("\n\n");
}

function tellFiles(files: readonly GuidanceFile[]): readonly string[] {
  const told = files.filter(({ text }) => text.trim() !== "");
  if (told.length === 0) return [];
  const parts = told.map(({ path, text, cut }) => {
    const end = cut === 0 ? "" : `\n[${cut} bytes of this file were left out]`;
    return `## ${path}\n\n${text.trim()}${end}`;
  });
  return [
    "# Instructions of the user and the project\nFollow them. Where two of them disagree, the later one counts, and what the user says in the conversation counts most.",
    ...parts,
  ];
}

function tellSkills(skills: readonly Skill[]): readonly string[] {
  if (skills.length === 0) return [];
  const rows = skills.map(({ name, description, path }) => `- ${name}: ${description} (${path})`);
  return [
    `# Skills\nEach is a file that says how to do something here. When a task fits one, read its file first and follow it.\n${rows.join("\n")}`,
  ];
}
