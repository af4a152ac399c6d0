/** Templates of our own, in the manners of writing that real ones have; and the shared ones, where they are. */
import { existsSync, readdirSync, readFileSync } from "node:fs";

export interface Fixture {
  readonly name: string;
  readonly source: string;
}

function read(folder: URL): readonly Fixture[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .filter((file) => file.endsWith(".jinja"))
    .toSorted()
    .map((file) => ({ name: file.slice(0, -".jinja".length), source: readFileSync(new URL(file, folder), "utf8") }));
}

export const fixtures = read(new URL("./fixtures/", import.meta.url));
export const sharedFolder = new URL("../../../shared/data/templates/", import.meta.url);
export const shared = read(sharedFolder);

export function fixture(name: string): string {
  const found = fixtures.find((each) => each.name === name);
  if (found === undefined) throw new Error(`there is no fixture ${name}`);
  return found.source;
}
