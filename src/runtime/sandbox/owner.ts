import { statSync } from "node:fs";
import { dirname, sep } from "node:path";
import type { Machine } from "./machine.ts";
import type { Plan } from "./plan.ts";

export interface Owner {
  readonly uid: number;
  readonly gid: number;
}

/**
 * Without its capabilities root owns only what is root's. In somebody else's workspace a command
 * therefore runs as that owner, if the owner can get there.
 */
export function commandOwner(plan: Plan, cwd: string, machine: Machine): Owner | undefined {
  if (machine.uid !== 0) return undefined;
  const place = plan.roots.find((root) => root !== sep) ?? cwd;
  const stat = statSync(place, { throwIfNoEntry: false });
  if (stat === undefined || stat.uid === 0) return undefined;
  for (let folder = dirname(place); folder !== sep; folder = dirname(folder)) {
    const { mode, uid, gid } = statSync(folder);
    const bit = uid === stat.uid ? 0o100 : gid === stat.gid ? 0o010 : 0o001;
    if ((mode & bit) === 0) return undefined;
  }
  return { uid: stat.uid, gid: stat.gid };
}
