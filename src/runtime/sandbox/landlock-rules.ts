/**
 * A plan as Landlock rules. Rights belong to a path prefix, are inherited downwards and are never
 * taken away again. So what is to be hidden gets no rule, and every sibling on the way to it gets one
 * of its own.
 */
import { readdirSync } from "node:fs";
import { join, sep } from "node:path";
import type { Grant } from "../../spec/access.ts";
import type { LandlockRules } from "./backend.ts";
import { contains } from "./plan.ts";
import type { Plan } from "./plan.ts";

type Rule = LandlockRules["rules"][number];

/** From linux/landlock.h. The comment says with which ABI a right came. */
const right = {
  execute: 1 << 0,
  writeFile: 1 << 1,
  readFile: 1 << 2,
  readDir: 1 << 3,
  makeChar: 1 << 6,
  makeBlock: 1 << 11,
  refer: 1 << 13, // 2
  truncate: 1 << 14, // 3
  ioctlDev: 1 << 15, // 5
} as const;
const netRight = { bindTcp: 1, connectTcp: 2 } as const; // 4
const scopes = 3; // 6: abstract sockets, signals

/** Every right the ABI knows. */
function knownRights(abi: number): number {
  const base = (1 << 13) - 1;
  return base | (abi >= 2 ? right.refer : 0) | (abi >= 3 ? right.truncate : 0) | (abi >= 5 ? right.ioctlDev : 0);
}

const devices = ["null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts"].map((name) => join("/dev", name));

const sharedMemory = "/dev/shm";

export interface RulesetOptions {
  readonly abi: number;
  readonly plan: Plan;
  readonly grant: Grant;
  readonly cwd: string;
  /** The private temporary folder. The shared one cannot be replaced here. */
  readonly tempFolder: string | undefined;
  readonly proxyPort?: number;
}

export function landlockRules({
  abi,
  plan,
  grant,
  cwd,
  tempFolder,
  proxyPort,
}: RulesetOptions): Omit<LandlockRules, "seccomp"> {
  const known = knownRights(abi);
  const read = right.readFile | right.readDir | right.execute;
  const write = known & ~right.makeChar & ~right.makeBlock;
  const hidden = plan.entries.filter(({ use }) => use === "hide").map(({ path }) => path);
  const below = (folder: string) => hidden.filter((path) => contains(folder, path));
  // What is granted by its own name stays open although the folder around it is hidden, as with mounts.
  const shownInHidden = plan.entries.filter(
    ({ path, use }) => use === "read" && hidden.some((folder) => contains(folder, path)),
  );
  const rules: Rule[] = [
    // Names may be listed everywhere; it is the contents that are hidden.
    { path: sep, access: right.readDir },
    ...openPlaces(sep, plan.everything ? hidden : [...hidden, "/dev"]).map((path) =>
      rule(path, plan.everything ? write : read),
    ),
    ...plan.roots
      .filter((root) => root !== sep)
      .flatMap((root) => openPlaces(root, below(root)).map((path) => rule(path, write))),
    ...shownInHidden.map(({ path }) => rule(path, read)),
    ...devices.map((path) =>
      rule(path, right.readFile | right.writeFile | right.truncate | right.ioctlDev | right.readDir),
    ),
    // The host's own shared memory, unless a workspace or something hidden lies in it: a right cannot be taken away again.
    ...([cwd, ...hidden].some((path) => contains(sharedMemory, path))
      ? openPlaces(sharedMemory, hidden).map((path) => rule(path, plan.everything ? write : read))
      : [rule(sharedMemory, write)]),
    ...(tempFolder === undefined ? [] : [rule(tempFolder, write)]),
  ];
  return {
    handledFs: known,
    handledNet: abi >= 4 && grant.network !== "on" ? netRight.bindTcp | netRight.connectTcp : 0,
    scoped: abi >= 6 ? scopes : 0,
    rules: rules.map(({ path, access }) => ({ path, access: access & known })),
    netRules: proxyPort === undefined ? [] : [{ port: proxyPort, access: netRight.connectTcp }],
    held: plan.entries.filter(({ use }) => use === "read").map(({ path }) => path),
  };
}

/** The launcher leaves out rights that only folders have if the path turns out to be a file. */
function rule(path: string, access: number): Rule {
  return { path, access };
}

/** The widest paths below `folder` that contain nothing of `closed`. */
function openPlaces(folder: string, closed: readonly string[]): readonly string[] {
  if (closed.some((path) => contains(path, folder))) return [];
  if (!closed.some((path) => contains(folder, path))) return [folder];
  return entries(folder).flatMap((name) => openPlaces(join(folder, name), closed));
}

/** Links are skipped, because a rule on a link would apply to its target. */
function entries(folder: string): readonly string[] {
  try {
    return readdirSync(folder, { withFileTypes: true })
      .filter((one) => !one.isSymbolicLink())
      .map(({ name }) => name);
  } catch {
    return []; // we may not look into it, so the command may not either
  }
}
