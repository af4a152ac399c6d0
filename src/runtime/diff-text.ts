/** One file's part of a unified diff, in git's form. */
import { structuredPatch } from "diff";

/** Both sides of a file. Undefined means that it does not exist, null that its content was not kept. */
export interface Sides {
  readonly path: string;
  readonly from?: string;
  readonly before: Uint8Array | null | undefined;
  readonly after: Uint8Array | null | undefined;
}

/** Above this, finding the shortest difference costs more than it is worth. */
const maxEdits = 5_000;
const maxTextBytes = 1024 * 1024;

export function changeWords({ from, before, after }: Sides): "add" | "update" | "delete" | "rename" {
  if (from !== undefined) return "rename";
  if (before === undefined) return "add";
  return after === undefined ? "delete" : "update";
}

/** One file's part of a unified diff, in git's form, renames included. */
export function unifiedDiff(sides: Sides): string {
  const { path, from = path, before, after } = sides;
  const head = [`diff --git a/${from} b/${path}`];
  if (before === undefined) head.push("new file mode 100644");
  if (after === undefined) head.push("deleted file mode 100644");
  if (from !== path) head.push(`rename from ${from}`, `rename to ${path}`);
  const old = toText(before);
  const now = toText(after);
  if (old === undefined || now === undefined)
    return `${[...head, `Files differ (${describe(before)} before, ${describe(after)} after)`].join("\n")}\n`;
  if (old === now) return `${head.join("\n")}\n`;
  const patch = structuredPatch(from, path, old, now, "", "", { context: 3, maxEditLength: maxEdits, timeout: 1_000 });
  if (patch === undefined) return `${[...head, "Files differ in too many lines to show"].join("\n")}\n`;
  head.push(
    before === undefined ? "--- /dev/null" : `--- a/${from}`,
    after === undefined ? "+++ /dev/null" : `+++ b/${path}`,
  );
  const hunks = patch.hunks.flatMap(({ oldStart, oldLines, newStart, newLines, lines }) => [
    `@@ -${range(oldStart, oldLines)} +${range(newStart, newLines)} @@`,
    ...lines,
  ]);
  return `${[...head, ...hunks].join("\n")}\n`;
}

/** A side without lines is named by the number of the line before it. */
function range(start: number, count: number): string {
  return count === 0 ? `${start - 1},0` : `${start},${count}`;
}

/** The text, or undefined if a diff cannot show it. */
function toText(bytes: Uint8Array | null | undefined): string | undefined {
  if (bytes === undefined) return "";
  if (bytes === null || bytes.length > maxTextBytes || bytes.subarray(0, 8_192).includes(0)) return undefined;
  return Buffer.from(bytes).toString("utf8");
}

function describe(bytes: Uint8Array | null | undefined): string {
  if (bytes === undefined) return "none";
  return bytes === null ? "not kept" : `${bytes.length} bytes`;
}
