import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { checkLark, checkRegex } from "../../src/check/lark.ts";

/** The grammar codex shows its models, as published. */
const grammar = `start: begin_patch hunk+ end_patch
begin_patch: "*** Begin Patch" LF
end_patch: "*** End Patch" LF?

hunk: add_hunk | delete_hunk | update_hunk
add_hunk: "*** Add File: " filename LF add_line+
delete_hunk: "*** Delete File: " filename LF
update_hunk: "*** Update File: " filename LF change_move? change?

filename: /(.+)/
add_line: "+" /(.*)/ LF -> line

change_move: "*** Move to: " filename LF
change: (change_context | change_line)+ eof_line?
change_context: ("@@" | "@@ " /(.+)/) LF
change_line: ("+" | "-" | " ") /(.*)/ LF
eof_line: "*** End of File" LF

%import common.LF
`;

const good =
  "*** Begin Patch\n*** Add File: a.txt\n+one\n+\n*** Update File: b.txt\n*** Move to: c.txt\n@@ def f():\n-old\n+new\n kept\n*** End of File\n*** Delete File: d\n*** End Patch\n";

test("patches that follow codex's grammar are accepted, with and without the last line break", () => {
  expect(checkLark(grammar, good)).toEqual({ ok: true });
  expect(checkLark(grammar, good.trimEnd())).toEqual({ ok: true });
});

test.each([
  ["no beginning", good.slice(16), 0],
  ["a line without a sign", good.replace("-old", "old"), good.indexOf("-old")],
  ["no end", good.replace("*** End Patch\n", ""), good.indexOf("*** End Patch")],
  ["no hunk", "*** Begin Patch\n*** End Patch\n", 16],
  ["words after the end", `${good}thanks`, good.length],
])("%s is refused at the place", (_name, text, position) => {
  expect(checkLark(grammar, text)).toMatchObject({ ok: false, position });
});

test("the shared patches are judged without an error", () => {
  const dir = new URL("../../../shared/data/patches/", import.meta.url);
  const cases = readdirSync(dir, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  expect(cases.length).toBeGreaterThan(5);
  const accepted = cases.filter(
    ({ name }) => checkLark(grammar, readFileSync(new URL(`${name}/patch.txt`, dir), "utf8")).ok,
  );
  expect(accepted.length).toBeGreaterThan(cases.length / 2);
});

test("a patch of 50,000 lines takes a moment, not minutes", () => {
  const lines = Array.from({ length: 50_000 }, (_, index) => `+line ${index}`).join("\n");
  const started = performance.now();
  expect(checkLark(grammar, `*** Begin Patch\n*** Add File: a\n${lines}\n*** End Patch`)).toEqual({ ok: true });
  expect(performance.now() - started).toBeLessThan(10_000);
});

test.each([
  ["left recursion", 'start: list\nlist: list "," item | item\nitem: "x"'],
  ["a directive we do not know", 'start: "a"\n%ignore " "'],
  ["a rule that is not there", "start: nowhere"],
  ["no start", 'other: "a"'],
  ["nonsense", "%%%"],
  ["deep recursion", 'start: a\na: "(" a ")" | "x"'],
])("%s counts as accepted", (_name, definition) => {
  expect(checkLark(definition, "(".repeat(5000))).toEqual({ ok: true });
});

test("counted repetition, options, case and alternatives over lines are read", () => {
  const definition = 'start: WORD~2..3 [num]\n  | "end"i\nWORD: /[a-z]+ /\nnum: /\\d+/';
  for (const text of ["a b ", "a b c 7", "END"]) expect(checkLark(definition, text), text).toEqual({ ok: true });
  for (const text of ["a ", "a b c d ", "7"]) expect(checkLark(definition, text).ok, text).toBe(false);
});

test("a regular expression must match the whole text, and another engine's is not judged", () => {
  expect(checkRegex("[a-z]+", "abc").ok).toBe(true);
  expect(checkRegex("[a-z]+", "abc1").ok).toBe(false);
  expect(checkRegex("(?P<x>a)", "zzz").ok).toBe(true);
});
