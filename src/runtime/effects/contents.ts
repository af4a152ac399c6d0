/** The content of a run's files on both sides: in the workspace, and where the run wrote them. */
import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";
import { join } from "node:path";
import type { Effect } from "../../spec/effects.ts";

/** Both sides of a run: where the workspace is, and where its folder lies. */
export interface RunSides {
  readonly folder: string;
  readonly roots: readonly string[];
}

export const maxReadBytes = 1024 * 1024;

/** Never follows a link, never opens a pipe or a device, and reads no more than a diff can show. */
export function readSmall(path: string): Uint8Array | undefined {
  let fd: number;
  try {
    fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch {
    return undefined; // gone, not readable, or a link
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

export function readSides(effect: Effect, sides: RunSides | undefined): { before?: Uint8Array; after?: Uint8Array } {
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
