import * as fc from "fast-check";
import { expect, test } from "vitest";
import { commonRules, spellNames } from "../../src/spec/name.ts";
import { spellProperty } from "../../src/schema/property.ts";

test("names that every wire takes are left alone; servers' tools get the known prefix", () => {
  expect(Object.fromEntries(spellNames(["read_file", "github/create-issue", "a/b"]))).toEqual({
    read_file: "read_file",
    "github/create-issue": "mcp__github__create-issue",
    "a/b": "mcp__a__b",
  });
});

test("too long, odd and colliding names get a hash of their true name", () => {
  const long = "server/synchronize_all_customer_data_across_multiple_systems_and_regions_v2";
  const table = spellNames([long, "a/b c", "a/b.c", "a/b__c", "a__b/c"]);
  expect(table.get(long)).toMatch(/^mcp__server__synchronize_all_customer_data_across_mult.*_[0-9a-f]{8}$/);
  for (const name of ["a/b c", "a/b.c"]) expect(table.get(name)).toMatch(/^mcp__a__b_c_[0-9a-f]{8}$/);
  expect(table.get("a/b__c")).not.toBe(table.get("a__b/c"));
});

test("any names: spellings are legal, different, and the same whatever the order", () => {
  const name = fc.oneof(
    fc.string({ minLength: 1, maxLength: 120 }),
    fc.stringMatching(/^[a-c_/-]{1,6}$/),
    fc.stringMatching(/^mcp__[ab]__[ab]{1,2}$/),
  );
  fc.assert(
    fc.property(fc.uniqueArray(name, { maxLength: 30 }), (names) => {
      const table = spellNames(names);
      const spellings = [...table.values()];
      expect(new Set(spellings).size).toBe(names.length);
      for (const spelling of spellings) expect(spelling).toMatch(/^[A-Za-z_][A-Za-z0-9_-]{0,63}$/);
      expect(new Map(spellNames(names.toReversed(), commonRules))).toEqual(new Map(table));
    }),
  );
});

test("property names: legal ones stay, the rest become legal and stay apart", () => {
  fc.assert(
    fc.property(fc.uniqueArray(fc.string({ maxLength: 100 }), { maxLength: 20 }), (names) => {
      const spelled = names.map(spellProperty);
      expect(new Set(spelled).size).toBe(names.length);
      for (const [index, name] of names.entries()) {
        expect(spelled[index]).toMatch(/^[A-Za-z0-9_.-]{1,64}$/);
        expect(spellProperty(spelled[index]!)).toBe(spelled[index]);
        if (/^[A-Za-z0-9_.-]{1,64}$/.test(name)) expect(spelled[index]).toBe(name);
      }
    }),
  );
});
