import * as fc from "fast-check";
import { expect, test } from "vitest";
import { createNameBook, spellerOf } from "../../src/wire/names.ts";

test("a namespace and its tool are joined, and the table says what they are", () => {
  const tool = { name: "get-image", namespace: "mcp__srv", kind: "function" } as const;
  const book = createNameBook([
    tool,
    { name: "read_file", kind: "function" },
    { name: "docs/search", kind: "function" },
  ]);
  expect(book.spell("get-image", "mcp__srv")).toBe("mcp__srv__get-image");
  expect(book.spell("docs/search")).toBe("mcp__docs__search");
  expect(book.table.get("mcp__srv__get-image")).toEqual(tool);
  expect(spellerOf(book.table)("get-image", "mcp__srv")).toBe("mcp__srv__get-image");
});

test("tools that would be spelled alike get different names", () => {
  const tools = [
    { name: "a__b", kind: "function" },
    { name: "b", namespace: "a", kind: "function" },
    { name: "a/b", kind: "function" },
    { name: "mcp__a__b", kind: "custom" },
  ] as const;
  const book = createNameBook(tools);
  expect(book.table.size).toBe(4);
  for (const tool of tools)
    expect(book.table.get(book.spell(tool.name, "namespace" in tool ? tool.namespace : undefined))).toEqual(tool);
});

test("every spelling is legal, comes back to its tool, and does not depend on the order", () => {
  const part = fc.oneof(fc.stringMatching(/^[a-z_]{1,8}$/), fc.string({ unit: "binary", minLength: 1, maxLength: 90 }));
  const tool = fc.record({ name: part, namespace: fc.option(part, { nil: undefined }) });
  fc.assert(
    fc.property(fc.uniqueArray(tool, { selector: ({ name, namespace }) => `${namespace ?? ""}\0${name}` }), (list) => {
      const tools = list
        .filter(({ name, namespace }) => !name.includes("\0") && namespace?.includes("\0") !== true)
        .map(({ name, namespace }) => ({
          name,
          kind: "function" as const,
          ...(namespace === undefined ? {} : { namespace }),
        }));
      const book = createNameBook(tools);
      expect(book.table.size).toBe(tools.length);
      for (const one of tools) {
        const spelling = book.spell(one.name, one.namespace);
        expect(spelling).toMatch(/^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$/);
        expect(book.table.get(spelling)).toEqual(one);
      }
    }),
  );
});
