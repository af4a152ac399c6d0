import { hash } from "node:crypto";
import type { Stats } from "node:fs";

/**
 * A file's content at one moment: the system's stamp, and a hash if the whole file was read. Equal
 * stamps mean that it is unchanged, without reading it. Different stamps with an equal hash mean that
 * it was touched but not changed.
 */
export function tokenOf(stats: Stats, content?: Uint8Array): string {
  const stamp = `${stats.dev}:${stats.ino}:${stats.size}:${stats.mtimeMs}:${stats.ctimeMs}`;
  return content === undefined ? stamp : `${stamp}#${hashOf(content)}`;
}

function hashOf(content: Uint8Array): string {
  return hash("sha1", content, "base64url");
}

/** `content` is called only if the stamps differ and the old token has a hash to compare with. */
export function isSameVersion(token: string, stats: Stats | undefined, content: () => Uint8Array): boolean {
  if (stats === undefined) return token === absent;
  const [stamp, known] = token.split("#");
  if (stamp === tokenOf(stats)) return true;
  return known !== undefined && known === hashOf(content());
}

/** The version of a file that does not exist. */
export const absent = "absent";
