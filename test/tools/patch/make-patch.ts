/** A patch that turns one list of lines into another: one chunk with every line, so its place is never in doubt. */
export function makePatch(path: string, before: readonly string[], after: readonly string[]): string {
  const rows = diffRows(before, after);
  const body = rows.length === 0 ? [" "] : rows;
  return ["*** Begin Patch", `*** Update File: ${path}`, "@@", ...body, "*** End Patch"].join("\n");
}

/** The longest common lines are kept; plain and slow, for tests. */
function diffRows(before: readonly string[], after: readonly string[]): readonly string[] {
  const longest: number[][] = Array.from({ length: before.length + 1 }, () =>
    Array.from({ length: after.length + 1 }, () => 0),
  );
  for (let i = before.length - 1; i >= 0; i--) {
    for (let j = after.length - 1; j >= 0; j--) {
      longest[i]![j] =
        before[i] === after[j] ? longest[i + 1]![j + 1]! + 1 : Math.max(longest[i + 1]![j]!, longest[i]![j + 1]!);
    }
  }
  const rows: string[] = [];
  let i = 0;
  let j = 0;
  while (i < before.length || j < after.length) {
    if (i < before.length && j < after.length && before[i] === after[j]) {
      rows.push(` ${before[i]}`);
      i++;
      j++;
    } else if (j >= after.length || (i < before.length && longest[i + 1]![j]! >= longest[i]![j + 1]!))
      rows.push(`-${before[i++]}`);
    else rows.push(`+${after[j++]}`);
  }
  return rows;
}
