/** A dialect that a program brings is checked when it is first used, and the message says where it is wrong. */
import { expect, test } from "vitest";
import { checkDialect } from "../../src/dialect/check.ts";
import { decodeText, dialects, teach, type Dialect } from "../../src/dialect/index.ts";

const own: Dialect = {
  name: "angle",
  title: "<<JSON>>",
  models: ["my model"],
  trust: "taught",
  blocks: [{ open: ["<<"], close: [">>"], bodies: [{ kind: "json" }] }],
  result: { role: "user", each: "<<result {text}>>" },
};
const [block] = own.blocks;

test("a right one is read", () => {
  const { items } = decodeText('<<{"name":"add","arguments":{}}>>', { dialect: own, tools: [{ name: "add" }] });
  expect(items).toMatchObject([{ type: "call", name: "add" }]);
});

test.each(dialects.map((dialect) => [dialect.name, dialect] as const))("our own '%s' is one", (_name, dialect) => {
  expect(() => checkDialect(dialect)).not.toThrow();
});

test.each<[string, object, string]>([
  ["a string for a list", { blocks: [{ ...block, open: "<<" }] }, "'angle.blocks[0].open' must be a list of strings"],
  ["a misspelled kind", { blocks: [{ ...block, bodies: [{ kind: "jsn" }] }] }, "did you mean 'json'?"],
  ["a kind that lacks its part", { blocks: [{ ...block, bodies: [{ kind: "named" }] }] }, "needs 'separator'"],
  ["an unknown field", { blcks: [] }, "there is no field 'angle.blcks'; did you mean 'blocks'?"],
  ["an unknown trust", { trust: "yes" }, "'angle.trust' must be one of special-token, taught, markerless"],
  ["a kind that lacks all", { blocks: [{ ...block, bodies: [{ kind: "pairs" }] }] }, "needs 'key', 'value', 'trim'"],
  ["no blocks", { blocks: undefined }, "dialect: 'angle' needs 'blocks'"],
  ["no form for results", { result: undefined }, "'angle' needs 'result'"],
])("%s is told with its place", (_what, change, message) => {
  const wrong = { ...own, ...change } as Dialect;
  for (const use of [() => decodeText("hi", { dialect: wrong }), () => teach(wrong, [])]) {
    expect(use).toThrow(TypeError);
    expect(use).toThrow(message);
  }
});
