/** File names as the most tolerant file system would compare them. */

/** Characters that some file systems ignore inside names (HFS+). */
// oxlint-disable-next-line no-misleading-character-class -- each is meant on its own
const ignorable = /[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]/g;

/**
 * What a name is on the most tolerant file system, where case, Unicode form, trailing dots and blanks,
 * NTFS streams and HFS+ fillers make no difference.
 */
export function foldName(name: string): string {
  // The quick path for nearly every name, because folders hold many.
  if (/^[\w-]*(?:\.[\w-]+)*$/.test(name)) return name.toLowerCase();
  const stream = name.indexOf(":");
  return (stream > 0 ? name.slice(0, stream) : name)
    .normalize("NFKC")
    .replace(ignorable, "")
    .replace(/(?<![. ])[. ]+$/, "")
    .toLowerCase();
}

/** Whether a name is, or could be taken for, one of these (for `.git`: `.GIT`, `.git.`, `GIT~1`). */
export function nameMatcher(names: readonly string[]): (name: string) => boolean {
  const wanted = new Set(names.map(foldName));
  // Windows' short form of a name: six of its characters, then ~1.
  const hidden = [...wanted].filter((name) => name.startsWith("."));
  const short = new Set(hidden.map((name) => name.replace(/^\.+/, "").slice(0, 6)).filter(Boolean));
  return (name) => {
    const folded = foldName(name);
    const stem = /^(.+)~\d+$/.exec(folded)?.[1];
    return wanted.has(folded) || (stem !== undefined && short.has(stem));
  };
}
