/** Rules about what a held command did: conditions on the list of its effects, all of which must hold. */
import { dirname, resolve } from "node:path";
import type { Effect } from "../spec/effects.ts";
import type { EffectCondition } from "./effect-condition.ts";
import { isStricter } from "./modes.ts";
import { isInside } from "./paths.ts";
import { pathMatcher, ruleName, type Rule } from "./rules.ts";
import { findName } from "./run-later.ts";
import type { Verdict } from "./verdict.ts";

/** What a condition needs to know besides the effects. */
export interface EffectScene {
  readonly workspace: string;
  readonly protect: readonly string[];
  /** Whether git tracks this path. Called only if a rule mentions it. */
  readonly isTracked: (path: string) => boolean;
}

/** True if every part of the condition holds for this list. */
export function matchEffects(list: readonly Effect[], condition: EffectCondition, scene: EffectScene): boolean {
  const { only, removes, more_than, mode, links_out, bytes_over } = condition;
  const fits = (path: string, patterns: readonly string[]) =>
    pathMatcher(patterns, scene.workspace)(absolute(path, scene));
  const files = list.filter(({ type, kind }) => type !== "folder" || kind === "mode");
  if (
    only !== undefined &&
    (list.length === 0 || !list.every((effect) => fits(effect.path, only) || isWay(effect, only)))
  )
    return false;
  if (removes !== undefined) {
    const patterns = typeof removes === "string" ? [removes] : removes;
    const gone = list.filter(({ kind, typeBefore }) => kind === "removed" || typeBefore !== undefined);
    const isMeant = ({ path }: Effect) =>
      patterns.some((pattern) => (pattern === "tracked" ? scene.isTracked(path) : fits(path, [pattern])));
    if (!gone.some(isMeant)) return false;
  }
  if (more_than !== undefined && files.length <= more_than) return false;
  if (bytes_over !== undefined && written(list) <= bytes_over) return false;
  if (mode !== undefined && !list.some((effect) => changesMode(effect, mode))) return false;
  if (links_out === true && !list.some((effect) => leadsOut(effect, scene))) return false;
  if (condition.protected === true && !list.some((effect) => isProtected(effect, scene))) return false;
  return true;
}

/** True for a new folder on the way to what a pattern names: `dist` for `dist/**`. */
function isWay({ type, kind, path }: Effect, patterns: readonly string[]): boolean {
  return type === "folder" && kind === "added" && patterns.some((pattern) => pattern.startsWith(`${path}/`));
}

function written(list: readonly Effect[]): number {
  return list.reduce((sum, { kind, size = 0 }) => sum + (kind === "added" || kind === "changed" ? size : 0), 0);
}

function changesMode({ type, mode, modeBefore = "0000" }: Effect, which: true | "executable" | "set-id"): boolean {
  if (type !== "file" || mode === undefined) return false;
  const gained = Number.parseInt(mode, 8) & ~Number.parseInt(modeBefore, 8);
  return ((gained & 0o111) !== 0 && which !== "set-id") || ((gained & 0o6000) !== 0 && which !== "executable");
}

/** An effect in the workspace is named by its path there, and one in another writable folder by its whole path. */
function absolute(path: string, { workspace }: EffectScene): string {
  return resolve(workspace, path);
}

/** The target is followed as text, because what it names may be held back too. */
function leadsOut({ kind, target, path }: Effect, scene: EffectScene): boolean {
  if (target === undefined || kind === "removed") return false;
  return !isInside(resolve(dirname(absolute(path, scene)), target), scene.workspace);
}

/** Files that make git run something, or read its settings from elsewhere. */
const gitRuns =
  /(?:^|\/)\.git\/(?:(?:modules|worktrees)\/.*\/)?(?:config(?:\.worktree)?|hooks\/.+|info\/attributes|commondir|gitdir)$/;

/** Files that other programs run or obey. A person always agrees to them one by one. */
export function isProtected({ path, type, kind }: Effect, scene: EffectScene): boolean {
  if (gitRuns.test(path)) return true;
  // A repository that appeared or disappeared is not merely a commit.
  if (/(?:^|\/)\.git$/.test(path)) return !(type === "folder" && kind === "mode");
  const { protect } = scene;
  const real = absolute(path, scene);
  const names = protect.filter((name) => !name.startsWith("/") && name !== ".git");
  return (
    protect.some((name) => name.startsWith("/") && isInside(real, name)) ||
    (!path.startsWith("/") && findName(path, names) !== undefined)
  );
}

/** The strictest decision of the rules. What is protected is at least asked about. Undefined if no rule applies. */
export function decideEffects(
  list: readonly Effect[],
  rules: readonly Rule[],
  scene: EffectScene,
): Pick<Verdict, "decision" | "reason" | "rule"> | undefined {
  const found = rules
    .filter(({ effects }) => effects !== undefined && matchEffects(list, effects, scene))
    .reduce<Rule | undefined>(
      (best, rule) => (best === undefined || isStricter(rule.decision, best.decision) ? rule : best),
      undefined,
    );
  const guarded = list.find((effect) => isProtected(effect, scene));
  if (guarded !== undefined && found?.decision !== "deny")
    return { decision: "ask", reason: `it touched ${guarded.path}, which other programs obey` };
  if (found === undefined) return undefined;
  return {
    decision: found.decision,
    reason: found.reason ?? `a rule speaks of what it did: ${ruleName(found)}`,
    rule: ruleName(found),
  };
}

/**
 * The smallest rule for what a person kept (`dist/` and nothing else), if all of it lies in folders of
 * the workspace.
 */
export function suggestEffectRule(list: readonly Effect[], scene: EffectScene): Rule | undefined {
  const paths = list.filter(({ type, kind }) => !(type === "folder" && kind === "mode")).map(({ path }) => path);
  if (paths.length === 0 || list.some((effect) => isProtected(effect, scene))) return undefined;
  const folders = new Set(list.filter(({ type }) => type === "folder").map(({ path }) => path));
  const tops = new Set(paths.map((path) => path.split("/")[0] ?? ""));
  const isFolder = (top: string) => folders.has(top) || paths.some((path) => path.startsWith(`${top}/`));
  if (tops.size > 3 || tops.has("") || tops.has(".") || tops.has(".git") || ![...tops].every(isFolder))
    return undefined;
  // In a rule `*` stands for anything, and not for a folder of this name.
  if ([...tops].some((top) => top.includes("*"))) return undefined;
  return { effects: { only: [...tops].toSorted().map((top) => `${top}/**`) }, decision: "allow" };
}

/** Reads an example in a rule about effects: `+ dist/a.js, - src/b.ts, ~ c 0755, + l -> /etc/passwd, + big 5000B`. */
export function readExample(example: string): readonly Effect[] {
  return example.split(",").map((item) => {
    const [, mark = "~", rest = ""] = /^\s*([-+~])\s+(.*?)\s*$/.exec(item) ?? [];
    const [, path = rest, target, mode, size] = /^(.*?)(?:\s+->\s+(\S+)|\s+(0[0-7]{3})|\s+(\d+)B)?$/.exec(rest) ?? [];
    const kind = mark === "+" ? "added" : mark === "-" ? "removed" : mode === undefined ? "changed" : "mode";
    const type = target === undefined ? (path.endsWith("/") ? "folder" : "file") : "link";
    return {
      path: path.replace(/\/$/, ""),
      kind,
      type,
      ...(target === undefined ? {} : { target }),
      ...(mode === undefined ? {} : { mode }),
      ...(size === undefined ? {} : { size: Number(size) }),
    };
  });
}
