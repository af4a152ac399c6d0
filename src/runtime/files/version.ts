import { createHash } from "node:crypto";
import type { Stats } from "node:fs";

/**
 * A file's content at one moment: the system's stamp, and a hash where the whole was read. Equal
 * stamps mean unchanged without looking; unequal stamps with an equal hash mean touched, not changed.
 */
export function tokenOf(stats: Stats, content?: Uint8Array): string {
  const stamp = `${stats.dev}:${stats.ino}:${stats.size}:${stats.mtimeMs}:${stats.ctimeMs}`;
  return content === undefined ? stamp : `${stamp}#${hashOf(content)}`;
}

function hashOf(content: Uint8Array): string {
  return createHash("sha1").update(content).digest("base64url");
}

/** `content` is read only when the stamps differ and the old token has a hash to compare with. */
export function isSameVersion(token: string, stats: Stats | undefined, content: () => Uint8Array): boolean {
  if (stats === undefined) return token === absent;
  const [stamp, hash] = token.split("#");
  if (stamp === tokenOf(stats)) return true;
  return hash !== undefined && hash === hashOf(content());
}

/** The version of a file that is not there. */
export const absent = "absent";
