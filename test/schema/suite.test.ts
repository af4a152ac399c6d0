/**
 * The JSON Schema Test Suite, required tests of drafts 2020-12 and 07 without remotes. It is no part of the project: it
 * is read where Debian's libtest-json-schema-acceptance-perl puts it, or where JSON_SCHEMA_TEST_SUITE says.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { JsonObject } from "../../src/base/json.ts";
import { createValidator } from "../../src/schema/validate.ts";

const folder =
  process.env["JSON_SCHEMA_TEST_SUITE"] ?? "/usr/share/perl5/auto/share/dist/Test-JSON-Schema-Acceptance/tests";

interface Case {
  readonly description: string;
  readonly schema: JsonObject | boolean;
  readonly tests: readonly { readonly description: string; readonly data: unknown; readonly valid: boolean }[];
}

const metaSchema = "refers to the meta-schema by its address, and the network is never asked";
const dynamic = "a $dynamicRef into a document that a $ref inside the same file names";
/** What we judge otherwise, and why. The list may only shrink. */
const otherwise: ReadonlyMap<string, string> = new Map([
  ["draft2020-12/anchor.json: invalid anchors", metaSchema],
  ["draft2020-12/defs.json: validate definition against metaschema", metaSchema],
  ["draft2020-12/id.json: Invalid use of fragments in location-independent $id", metaSchema],
  ["draft2020-12/ref.json: remote ref, containing refs itself", metaSchema],
  ["draft7/definitions.json: validate definition against metaschema", metaSchema],
  ["draft7/ref.json: remote ref, containing refs itself", metaSchema],
  ["draft2020-12/ref.json: URN base URI with f-component", metaSchema],
  ["draft2020-12/dynamicRef.json: strict-tree schema, guards against misspelled properties", dynamic],
  ["draft2020-12/dynamicRef.json: tests for implementation dynamic anchor and reference link", dynamic],
  ["draft2020-12/dynamicRef.json: $ref and $dynamicAnchor are independent of order - $defs first", dynamic],
  ["draft2020-12/dynamicRef.json: $ref and $dynamicAnchor are independent of order - $ref first", dynamic],
  [
    "draft7/ref.json: ref overrides any sibling keywords",
    "what stands beside a $ref counts in every draft: a tool's author meant it",
  ],
]);

/** Remote documents and vocabularies of one's own are not for tools. */
const left: ReadonlySet<string> = new Set(["refRemote.json", "vocabulary.json"]);

test.skipIf(!existsSync(join(folder, "draft2020-12"))).each(["draft2020-12", "draft7"])(
  "%s: every required case is judged right, but those listed (needs libtest-json-schema-acceptance-perl)",
  async (draft) => {
    const wrong = new Set<string>();
    let count = 0;
    for (const file of readdirSync(join(folder, draft)).filter((name) => name.endsWith(".json") && !left.has(name))) {
      const cases = JSON.parse(readFileSync(join(folder, draft, file), "utf8")) as readonly Case[];
      for (const { description, schema, tests } of cases) {
        const validate = createValidator(typeof schema === "boolean" ? (schema ? {} : { not: {} }) : schema);
        for (const { data, valid } of tests) {
          count++;
          if ((await validate(data)).ok !== valid) wrong.add(`${draft}/${file}: ${description}`);
        }
      }
    }
    expect(count).toBeGreaterThan(500);
    expect([...wrong].toSorted()).toEqual(
      [...otherwise.keys()].filter((name) => name.startsWith(`${draft}/`)).toSorted(),
    );
  },
);
