/** Places that rules deny reading, as paths a sandbox can hide: what a search or a recursive command must not meet. */
import { readdirSync, type Dirent } from "node:fs";
import { join, resolve } from "node:path";
import type { Policy } from "./policy.ts";
import { matchPath, type RuleSet } from "./rules.ts";

const maxEntries = 20_000;
const maxFound = 200;
/** Large, and not the user's own. */
const skipped = new Set([".git", "node_modules"]);

/** A rule with a pattern or a bare name speaks about any folder: looked for once, when the rules first matter. */
const remembered = new WeakMap<RuleSet, readonly string[]>();

export function ruleMasks(policy: Policy): readonly string[] {
  const { rules, workspace } = policy;
  const known = remembered.get(rules);
  if (known !== undefined) return known;
  const denied = rules.paths.flatMap(({ path = "", decision, access }) =>
    decision === "deny" && access !== "write" ? [path] : [],
  );
  const plain = denied.filter((path) => !path.includes("*")).map((path) => resolve(workspace, path));
  const anywhere = denied.filter((path) => path.includes("*") || !path.includes("/"));
  const masks = [...new Set([...plain, ...(anywhere.length === 0 ? [] : findBelow(workspace, anywhere))])];
  remembered.set(rules, masks);
  return masks;
}

function findBelow(workspace: string, patterns: readonly string[]): readonly string[] {
  const found: string[] = [];
  const folders = [workspace];
  let seen = 0;
  for (let folder = folders.pop(); folder !== undefined && seen < maxEntries; folder = folders.pop()) {
    for (const entry of entriesOf(folder)) {
      seen++;
      const path = join(folder, entry.name);
      if (patterns.some((pattern) => matchPath(path, pattern, workspace))) found.push(path);
      else if (entry.isDirectory() && !skipped.has(entry.name)) folders.push(path);
      if (found.length === maxFound) return found;
    }
  }
  return found;
}

function entriesOf(folder: string): readonly Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    // Not to be read: nothing in it can be met.
    return [];
  }
}
