/**
 * The real awk, sed, jq, find and printf as judges of our reading: random programs, thousands on demand
 * (CALLGATE_ORACLE_RUNS), and each one that counts as harmless is run for real. None may leave a file,
 * change one, start a program or show what lies outside.
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as fc from "fast-check";
import { afterAll, describe, expect, test } from "vitest";
import { judge } from "../../src/gate/command/harmless.ts";
import { has, programPath } from "../needs.ts";

const root = realpathSync(mkdtempSync(join(tmpdir(), "callgate-languages-")));
const folder = join(root, "ws");
mkdirSync(folder);
const start = { a: "hello a\nworld b\n", "j.json": '{"a":[1,2],"env":"x"}\n', b: "1 2 3\n4 5 6\n" };
for (const [name, text] of Object.entries(start)) writeFileSync(join(folder, name), text);
writeFileSync(join(root, "secret"), "S3CRET\n");
afterAll(() => rmSync(root, { recursive: true, force: true }));

const runs = Number(process.env["CALLGATE_ORACLE_RUNS"] ?? 250);

/** What is left of the folder as it was, and what was shown of the outside. */
function effectOf(program: string, args: readonly string[]): string | undefined {
  const { stdout, stderr } = spawnSync(program, args, {
    cwd: folder,
    input: "in 1\n",
    encoding: "utf8",
    timeout: 5_000,
    maxBuffer: 1_000_000,
    env: { PATH: "/usr/bin:/bin", S: "S3CRET", LC_ALL: "C" },
  });
  if (`${stdout}${stderr}`.includes("S3CRET")) return "it showed what lies outside";
  const names = readdirSync(folder).toSorted();
  const outside = readdirSync(root).toSorted();
  if (outside.join() !== "secret,ws") return `it left ${outside.join()} outside`;
  if (names.join() !== Object.keys(start).toSorted().join()) return `it left ${names.join()}`;
  const changed = Object.entries(start).find(([name, text]) => readFileSync(join(folder, name), "utf8") !== text);
  return changed === undefined ? undefined : `it changed ${changed[0]}`;
}

function restore(): void {
  for (const name of readdirSync(folder)) rmSync(join(folder, name), { recursive: true, force: true });
  for (const [name, text] of Object.entries(start)) writeFileSync(join(folder, name), text);
}

/** Random sequences of pieces; each harmless one is run. Returns how many were. */
function play(program: string, pieces: readonly string[], toArgs: (text: string) => readonly string[]): number {
  let allowed = 0;
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...pieces), { minLength: 1, maxLength: 14 }), (chosen) => {
      const args = toArgs(chosen.join(""));
      const judged = judge(program, args);
      if ("why" in judged || judged.reads.some((path) => path.startsWith("/") || path.includes(".."))) return;
      allowed++;
      const effect = effectOf(program, args);
      if (effect !== undefined) restore();
      expect(effect, args.join(" ")).toBeUndefined();
    }),
    { numRuns: runs * 4 },
  );
  return allowed;
}

// prettier-ignore
const awkPieces = [
  "BEGIN{", "{", "}", "}", "\n", ";", " ", " ", "(", ")", "[", "]", "x", "y=", "1", "1", "0x", "1e", ".5", "$1", "$", "NF", "\"", "\"", "\"a\"",
  "/", "/a/", "/\"/", "/[/]/", "/[\"]/", "\\", "\\\"", "\\\n", "#", "#\"", "++", "--", "!", "~", "==", ">", "<", ">=", "&&", "||", "|", ",", "?", ":",
  "print ", "print", "printf(\"%s\",", "if(1)", "while(0)", "for(;;)", "else ", "in ", "length", "length ", "substr(", "function f(a){", "f(", "return ",
  "system(\"touch pwned\")", "1system(\"touch pwned\")", "x=system(\"touch pwned\");", "\"touch pwned\"|getline", "getline l<\"../secret\"", "print l", ">\"pwned\"", "|\"touch pwned\"",
  "print>\"pwned\"", "ENVIRON[\"S\"]", "for(k in ENVIRON)print ENVIRON[k]", "ARGV[1]=\"../secret\"", "@", "close(", "print(1)>\"pwned\"", "print(1)(2)>\"pwned\"", "exit;", "next;", "{print}", "END{",
];

// prettier-ignore
const sedPieces = [
  "p", "d", "s/a/b/", "s/a/touch pwned/e", "s/a/b/w pwned", "1", "$", "2,3", ",", "/a/", "\\,a,", "!", "{", "}", ";", ";", "\n", " ", "e touch pwned", "e", "w pwned", "w", "r ../secret", "R ../secret",
  "a", "a text", "a\\\n", "i\\", "c x", "y/a/b/", "s|a|b|", "s/[/]/x/", "s/[", "]/", "/e", "/w pwned", "e\n", "\\", "\\\n", "b", "t", ":x", "bx", "b x;", "T", "q", "q1", "l", "l 3", "=", "F", "z", "#", "#n\n", "I", "g", "M", "m", "\"", "&", "/", "0~2", "+1", "n", "N", "D", "G", "h", "x",
];

// prettier-ignore
const jqPieces = [
  ".", ".a", ".env", "..", "[", "]", "{", "}", "(", ")", "|", ",", ":", ";", " ", "\"", "\"a\"", "\\(", "\\", "env", "$ENV", "$ENV.S", "env.S", "$x", "$__prog_args", " as $x|", "1", "1.", "-", "+", "//", "?", "@sh", "@text", "def f:", "def env:", "f",
  "if ", " then ", " else ", " end", "input", "inputs", "input_filename", "import \"../secret\" as $d;", "include \"a\";", "map(", "select(", "keys", "length", "test(\"a\")", "{env:", "{env}", "{(env.S):1}", "[env]", "#", "#\\\n", "\n", "getpath(", "limit(1;", "reduce ", "tostring", "error", "halt_error", "$__loc__", "try ", "..[", "?//",
];

// prettier-ignore
const findPieces = [
  ". ", "a ", ".. ", "-name ", "* ", "-print ", "-printf ", "%p ", "-exec ", "touch ", "pwned ", "; ", "+ ", "-delete ", "-fprint ", "-fprintf ", "-fls ", "-ok ", "-execdir ", "-o ", "-a ", "! ", "( ", ") ", ", ", "-type ", "f ", "-newer ", "-newermt ", "-maxdepth ", "1 ", "-files0-from ", "-H ", "-L ", "-P ", "-D ", "-O3 ", "-prune ", "-regex ", "-size ", "-empty ", "-quit ", "-fprint0 ", "{} ", "-perm ", "-ls ",
];

// prettier-ignore
const printfPieces = ["%", "%", "n", "l", "h", "z", "j", "t", "L", "d", "s", "b", "*", ".", "5", "0", "-", " ", "#", "'", "(", ")", "T", "%%", "%s", "\\n", "q", "x", "Q"];

const sized = (program: string) => `${program}: what counts as harmless does nothing`;

describe("random programs", () => {
  const awks = ["awk", "mawk", "gawk"].filter((program) => programPath(program) !== undefined);
  test.each(awks.map((program) => [sized(program), program] as const))("%s", (_title, program) => {
    expect(play(program, awkPieces, (text) => [text, "a", "b"])).toBeGreaterThan(runs / 100);
  });
  test(sized("sed"), () => {
    expect(play("sed", sedPieces, (text) => ["-e", text, "a", "b"])).toBeGreaterThan(runs / 100);
  });
  test.skipIf(!has("jq"))(`${sized("jq")} (needs jq)`, () => {
    expect(play("jq", jqPieces, (text) => [text, "j.json"])).toBeGreaterThan(runs / 100);
  });
  test(sized("find"), () => {
    expect(play("find", findPieces, (text) => text.trim().split(" "))).toBeGreaterThan(runs / 100);
  });
});

test("a printf format that counts as harmless sets no variable", () => {
  const formats = fc.array(fc.constantFrom(...printfPieces), { minLength: 1, maxLength: 8 });
  const chosen = fc
    .sample(formats, runs * 20)
    .map((pieces) => pieces.join(""))
    .filter((format) => !("why" in judge("printf", [format, "V", "V"])));
  expect(chosen.length).toBeGreaterThan(runs / 100);
  const script = chosen
    .map((format) => `V=; printf '${format.replaceAll("'", `'\\''`)}' V V >/dev/null 2>&1; [ -z "$V" ] || echo set`)
    .join("\n");
  expect(spawnSync("bash", { input: script, encoding: "utf8" }).stdout).toBe("");
});
