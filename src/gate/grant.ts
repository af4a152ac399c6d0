/**
 * Turns what was agreed to into what a call may touch. A grant is built up from nothing, and never cut
 * down from everything.
 */
import { readdirSync, type Dirent } from "node:fs";
import { join, resolve } from "node:path";
import type { Access, Denial, Grant, NetworkGrant } from "../spec/access.ts";
import { toDeniedProgram } from "./command/prefix.ts";
import type { Policy } from "./policy.ts";
import { findProtected, isInside, isInsideAny, nearestFolder, statOf } from "./paths.ts";
import { pathMatcher, type RuleSet } from "./rules.ts";

/** What a command gets when nothing special is said. */
export function toBaseGrant(policy: Policy): Grant {
  const { sandbox } = policy.settings;
  if (sandbox === "full-access") return openGrant(policy);
  return {
    policy: sandbox,
    confined: policy.confines,
    write: sandbox === "read-only" ? [] : [...policy.writable, ...ruleRoots(policy)],
    protect: policy.protect,
    mask: allMasks(policy),
    network: policy.network,
    ...deniedPrograms(policy),
  };
}

function openGrant(policy: Policy): Grant {
  return {
    policy: "full-access",
    confined: false,
    write: ["/"],
    protect: [],
    mask: allMasks(policy),
    network: "on",
    ...deniedPrograms(policy),
  };
}

function allMasks(policy: Policy): readonly string[] {
  const more = ruleMasks(policy);
  return more.length === 0 ? policy.mask : [...policy.mask, ...more];
}

/**
 * Programs that no command may start. The gate may not recognise every program in a line, but the sandbox sees each
 * one start.
 */
function deniedPrograms({ rules, workspace }: Policy): Pick<Grant, "denied"> {
  const { denials } = rules;
  return denials.length === 0 ? {} : { denied: denials.map((rule) => toDeniedProgram(rule, workspace)) };
}

/** Folders that a rule opens for writing. Only rules that name one place count, not patterns. */
function ruleRoots(policy: Policy): readonly string[] {
  return policy.rules.paths.flatMap(({ path = "", decision, access }) =>
    decision === "allow" && access !== "read" && path.includes("/") && !path.includes("*")
      ? [policy.real(path, policy.workspace) ?? resolve(policy.workspace, path)]
      : [],
  );
}

/**
 * The grant of one call. `agreed` means that a person or a rule said yes to exactly this access, so it
 * is opened as far as the access says and no further.
 */
export function toGrant(access: Access, policy: Policy, agreed: boolean): Grant {
  const base = toBaseGrant(policy);
  if (access.escalation !== undefined) return agreed ? openGrant(policy) : base;
  const runs = access.commands !== undefined && access.commands.length > 0;
  const writes = (access.write ?? [])
    .map((path) => policy.real(path, policy.workspace))
    .filter((path) => path !== undefined);
  const reads = (access.read ?? [])
    .map((path) => policy.real(path, policy.workspace))
    .filter((path) => path !== undefined);
  const grant: Grant = {
    ...base,
    // A handler gets exactly the paths it stated, so that a link swapped in after the yes leads nowhere.
    ...(runs
      ? openWrites(writes, base, policy)
      : { write: writes.length === 0 ? [] : [...new Set(writes.map((path) => openable(path, policy)))] }),
    mask: reads.some((path) => isInsideAny(path, base.mask))
      ? base.mask.filter((mask) => !reads.some((path) => isInside(path, mask)))
      : base.mask,
    network: runs
      ? joinNetwork(base.network, access.network ?? [])
      : (access.network ?? []).length > 0
        ? joinNetwork("off", access.network ?? [])
        : "off",
  };
  return policy.settings.sandbox === "full-access" && runs ? base : grant;
}

function openWrites(writes: readonly string[], base: Grant, policy: Policy): Pick<Grant, "write" | "protect"> {
  if (base.write.includes("/")) return base;
  const guarded = writes.filter(
    (path) => findProtected(path, [policy.workspace, ...policy.writable], policy.protect) !== undefined,
  );
  const outside = writes.filter((path) => !isInsideAny(path, base.write));
  if (guarded.length === 0)
    return { write: [...base.write, ...outside.map((path) => openable(path, policy))], protect: base.protect };
  // Protected files were agreed to one by one, so they are opened and the rest of the workspace is not.
  return { write: [...new Set(writes.map((path) => openable(path, policy)))], protect: base.protect };
}

/** The path itself, or the first folder on the way to it that has to be created. */
function openable(path: string, { seen }: Policy): string {
  if (seen?.has(path) === true || statOf(path) !== undefined) return path;
  const folder = nearestFolder(path);
  const next = path.slice(folder.length).split("/").find(Boolean) ?? "";
  return next === "" ? path : join(folder, next);
}

function joinNetwork(base: NetworkGrant, hosts: readonly string[]): NetworkGrant {
  if (base === "on" || hosts.length === 0) return base;
  return [...new Set([...(base === "off" ? [] : base), ...hosts])];
}

/** If a command ran out of time and somebody agrees, it gets this many times as much. */
const morePatience = 10;

/** The smallest widening that lets the refused access through. */
export function widenGrant(grant: Grant, denied: Denial): Grant {
  const { what, target } = denied;
  if (what === "time") return { ...grant, patience: (grant.patience ?? 1) * morePatience };
  if (what === "network")
    return { ...grant, network: target === undefined ? "on" : joinNetwork(grant.network, [target]) };
  if (what === "write" && target !== undefined && target.startsWith("/"))
    return {
      ...grant,
      policy: grant.policy === "read-only" ? "workspace-write" : grant.policy,
      write: [...new Set([...grant.write, target])],
    };
  if (what === "read" && target !== undefined)
    return { ...grant, mask: grant.mask.filter((mask) => !isInside(target, mask)) };
  return { ...grant, policy: "full-access", confined: false, write: ["/"], protect: [], network: "on" };
}

/** What `widenGrant` adds, as the end of a question. */
export function describeWider({ what, target }: Denial): string {
  if (what === "network") return target === undefined ? "with the whole network" : `and let it reach ${target}`;
  if (what === "write" && target?.startsWith("/")) return `and let it write ${target}`;
  if (what === "read" && target !== undefined) return `and let it read ${target}`;
  return "outside the sandbox";
}

/** Whether `a` is nowhere wider than `b`. */
export function isWithin(a: Grant, b: Grant): boolean {
  const rank = { "read-only": 0, "workspace-write": 1, "full-access": 2 } as const;
  if (rank[a.policy] > rank[b.policy] || (b.confined && !a.confined)) return false;
  if ((a.patience ?? 1) > (b.patience ?? 1)) return false;
  if (!a.write.every((path) => isInsideAny(path, b.write) || b.write.includes("/"))) return false;
  if (!b.mask.every((mask) => a.mask.includes(mask))) return false;
  if (a.write.length > 0 && !b.protect.every((name) => a.protect.includes(name))) return false;
  const denied = new Set(a.denied?.map(({ rule }) => rule));
  if (b.denied?.every(({ rule }) => denied.has(rule)) === false) return false;
  return isNetworkWithin(a.network, b.network);
}

function isNetworkWithin(a: NetworkGrant, b: NetworkGrant): boolean {
  if (a === "off" || b === "on") return true;
  return a !== "on" && b !== "off" && a.every((host) => b.includes(host));
}

/** How many entries of a workspace are searched for rules with a pattern. */
const maxEntries = 20_000;
const maxFound = 200;
/** Large folders that do not hold the user's own files. */
const skipped = new Set([".git", "node_modules"]);

/** How long the places that were found for some rules are taken as all there are. A search takes longer than most commands. */
const foundLastMs = 1_000;

interface FoundMasks {
  readonly at: number;
  readonly workspace: string;
  readonly masks: readonly string[];
}

const lastFound = new WeakMap<RuleSet, FoundMasks>();

/**
 * Places that rules forbid reading, as paths that a sandbox can hide from searches and recursive commands. A rule
 * with a pattern or a bare name may match in any folder, so the workspace is searched for it, again and again,
 * because files come and go.
 */
function ruleMasks({ rules, workspace }: Policy): readonly string[] {
  const denied = rules.paths.flatMap(({ path = "", decision, access }) =>
    decision === "deny" && access !== "write" ? [path] : [],
  );
  if (denied.length === 0) return denied;
  const known = lastFound.get(rules);
  if (known?.workspace === workspace && Date.now() - known.at < foundLastMs) return known.masks;
  const plain = denied.filter((path) => !path.includes("*")).map((path) => resolve(workspace, path));
  const anywhere = denied.filter((path) => path.includes("*") || !path.includes("/"));
  const masks = [...new Set([...plain, ...(anywhere.length === 0 ? [] : findBelow(workspace, anywhere))])];
  lastFound.set(rules, { at: Date.now(), workspace, masks });
  return masks;
}

function findBelow(workspace: string, patterns: readonly string[]): readonly string[] {
  const isDenied = pathMatcher(patterns, workspace);
  const found: string[] = [];
  const folders = [workspace];
  let seen = 0;
  for (let folder = folders.pop(); folder !== undefined && seen < maxEntries; folder = folders.pop()) {
    for (const entry of entriesOf(folder)) {
      seen++;
      const path = join(folder, entry.name);
      if (isDenied(path)) found.push(path);
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
    // It cannot be read, so no command can find anything in it.
    return [];
  }
}
