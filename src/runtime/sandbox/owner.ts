/**
 * Without its capabilities, root can change only what belongs to root. In somebody else's workspace a
 * command of root therefore runs as the workspace's owner, if the owner can get there, and sees what
 * the owner can see.
 */
import { existsSync, readFileSync, statSync } from "node:fs";
import { dirname, sep } from "node:path";
import type { Machine } from "./machine.ts";
import type { Plan } from "./plan.ts";

export interface Owner {
  readonly uid: number;
  readonly gid: number;
}

export function commandOwner(plan: Plan, cwd: string, machine: Machine): Owner | undefined {
  if (machine.uid !== 0) return undefined;
  const place = plan.roots.find((root) => root !== sep) ?? cwd;
  const stat = statSync(place, { throwIfNoEntry: false });
  if (stat === undefined || stat.uid === 0) return undefined;
  const owner = { uid: stat.uid, gid: stat.gid };
  return canReach(place, owner) ? owner : undefined;
}

/** What the owner cannot reach needs no mount, and none could be made there for the owner. */
export function planFor(owner: Owner | undefined, plan: Plan): Plan {
  return owner === undefined ? plan : { ...plan, entries: plan.entries.filter(({ path }) => canReach(path, owner)) };
}

/** True if every folder above lets this user pass, judged by its mode. */
export function canReach(path: string, { uid, gid }: Owner): boolean {
  for (let folder = dirname(path); folder !== sep; folder = dirname(folder)) {
    const stat = statSync(folder, { throwIfNoEntry: false });
    if (stat === undefined) continue;
    const bit = stat.uid === uid ? 0o100 : stat.gid === gid ? 0o010 : 0o001;
    if ((stat.mode & bit) === 0) return false;
  }
  return true;
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
