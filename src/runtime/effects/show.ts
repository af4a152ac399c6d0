/**
 * What a held run did, in words and as a diff. Deletions come first and are never cut, a folder is one
 * line, and git's files are described in git's terms.
 */
import type { Denial } from "../../spec/access.ts";
import type { CapturedOutput } from "../../spec/capability.ts";
import type { Effect, EffectLine } from "../../spec/effects.ts";
import type { ProxiedRequest } from "../proxy.ts";
import { unifiedDiff } from "../diff-text.ts";
import { readSides, type RunSides } from "./contents.ts";
import { gitLines, isDangerousInGit, isInGit } from "./git-words.ts";

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

/** What happened to a held command besides its own changes. */
export interface Beside {
  readonly denied: Denial | undefined;
  readonly exitCode: number | null;
  readonly requests: readonly ProxiedRequest[];
  readonly direct: string | undefined;
}

/** Operations that fail in an overlay but work on the disk below, recognised by the words programs print. */
const heldFailures: readonly (readonly [RegExp, string])[] = [
  [/cross-device link|\bEXDEV\b/i, "renaming a folder that was there does not work while held"],
  [
    /Value too large for defined data type|\bEOVERFLOW\b/i,
    "changing a file of another user or group in place does not work while held",
  ],
];

/** Undefined if it succeeded, or if its output shows no failure that being held could have caused. */
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

/**
 * How it failed, what it was refused, and which hosts it asked over the network. Dropping the run does
 * not undo any of that.
 */
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

/** Everything that appears or disappears inside a folder, grouped by that folder. */
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

const maxDiffFiles = 50;

/** First the files that changed, then the new ones, up to `maxBytes`. It says what is left out. */
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
