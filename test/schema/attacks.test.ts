/** Hostile schemas, the shared ones and ours, and arguments: valid for every provider, or told; never a crash. */
import { expect, test } from "vitest";
import { CallError } from "../../src/base/error.ts";
import type { JsonObject } from "../../src/base/json.ts";
import { check } from "../../src/check/check.ts";
import { checkSchema } from "../../src/schema/normalize/check-schema.ts";
import { normalizeSchema, schemaTargets } from "../../src/schema/normalize.ts";
import { rowsOf } from "../attacks/rows.ts";

const attacks = rowsOf("schema").map(([id, { input, expected }]) => ({
  id,
  expected,
  input: input as { readonly schema: JsonObject; readonly arguments?: string | null },
}));

test.each(attacks)("$id gives a schema every target takes", ({ input }) => {
  for (const target of schemaTargets)
    expect(checkSchema(normalizeSchema(input.schema, target).schema, target), target).toEqual([]);
});

test.each(attacks.filter(({ input }) => typeof input.arguments === "string"))(
  "$id: the arguments are told or read",
  async ({ input, expected }) => {
    const tool = { name: "t", description: "", input: input.schema, run: () => "" };
    const bound = { id: "1", name: "t", kind: "function", arguments: input.arguments ?? "", askedAt: 0, tool } as const;
    const outcome = await check(bound, { workspace: "/", cwd: "/", terminals: [] }).catch((error: unknown) => error);
    if (expected === "must_be_reported") expect(CallError.is(outcome)).toBe(true);
    else expect(CallError.is(outcome) || (outcome as { notes: readonly string[] }).notes.length > 0).toBe(true);
  },
);
