/** The shared chat templates of real models: each speaks the dialect that is expected of it. */
import { existsSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { inferFromTemplate } from "../../src/template/index.ts";
import { shared, sharedFolder } from "../template/fixtures.ts";

interface Row {
  readonly dialect: string | null;
  readonly evidence: string;
  readonly readsTheSame?: readonly string[];
}

const list = new URL("expected.json", sharedFolder);
const rows = existsSync(list) ? (JSON.parse(readFileSync(list, "utf8")) as Record<string, Row>) : {};

test.skipIf(shared.length === 0)("the shared templates are there (skipped: no ../shared/data/templates)", () => {
  expect(shared.length).toBe(Object.keys(rows).length);
});

test.each(shared)("$name speaks what is expected of it", ({ name, source }) => {
  const row = rows[`${name}.jinja`]!;
  const { dialect, how } = inferFromTemplate(source);
  // Where no dialect of ours reads it although calls are shown, one is derived.
  if (row.dialect === null && row.evidence === "call") expect(how).toBe("derived");
  else expect(dialect).toBe(row.dialect);
});
