/** Templates of our own, in the manners of writing that real ones have; and the maintainers', where they are. */
import { readdirSync, readFileSync } from "node:fs";
import { sharedFiles } from "../shared/cases.ts";

export interface Fixture {
  readonly name: string;
  readonly source: string;
}

const own = new URL("./fixtures/", import.meta.url);

export const fixtures: readonly Fixture[] = readdirSync(own)
  .filter((file) => file.endsWith(".jinja"))
  .toSorted()
  .map((file) => ({ name: file.slice(0, -".jinja".length), source: readFileSync(new URL(file, own), "utf8") }));
export const shared: readonly Fixture[] = sharedFiles("templates", ".jinja").map(([name, path]) => ({
  name,
  source: readFileSync(path, "utf8"),
}));

export function fixture(name: string): string {
  const found = fixtures.find((each) => each.name === name);
  if (found === undefined) throw new Error(`there is no fixture ${name}`);
  return found.source;
}
