/**
 * Without its capabilities, root can change only what belongs to root. In somebody else's workspace a
 * command of root therefore runs as the workspace's owner, if the owner can get there, and sees what
 * the owner can see.
 */
import { existsSync, readFileSync, statSync } from "node:fs";
import { dirname, sep } from "node:path";
import type { DiskChecks } from "./disk-checks.ts";
import type { Machine } from "./machine.ts";
import type { Plan } from "./plan.ts";

export interface Owner {
  readonly uid: number;
  readonly gid: number;
}

type Stat = DiskChecks["stat"];

export function commandOwner(plan: Plan, cwd: string, machine: Machine, stat: Stat = statNow): Owner | undefined {
  if (machine.uid !== 0) return undefined;
  const place = plan.roots.find((root) => root !== sep) ?? cwd;
  const seen = stat(place);
  if (seen === undefined || seen.uid === 0) return undefined;
  const owner = { uid: seen.uid, gid: seen.gid };
  return canReach(place, owner, stat) ? owner : undefined;
}

/** What the owner cannot reach needs no mount, and none could be made there for the owner. */
export function planFor(owner: Owner | undefined, plan: Plan, stat: Stat = statNow): Plan {
  if (owner === undefined) return plan;
  return { ...plan, entries: plan.entries.filter(({ path }) => canReach(path, owner, stat)) };
}

/** True if every folder above lets this user pass, judged by its mode. */
export function canReach(path: string, { uid, gid }: Owner, look: Stat = statNow): boolean {
  for (let folder = dirname(path); folder !== sep; folder = dirname(folder)) {
    const stat = lookAt(folder, look);
    if (stat === "closed") return false;
    if (stat === undefined) continue;
    const bit = stat.uid === uid ? 0o100 : stat.gid === gid ? 0o010 : 0o001;
    if ((stat.mode & bit) === 0) return false;
  }
  return true;
}

/** What is there. Root of a user namespace may not look everywhere, and where it may not, nobody it starts may. */
function lookAt(folder: string, look: Stat) {
  try {
    return look(folder);
  } catch {
    return "closed";
  }
}

function statNow(path: string) {
  return statSync(path, { throwIfNoEntry: false });
}

/** Root's own home is closed to others, and programs that look for their settings there would fail. */
export function homeFor(
  owner: Owner | undefined,
  env: Readonly<Record<string, string>>,
  tempDir: string,
): { readonly HOME?: string } {
  const home = env["HOME"];
  if (owner === undefined || home === undefined || canReach(`${home}${sep}.`, owner)) return {};
  const own = accountHome(owner);
  return { HOME: own !== undefined && existsSync(own) ? own : tempDir };
}

function accountHome({ uid }: Owner): string | undefined {
  const accounts = readFileSync("/etc/passwd", "utf8").split("\n");
  return accounts.map((line) => line.split(":")).find((fields) => fields[2] === String(uid))?.[5];
}
