/** The shared chat templates of real models: each speaks the dialect that is expected of it. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { inferFromTemplate } from "../../src/template/index.ts";
import { sharedFolder } from "../needs.ts";
import { shared } from "../template/fixtures.ts";

interface Row {
  readonly dialect: string | null;
  readonly evidence: string;
  readonly readsTheSame?: readonly string[];
}

const rows: Record<string, Row> =
  sharedFolder === undefined ? {} : JSON.parse(readFileSync(join(sharedFolder, "templates", "expected.json"), "utf8"));

test.skipIf(sharedFolder === undefined)("each template of a real model has its row (needs the shared cases)", () => {
  expect(shared.length).toBe(Object.keys(rows).length);
});

test.each(shared)("$name speaks what is expected of it", ({ name, source }) => {
  const row = rows[`${name}.jinja`]!;
  const { dialect, how } = inferFromTemplate(source);
  // Where no dialect of ours reads it although calls are shown, one is derived.
  if (row.dialect === null && row.evidence === "call") expect(how).toBe("derived");
  else expect(dialect).toBe(row.dialect);
});
