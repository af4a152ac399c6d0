/** What a held run did, in words and as a diff: deletions first and never cut, folders as one line, git in git's words. */
import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";
import { join } from "node:path";
import { inflateSync } from "node:zlib";
import type { Denial } from "../../spec/access.ts";
import type { CapturedOutput } from "../../spec/capability.ts";
import type { Effect, EffectLine } from "../../spec/effects.ts";
import type { ProxiedRequest } from "../proxy.ts";
import { unifiedDiff } from "../diff-text.ts";

/** Both sides of a run: where the workspace is, and where its folder lies. */
export interface RunSides {
  readonly folder: string;
  readonly roots: readonly string[];
}

export function effectLines(list: readonly Effect[], sides?: RunSides): readonly EffectLine[] {
  const tops = list.filter((effect) => effect.inside === undefined && !isInGit(effect));
  const within = groupByFolder(list);
  const line = (mark: EffectLine["mark"]) => (effect: Effect) => ({
    mark,
    text: describe(effect, within.get(effect.path) ?? []),
    paths: [effect, ...(within.get(effect.path) ?? [])].map(({ path }) => path),
  });
  const of = (...kinds: readonly Effect["kind"][]) => tops.filter(({ kind }) => kinds.includes(kind));
  return [
    ...list.filter(isDangerousInGit).map((effect) => ({
      mark: "!" as const,
      text: `${describe(effect, [])}: git runs programs that are named there`,
      paths: [effect.path],
    })),
    ...of("removed").map(line("-")),
    ...of("changed", "mode").map(line("~")),
    ...of("added").map(line("+")),
    ...gitLines(list.filter(isInGit), sides),
  ];
}

/** What a held command met beside its own changes. */
export interface Beside {
  readonly denied: Denial | undefined;
  readonly exitCode: number | null;
  readonly requests: readonly ProxiedRequest[];
  readonly direct: string | undefined;
}

/** What fails in an overlay though it works on the disk below, by the words that programs say it with. */
const heldFailures: readonly (readonly [RegExp, string])[] = [
  [/cross-device link|\bEXDEV\b/i, "renaming a folder that was there does not work while held"],
  [
    /Value too large for defined data type|\bEOVERFLOW\b/i,
    "changing a file of another user or group in place does not work while held",
  ],
];

/** Undefined: it succeeded, or failed as it would have without being held, as far as its output says. */
export function whyDirect({
  exitCode,
  output,
}: {
  readonly exitCode: number | null;
  readonly output: Pick<CapturedOutput, "head" | "tail">;
}): string | undefined {
  if (exitCode === 0) return undefined;
  const said = `${output.head}\n${output.tail}`;
  return heldFailures.find(([pattern]) => pattern.test(said))?.[1];
}

/** How it failed, what it was refused, and whom it asked over the network: none of that is undone by dropping it. */
export function besideLines({ denied, exitCode, requests, direct }: Beside): readonly EffectLine[] {
  const line = (mark: EffectLine["mark"], text: string): EffectLine => ({ mark, text, paths: [] });
  const made = new Map<string, number>();
  for (const { method, host, port, allowed } of requests) {
    const key = `${allowed ? "asked" : "refused"}: ${method} ${host}:${port}`;
    made.set(key, (made.get(key) ?? 0) + 1);
  }
  return [
    ...(exitCode === 0
      ? []
      : [
          line(
            "!",
            `it ended with exit code ${exitCode ?? "none"}${direct === undefined ? "" : `; ${direct}, so it may have to run directly`}`,
          ),
        ]),
    ...(denied === undefined ? [] : [line("!", `refused: ${denied.what} ${denied.target ?? ""} (${denied.reason})`)]),
    ...Array.from(made, ([key, count]) => line("net", count === 1 ? key : `${key} (${count} times)`)),
  ];
}

/** Everything that comes or goes inside a folder, by that folder. */
function groupByFolder(list: readonly Effect[]): ReadonlyMap<string, readonly Effect[]> {
  const tops = new Map<string, string>();
  const groups = new Map<string, Effect[]>();
  for (const effect of list) {
    if (effect.inside === undefined) continue;
    const top = tops.get(effect.inside) ?? effect.inside;
    tops.set(effect.path, top);
    const group = groups.get(top);
    if (group) group.push(effect);
    else groups.set(top, [effect]);
  }
  return groups;
}

function describe(effect: Effect, inside: readonly Effect[]): string {
  const { path, type, typeBefore, target, otherNames } = effect;
  const facts = [
    ...(inside.length > 0 ? [counted(inside)] : sizes(effect)),
    ...(typeBefore === undefined ? [] : [`was a ${typeBefore}`]),
    ...(type === "file" || type === "folder" || type === "link" ? [] : [type]),
    ...modeWords(effect),
    ...(effect.touched ? ["only its time"] : []),
    ...(effect.attributes ? ["its attributes"] : []),
    ...(otherNames === undefined
      ? []
      : [`has ${otherNames} other ${otherNames === 1 ? "name" : "names"}, which keep the old content`]),
    ...(effect.conflict ? ["CHANGED BY SOMEBODY ELSE MEANWHILE"] : []),
  ];
  const name = type === "folder" && path !== "." ? `${path}/` : path;
  return [
    `${name}${target === undefined ? "" : ` -> ${target}`}`,
    ...(facts.length > 0 ? [`(${facts.join(", ")})`] : []),
  ].join(" ");
}

function sizes({ kind, size, sizeBefore }: Effect): readonly string[] {
  if (kind === "mode") return [];
  if (size !== undefined && sizeBefore !== undefined)
    return size === sizeBefore ? [] : [`${bytes(sizeBefore)} → ${bytes(size)}`];
  const one = size ?? sizeBefore;
  return one === undefined ? [] : [bytes(one)];
}

function modeWords({ kind, mode, modeBefore }: Effect): readonly string[] {
  if (mode === undefined || modeBefore === undefined) {
    return kind === "added" && mode !== undefined && isSetId(mode) ? [`mode ${mode}: runs as its owner`] : [];
  }
  if (mode === modeBefore) return [];
  return [`mode ${modeBefore} → ${mode}${isSetId(mode) ? ": runs as its owner" : ""}`];
}

function isSetId(mode: string): boolean {
  return (Number.parseInt(mode, 8) & 0o6000) !== 0;
}

function counted(inside: readonly Effect[]): string {
  const files = inside.filter(({ type }) => type !== "folder");
  const total = files.reduce((sum, { size, sizeBefore }) => sum + (size ?? sizeBefore ?? 0), 0);
  return `${files.length.toLocaleString("en")} ${files.length === 1 ? "file" : "files"}, ${bytes(total)}`;
}

function bytes(count: number): string {
  if (count < 1_000) return `${count} B`;
  const units = ["kB", "MB", "GB", "TB"];
  let [value, unit] = [count / 1_000, 0];
  while (value >= 1_000 && unit < units.length - 1) [value, unit] = [value / 1_000, unit + 1];
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}

// ---- git ----

const gitPath = /^(?:.*\/)?\.git(?:\/|$)/;

export function isInGit({ path }: Pick<Effect, "path">): boolean {
  return gitPath.test(path);
}

/** What makes git run something, or read its settings from elsewhere. */
const dangerous =
  /\.git\/(?:(?:modules|worktrees)\/.*\/)?(?:config(?:\.worktree)?|hooks(?:\/.*)?|info\/attributes|commondir|gitdir)$/;

export function isDangerousInGit({ path, type, kind }: Effect): boolean {
  // A new hooks folder alone runs nothing; its files are listed themselves.
  return dangerous.test(path) && !(type === "folder" && kind === "added");
}

function gitLines(list: readonly Effect[], sides: RunSides | undefined): readonly EffectLine[] {
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

/** `main: 1a04538 → a5c0d0a, 1 commit`. */
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

/** Of those that the run itself made: their objects are files of their own. */
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
    return undefined; // no object that git wrote
  }
}

// ---- contents ----

const maxReadBytes = 1024 * 1024;

/** Never through a link, never a pipe or a device, never more than a diff can show. */
function readSmall(path: string): Uint8Array | undefined {
  let fd: number;
  try {
    fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch {
    return undefined; // gone, closed to us, or a link
  }
  try {
    const stat = fstatSync(fd);
    if (!stat.isFile() || stat.size > maxReadBytes) return undefined;
    const data = new Uint8Array(stat.size);
    return data.subarray(0, readSync(fd, data, 0, data.length, 0));
  } finally {
    closeSync(fd);
  }
}

function readSides(effect: Effect, sides: RunSides | undefined): { before?: Uint8Array; after?: Uint8Array } {
  if (sides === undefined) return {};
  const root = Math.max(
    0,
    sides.roots.findIndex((one, at) => at > 0 && effect.path.startsWith(`${one}/`)),
  );
  const inside = root === 0 ? effect.path : effect.path.slice((sides.roots[root]?.length ?? 0) + 1);
  const before = effect.kind === "added" ? undefined : readSmall(join(sides.roots[root] ?? "", inside));
  const after = effect.kind === "removed" ? undefined : readSmall(join(sides.folder, `u${root}`, inside));
  return { ...(before ? { before } : {}), ...(after ? { after } : {}) };
}

const maxDiffFiles = 50;

/** Of the files that changed, then of those that are new, up to `maxBytes`; what is left out is said. */
export function effectsDiff(list: readonly Effect[], sides: RunSides, maxBytes = 64 * 1024): string | undefined {
  const shown = list.filter(
    ({ type, kind, touched, path }) => type === "file" && kind !== "removed" && !touched && !isInGit({ path }),
  );
  const changed = shown.filter(({ kind }) => kind === "changed");
  const added = shown.filter(({ kind, inside }) => kind === "added" && inside === undefined);
  let text = "";
  const files = [...changed, ...added];
  for (const [at, effect] of files.entries()) {
    if (at >= maxDiffFiles || text.length > maxBytes)
      return `${text.slice(0, maxBytes)}\n(The rest of the diff is left out.)\n`;
    const { before, after } = readSides(effect, sides);
    text += unifiedDiff({
      path: effect.path,
      before: effect.kind === "added" ? undefined : (before ?? null),
      after: after ?? null,
    });
  }
  if (text === "") return undefined;
  return text.length > maxBytes ? `${text.slice(0, maxBytes)}\n(The rest of the diff is left out.)\n` : text;
}
