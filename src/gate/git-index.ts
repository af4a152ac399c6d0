/**
 * Which paths git tracks. We read git's index ourselves, because running git in a folder may run what
 * that folder's settings say.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";

/** Called once per list. A repository without an index, or with one that we cannot read, tracks nothing. */
export function trackedPaths(workspace: string): (path: string) => boolean {
  let known: ReadonlySet<string> | undefined;
  const load = () => {
    try {
      return readIndex(readFileSync(join(workspace, ".git", "index")));
    } catch {
      return new Set<string>(); // no repository here
    }
  };
  return (path) => (known ??= load()).has(path);
}

/** Versions 2 to 4 of git's index format; an entry is 62 bytes, its name, and padding. */
export function readIndex(data: Buffer): ReadonlySet<string> {
  const names = new Set<string>();
  if (data.subarray(0, 4).toString("latin1") !== "DIRC") return names;
  const version = data.readUInt32BE(4);
  const count = data.readUInt32BE(8);
  let at = 12;
  let last: Buffer = Buffer.alloc(0);
  for (let entry = 0; entry < count; entry++) {
    const flags = data.readUInt16BE(at + 60);
    let name = at + 62 + (version >= 3 && (flags & 0x4000) !== 0 ? 2 : 0);
    if (version === 4) {
      // In version 4 a name begins with the number of bytes to cut off the end of the name before it, in groups of 7
      // bits.
      let cut = data[name]! & 0x7f;
      while (data[name++]! & 0x80) cut = ((cut + 1) << 7) | (data[name]! & 0x7f);
      const end = data.indexOf(0, name);
      last = Buffer.concat([last.subarray(0, last.length - cut), data.subarray(name, end)]);
      at = end + 1;
    } else {
      const end = data.indexOf(0, name);
      last = data.subarray(name, end);
      at += (end - at + 8) & ~7;
    }
    names.add(last.toString("utf8"));
  }
  return names;
}
