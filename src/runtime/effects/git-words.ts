/**
 * What a held run did to a repository, in git's terms: which branch moved where, and which files
 * change what git obeys or runs.
 */
import { join } from "node:path";
import { inflateSync } from "node:zlib";
import type { Effect, EffectLine } from "../../spec/effects.ts";
import { maxReadBytes, readSides, readSmall, type RunSides } from "./contents.ts";

const gitPath = /^(?:.*\/)?\.git(?:\/|$)/;

export function isInGit({ path }: Pick<Effect, "path">): boolean {
  return gitPath.test(path);
}

/** Files that make git run something, or read its settings from elsewhere. */
const dangerous =
  /\.git\/(?:(?:modules|worktrees)\/.*\/)?(?:config(?:\.worktree)?|hooks(?:\/.*)?|info\/attributes|commondir|gitdir)$/;

export function isDangerousInGit({ path, type, kind }: Effect): boolean {
  // A new hooks folder by itself runs nothing; the files in it are listed separately.
  return dangerous.test(path) && !(type === "folder" && kind === "added");
}

export function gitLines(list: readonly Effect[], sides: RunSides | undefined): readonly EffectLine[] {
  const lines: EffectLine[] = [];
  const paths = (found: readonly Effect[]) => found.map(({ path }) => path);
  const refs = list.filter(({ path, type }) => type !== "folder" && /\.git\/(?:refs\/|HEAD$|packed-refs$)/.test(path));
  for (const ref of refs) lines.push({ mark: "git", text: refWords(ref, sides), paths: [ref.path] });
  const objects = list.filter(({ path }) => /\.git\/objects(?:\/|$)/.test(path));
  const files = objects.filter(({ type }) => type !== "folder");
  const [came, went] = [files.filter(({ kind }) => kind === "added"), files.filter(({ kind }) => kind === "removed")];
  if (came.length > 0) lines.push({ mark: "git", text: plural(came.length, "new object"), paths: paths(objects) });
  if (went.length > 0)
    lines.push({ mark: "git", text: `${plural(went.length, "object")} packed or removed`, paths: paths(objects) });
  const known = new Set([...refs, ...objects]);
  const index = list.filter(({ path }) => path.endsWith(".git/index"));
  if (index.length > 0) lines.push({ mark: "git", text: "index", paths: paths(index) });
  const rest = list.filter((one) => !known.has(one) && !index.includes(one) && !isDangerousInGit(one));
  const told = rest.filter(
    ({ path, type }) => type !== "folder" && !/\.git\/(?:logs\/|COMMIT_EDITMSG|ORIG_HEAD|FETCH_HEAD)/.test(path),
  );
  if (told.length > 0)
    lines.push({ mark: "git", text: told.map(({ path, kind }) => `${path} ${kind}`).join(", "), paths: paths(rest) });
  else if (rest.length > 0) lines.push({ mark: "git", text: "its own logs", paths: paths(rest) });
  return lines;
}

function plural(count: number, word: string): string {
  return `${count.toLocaleString("en")} ${word}${count === 1 ? "" : "s"}`;
}

/** Describes how a branch moved: `main: 1a04538 → a5c0d0a, 1 commit`. */
function refWords(effect: Effect, sides: RunSides | undefined): string {
  const name = effect.path.replace(/^.*\.git\//, "").replace(/^refs\/(?:heads\/)?/, "");
  if (effect.kind === "removed") return `${name}: removed`;
  const { before, after } = readSides(effect, sides);
  const [old, now] = [before, after].map((side) => (side ? Buffer.from(side).toString("latin1").trim() : ""));
  if (effect.path.endsWith("packed-refs")) return "references were packed";
  if (effect.path.endsWith("HEAD")) return `HEAD: ${short(old ?? "")} → ${short(now ?? "")}`;
  const commits = sides === undefined ? 0 : countCommits(now ?? "", old ?? "", effect, sides);
  const count = commits > 0 ? `, ${plural(commits, "commit")}` : "";
  return `${name}: ${old ? `${short(old)} → ` : "new, at "}${short(now ?? "")}${count}`;
}

function short(ref: string): string {
  return ref.startsWith("ref: ") ? ref.slice("ref: refs/heads/".length) : ref.slice(0, 7);
}

/** Counts only commits that the run itself made, because their objects are files of its own. */
function countCommits(from: string, to: string, { path }: Effect, sides: RunSides): number {
  const objects = `${path.slice(0, path.indexOf(".git/"))}.git/objects`;
  const seen = new Set<string>();
  const open = [from];
  for (let commit = open.pop(); commit !== undefined && seen.size < 1_000; commit = open.pop()) {
    if (commit === to || seen.has(commit) || !/^[0-9a-f]{40,64}$/.test(commit)) continue;
    const data = readSmall(join(sides.folder, "u0", objects, commit.slice(0, 2), commit.slice(2)));
    const text = data === undefined ? undefined : inflated(data);
    if (text === undefined || !text.startsWith("commit ")) continue;
    seen.add(commit);
    for (const parent of text.matchAll(/^parent ([0-9a-f]+)$/gm)) open.push(parent[1] ?? "");
  }
  return seen.size;
}

function inflated(data: Uint8Array): string | undefined {
  try {
    return inflateSync(data, { maxOutputLength: maxReadBytes }).toString("latin1");
  } catch {
    return undefined; // not an object that git wrote
  }
}
