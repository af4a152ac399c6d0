import * as fc from "fast-check";
import { expect, test } from "vitest";
import { createIdMaker, idRules, inventId, legalId } from "../../src/wire/ids.ts";

test("invented ids are the same in every run and differ by seed and position", () => {
  expect(inventId("s", 0)).toBe(inventId("s", 0));
  expect(inventId("s", 0)).toMatch(/^call_[0-9a-f]{24}$/);
  expect(new Set([inventId("s", 0), inventId("s", 1), inventId("t", 0)]).size).toBe(3);
});

test("a maker never gives one id twice, whatever it is handed", () => {
  fc.assert(
    fc.property(fc.array(fc.option(fc.constantFrom("a", "b", "", inventId("", 1)), { nil: undefined })), (given) => {
      const maker = createIdMaker();
      const ids = given.map((id, at) => maker.claim(id, at));
      expect(new Set(ids).size).toBe(ids.length);
      expect(ids).not.toContain("");
    }),
  );
});

test("a legal id stays as it is, another becomes legal and stays itself on every replay", () => {
  const rules = [idRules.messages, idRules.gemini, { max: 9, exact: true }] as const;
  fc.assert(
    fc.property(fc.string({ unit: "binary", maxLength: 100 }), fc.constantFrom(...rules), (id, rule) => {
      const legal = legalId(id, rule);
      expect(legal).toMatch("exact" in rule ? /^[a-zA-Z0-9]{9}$/ : /^[a-zA-Z0-9_-]{1,64}$/);
      expect(legalId(id, rule)).toBe(legal);
      expect(legalId(legal, rule)).toBe(legal);
    }),
  );
});

test("ids that would be cleaned to the same text stay apart", () => {
  const ids = ["functions.Bash:0", "functions_Bash_0", "functions:Bash.0", "functions.Bash.0"];
  expect(new Set(ids.map((id) => legalId(id, idRules.messages))).size).toBe(4);
  expect(legalId("functions_Bash_0", idRules.messages)).toBe("functions_Bash_0");
  expect(legalId("x".repeat(70), idRules.responses)).toHaveLength(64);
  const many = Array.from({ length: 5000 }, (_, at) => legalId(`call_${at}`, { max: 9, exact: true }));
  expect(new Set(many).size).toBe(5000);
});
