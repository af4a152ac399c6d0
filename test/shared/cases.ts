/**
 * The maintainers' further cases, which lie beside the project as `../shared`. No user has them: every law holds
 * without them, and they are read nowhere but here (test/layers.test.ts). Where they are absent each list is empty.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { sharedFolder } from "../needs.ts";

/** The rows of a file of JSON lines. */
export function sharedRows<Row>(file: string, read: (line: string) => Row): readonly Row[] {
  if (sharedFolder === undefined) return [];
  const lines = readFileSync(join(sharedFolder, file), "utf8").split("\n");
  return lines.filter((line) => line !== "").map(read);
}

/** The files of a folder that end so, by name without the ending. */
export function sharedFiles(folder: string, ending: string): readonly (readonly [name: string, path: string])[] {
  if (sharedFolder === undefined) return [];
  const place = join(sharedFolder, folder);
  return readdirSync(place)
    .filter((name) => name.endsWith(ending))
    .toSorted()
    .map((name) => [name.slice(0, -ending.length), join(place, name)]);
}
