/** Rules about what a held command did: conditions on the list of its effects, all of which must hold. */
import type { Effect } from "../spec/effects.ts";
import type { EffectCondition } from "./effect-condition.ts";
import type { Decision } from "./modes.ts";
import { isInside } from "./paths.ts";
import { matchPath, ruleName, type Rule } from "./rules.ts";
import { findName } from "./run-later.ts";

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
  const real = (path: string) => (path.startsWith("/") ? path : `${scene.workspace}/${path}`);
  const fits = (path: string, patterns: readonly string[]) =>
    patterns.some((pattern) => matchPath(real(path), pattern, scene.workspace));
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
  if (links_out === true && !list.some((effect) => leadsOut(effect, scene.workspace))) return false;
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

function leadsOut({ kind, target, path }: Effect, workspace: string): boolean {
  if (target === undefined || kind === "removed") return false;
  const folder = `${workspace}/${path}`.replace(/\/[^/]*$/, "");
  const steps: string[] = [];
  for (const step of (target.startsWith("/") ? target : `${folder}/${target}`).split("/"))
    if (step === "..") steps.pop();
    else if (step !== "" && step !== ".") steps.push(step);
  return !isInside(`/${steps.join("/")}`, workspace);
}

/** Files that make git run something, or read its settings from elsewhere. */
const gitRuns =
  /(?:^|\/)\.git\/(?:(?:modules|worktrees)\/.*\/)?(?:config(?:\.worktree)?|hooks\/.+|info\/attributes|commondir|gitdir)$/;

/** Files that other programs run or obey. A person always agrees to them one by one. */
export function isProtected({ path, type, kind }: Effect, { protect, workspace }: EffectScene): boolean {
  if (gitRuns.test(path)) return true;
  // A repository that appeared or disappeared is not merely a commit.
  if (/(?:^|\/)\.git$/.test(path)) return !(type === "folder" && kind === "mode");
  const real = path.startsWith("/") ? path : `${workspace}/${path}`;
  const names = protect.filter((name) => !name.startsWith("/") && name !== ".git");
  return (
    protect.some((name) => name.startsWith("/") && isInside(real, name)) ||
    (!path.startsWith("/") && findName(path, names) !== undefined)
  );
}

export interface EffectVerdict {
  readonly decision: Decision;
  readonly reason: string;
  readonly rule?: string;
}

const strictness: Readonly<Record<Decision, number>> = { allow: 0, ask: 1, deny: 2 };

/** The strictest decision of the rules. What is protected is at least asked about. Undefined if no rule applies. */
export function decideEffects(
  list: readonly Effect[],
  rules: readonly Rule[],
  scene: EffectScene,
): EffectVerdict | undefined {
  const found = rules
    .filter(({ effects }) => effects !== undefined && matchEffects(list, effects, scene))
    .toSorted((a, b) => strictness[b.decision] - strictness[a.decision])[0];
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
