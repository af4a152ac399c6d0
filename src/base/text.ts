/** Words about text: nearest names, cutting on a character boundary, a time in words. */

/** The `count` names closest to `wanted`, nearest first; names too unlike it are left out. */
export function nearest(wanted: string, names: readonly string[], count: number): readonly string[] {
  const key = wanted.toLowerCase();
  return names
    .map((name) => ({ name, distance: distance(key, name.toLowerCase()) }))
    .filter(({ name, distance }) => distance <= Math.max(2, Math.ceil(Math.max(name.length, key.length) / 2)))
    .toSorted((a, b) => a.distance - b.distance || (a.name < b.name ? -1 : 1))
    .slice(0, count)
    .map(({ name }) => name);
}

/** Edit distance, on at most 64 characters of each: names are short, hostile ones are not. */
export function distance(a: string, b: string): number {
  const left = a.slice(0, 64);
  const right = b.slice(0, 64);
  let row = Array.from({ length: right.length + 1 }, (_, index) => index);
  for (let i = 1; i <= left.length; i++) {
    const next = [i];
    for (let j = 1; j <= right.length; j++) {
      const replace = row[j - 1]! + (left[i - 1] === right[j - 1] ? 0 : 1);
      next.push(Math.min(next[j - 1]! + 1, row[j]! + 1, replace));
    }
    row = next;
  }
  return row[right.length]!;
}

/** At most `length` UTF-16 units, never half a surrogate pair. */
export function cutStart(text: string, length: number): string {
  if (text.length <= length) return text;
  const end = isHighSurrogate(text.charCodeAt(length - 1)) ? length - 1 : length;
  return text.slice(0, Math.max(0, end));
}

/** A duration for people: `250 ms`, `1.5 s`, `60 min`. */
export function describeMs(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  return ms < 120_000 ? `${Number((ms / 1_000).toFixed(1))} s` : `${Math.round(ms / 60_000)} min`;
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code <= 0xdbff;
}
