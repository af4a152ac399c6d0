/** Which paths git knows, read from its index by ourselves: running git in a folder may run what the folder says. */
import { readFileSync } from "node:fs";
import { join } from "node:path";

/** Asked once per list; a repository without an index, or one we cannot read, knows nothing. */
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
  let last = "";
  for (let entry = 0; entry < count; entry++) {
    const flags = data.readUInt16BE(at + 60);
    let name = at + 62 + (version >= 3 && (flags & 0x4000) !== 0 ? 2 : 0);
    if (version === 4) {
      // What is cut off the end of the name before it, as a number of 7-bit groups, comes first.
      let cut = data[name]! & 0x7f;
      while (data[name++]! & 0x80) cut = ((cut + 1) << 7) | (data[name]! & 0x7f);
      const end = data.indexOf(0, name);
      last = last.slice(0, last.length - cut) + data.toString("utf8", name, end);
      at = end + 1;
    } else {
      const end = data.indexOf(0, name);
      last = data.toString("utf8", name, end);
      at += (end - at + 8) & ~7;
    }
    names.add(last);
  }
  return names;
}
