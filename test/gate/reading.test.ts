/**
 * Corners of reading a line: where our reading could differ from what the shell or the program does. Each of these was
 * once a line of our code that no test held.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as fc from "fast-check";
import { afterAll, describe, expect, test } from "vitest";
import { evaluates } from "../../src/gate/command/syntax.ts";
import { understand } from "../../src/gate/command/understand.ts";
import { isStricter } from "../../src/gate/modes.ts";
import type { Command } from "../../src/spec/access.ts";
import { createWorkspace } from "./workspace.ts";

const workspace = createWorkspace();
afterAll(() => workspace.remove());
for (const name of ["x1", "x2", "x3", "x4", "x5"]) writeFileSync(join(workspace.ws, name), "");

const decision = (line: string) => workspace.decide(line).decision;
const denying = (line: string, command = "rm") =>
  workspace.decide(line, { rules: [{ command, decision: "deny" }] }).decision;
const read = (command: string | Command) =>
  understand(typeof command === "string" ? { shell: command, cwd: workspace.ws } : command, workspace.policy());

describe("known to only look", () => {
  test.each([
    "find . -true -name 'x*'",
    "find . -false -o -print",
    "find . -newer README.md -newermt 2020-01-01",
    "sed -n '# a comment\n1p' README.md",
    "sed -n '/a\\.b/p' README.md",
    "sed -n '\\|a|p' README.md",
    "awk '/[^]]a/ { print }' README.md",
    "awk '/[]a]/' README.md",
    "awk 'function twice(x) { return x x } { print twice($1) }' README.md",
    "awk -v n=1 '{ print n }' README.md",
    "awk '{ print n }' n=1 README.md",
    "awk --assign n=1 '{ print n }' README.md",
    "jq 'def first_of: .a; first_of' package.json",
    "jq 'def pick(f; g): f | g; pick(.a; .b)' package.json",
    "jq --version",
    "printf -- 'a %s' b",
    "uniq README.md",
    "if test -f README.md; then cat README.md; elif test -d src; then ls src; else pwd; fi",
    "[[ ( -f README.md ) ]] && cat README.md",
    "cat x[135]",
  ])("%s", (line) => {
    const { decision: decided, reason } = workspace.decide(line);
    expect(`${decided}: ${reason}`).toMatch(/^allow/);
  });
});

describe("not known to only look", () => {
  test.each([
    "find . -newer",
    "find . -newer ../out/secret.txt",
    "awk '/[/]a/' README.md",
    "awk '/[^/]a/' README.md",
    "awk '/[]/]a/' README.md",
    "awk '/[[]/' README.md",
    "awk '/a\\\n/' README.md",
    "awk -v ENVIRON=1 '{ print }' README.md",
    "awk '{ print }' PROCINFO=1 README.md",
    `awk '${"1;".repeat(20_000)}' README.md`,
    "jq 'def f: input_filename; env' package.json",
    `jq '${'"\\\\('.repeat(60)}.${')"'.repeat(60)}' package.json`,
    `jq '${".|".repeat(20_000)}.' package.json`,
    "sed 's/a/b' README.md",
    "sed 's/a\nb/c/' README.md",
    "sed 's/a/b\nc/' README.md",
    "sed '/a\\\nb/p' README.md",
    "uniq README.md src/made.txt",
    "cat README.md\u0001",
    "test 1 -eq",
    "test 1 -eq x",
    "test -d src && cd src; cat *.md",
    "cat README.md$?",
    `cat ${"README.md ".repeat(301)}`,
    "for f in a; do cd $f; done; cat *.txt",
  ])("%s", (line) => {
    const { decision: decided, reason } = workspace.decide(line);
    expect(`${decided}: ${reason}`.slice(0, 200)).not.toMatch(/^allow/);
  });
});

test("of a set of letters each one counts, and a range is all between its ends", () => {
  expect(read("ls x[135]").steps[0]?.argv).toEqual(["ls", "x1", "x3", "x5"]);
  expect(read("ls x[1-3]").steps[0]?.argv).toEqual(["ls", "x1", "x2", "x3"]);
  expect(read("ls x[!1-3]").steps[0]?.argv).toEqual(["ls", "x4", "x5"]);
  expect(read("ls x[^2]").steps[0]?.argv).toEqual(["ls", "x1", "x3", "x4", "x5"]);
});

describe("a deny of rm holds", () => {
  test.each([
    "for HO\\\nME in rm; do :; done; $HOME x",
    "HOME=rm bash -c '$HOME x'",
    "PWD=rm sh -c '$PWD x'",
    "env HOME=rm bash -c '$HOME x'",
    "sudo FOO=1 rm x",
    "sudo -u root FOO=1 BAR=2 rm x",
    "echo x > x.so; LD_PRELOAD=./x.so ls",
    "cp a b.so; LD_AUDIT=/none.so:./b.so ls",
    "echo x > start.sh; BASH_ENV=./start.sh bash -c ls",
    "echo x > start.sh; ENV=./start.sh sh -c ls",
    "BASH_ENV='$(rm x)' bash -c ls",
    "echo 'rm x' | python3 nosuch.py",
    "echo '!rm x' | dc",
    "dc -e '!rm x'",
    "echo x | crontab",
    "bash --nonsense-option x",
    'echo "${a[$(rm x)]}"',
    "x='a[$(rm x)]'; (( x ))",
    "x='a[$(rm x)]'; for ((;x;)); do break; done",
    "x='a[$(rm x)]'; export A=1 \"$x=1\"",
    "start-stop-daemon --exec rm -- -rf x",
    'x=$(cat f); echo "${x@P}"',
    'x=$(cat f); echo "a $((x)) b"',
    'x=$(cat f); echo "${a[x]}"',
    'x=$(cat f); y="${x@P}" ls',
    `${"true; ".repeat(350)}rm x`,
    "x".repeat(100_001),
  ])("%s", (line) => {
    expect(denying(line)).toBe("deny");
  });

  test.each(["git send-pack origin main", "git http-push origin", "git -C src send-pack .", "git push"])(
    "so does one of git push: %s",
    (line) => expect(denying(line, "git push")).toBe("deny"),
  );

  test.each([
    "A=./x.sh bash -c ls",
    "echo x | python3 -m json.tool",
    "dc -e '1 2 + p'",
    "git fetch origin",
    'echo "${a}"',
    "export A=1 B=2",
    "cat x[135]",
  ])("and lets alone what has nothing to do with it: %s", (line) => {
    expect(denying(line)).not.toBe("deny");
  });
});

test("what is fed to an interpreter is code, unless the script is a file that is there", () => {
  writeFileSync(join(workspace.ws, "real.py"), "print(1)\n");
  const hidden = (line: string) => read(line).steps.some((step) => step.hidden);
  expect(hidden("echo x | python3 real.py")).toBe(false);
  expect(hidden("echo x | python3 nosuch.py")).toBe(true);
  expect(hidden("python3 nosuch.py")).toBe(false);
  expect(hidden("test -d src && cd src; echo x | python3 ../real.py")).toBe(true);
});

test("the files that a shell reads before it starts are known, and other variables are none of them", () => {
  const runs = (line: string) => read(line).steps.flatMap((step) => step.runs);
  expect(runs("BASH_ENV=./a.sh bash -c ls")).toContain("./a.sh");
  expect(runs("ENV=./a.sh sh -c ls")).toContain("./a.sh");
  expect(runs("bash --rcfile ./a.sh -c ls")).toContain("./a.sh");
  expect(runs("OTHER=./a.sh bash -c ls")).not.toContain("./a.sh");
});

describe("what evaluates its words", () => {
  test.each<[string, boolean]>([
    ["((x++))", true],
    ["for ((i=0;i<3;i++)); do :; done", true],
    ['echo "${a[i]}"', true],
    ['echo "${!a}"', true],
    ['echo "${a@P}"', true],
    ['echo "${a:i}"', true],
    ['echo "$a"', false],
    ["echo ${a[i]}", true],
    ['echo "$((a))"', true],
    ["echo $((a))", true],
    ['cat <<< "${a@P}"', true],
    ["cat <<E\n${a@P}\nE", true],
    ['ls > "${a@P}"', true],
    ['case "${a@P}" in x) ;; esac', true],
    ["echo '${a@P}'", false],
    ["echo a", false],
  ])("%s: %s", (line, expected) => {
    // It matters only where a value was put together that could be code.
    expect(read(`a='b[$(c)]'; ${line}`).evaluates).toBe(expected);
    expect(read(`a=1; ${line}`).evaluates).toBe(false);
  });

  test.each<[readonly string[], boolean]>([
    [["export", "A=1"], false],
    [["export", "A=1", "B"], false],
    [["export", "A=1", "a[0]=1"], true],
    [["readonly", "A+=1"], false],
    [["readonly", "$x"], true],
    [["printf", "%s", "x"], false],
    [["printf", "%n", "x"], true],
    [["printf", "-v", "x"], true],
    [["printf"], true],
    [["test", "-v", "x"], true],
    [["test", "-f", "x"], false],
    [["[", "1", "-eq", "x", "]"], true],
    [["ls", "$x"], false],
  ])("%j: %s", (words, expected) => {
    expect(evaluates(words)).toBe(expected);
  });
});

describe("how much is read at most", () => {
  test("a line that is too long is not read, and says so", () => {
    expect(workspace.decide("x".repeat(100_001)).reason).toContain("longer than 100000 characters");
    expect(read(`echo ${"a ".repeat(40_000)}`).unclear).toHaveLength(1);
    expect(read("(".repeat(200)).unclear).toHaveLength(1);
  });

  test("neither are words without end, nor a command that is none", () => {
    expect(read({ argv: ["ls", "x".repeat(200_001)] }).unclear).toEqual(["the words are too long to look at"]);
    expect(read({ argv: Array.from({ length: 2_001 }, () => "a") }).unclear).toHaveLength(1);
    expect(read({ argv: ["ls", "x".repeat(1_000)] }).unclear).toEqual([]);
    expect(read({ argv: [] }).unclear).toEqual(["there is no command"]);
    expect(read({}).unclear).toEqual(["there is no command"]);
  });

  test("a line within a line within a line is read, and one that never ends is left to a person", () => {
    const wrap = (times: number) => {
      let line = "ls";
      for (let at = 0; at < times; at++) line = `bash -c ${JSON.stringify(line)}`;
      return line;
    };
    expect(decision(wrap(5))).toBe("allow");
    const commands = Array.from({ length: 290 }, (_, at) => `ls ${at}`).join("; ");
    const twice = `bash -c ${JSON.stringify(commands)}; bash -c ${JSON.stringify(commands)}`;
    expect(read(twice).unclear.length).toBeGreaterThan(0);
    expect(decision(twice)).toBe("ask");
  });

  test("nine folders that it may be in are too many to follow", () => {
    for (let at = 0; at < 9; at++) mkdirSync(join(workspace.ws, `d${at}`));
    const enter = Array.from({ length: 9 }, (_, at) => `test -d d${at} && cd {WS}/d${at}`).join("; ");
    expect(decision(`${enter}; ls`)).toBe("ask");
    expect(decision("test -d d1 && cd d1; ls")).toBe("allow");
  });
});

describe("laws of reading", () => {
  const unit = fc.constantFrom(
    ..."$(){}`'\"\\|&;<>\n a=[]!#*?~rm".split(""),
    "rm",
    "ls",
    "bash -c ",
    "$(",
    "<<E\n",
    "for i in ",
    "do ",
    "done",
    "if ",
    "fi",
    "[[ ",
    "]] ",
  );
  const text = fc.string({ unit, maxLength: 40 });

  test("a line that bash would not parse is never allowed", () => {
    const open = fc.constantFrom("'", '"', "$(", "`", "(", "{ ", "if true; then ", "for a in b; do ", "case x in ");
    fc.assert(
      fc.property(fc.constantFrom("ls", "cat README.md", "echo a", "pwd"), open, (line, opened) => {
        expect(decision(`${line}; ${opened}`), `${line}; ${opened}`).not.toBe("allow");
        expect(decision(`${opened}${line}`), `${opened}${line}`).not.toBe("allow");
      }),
      { numRuns: 40 },
    );
  });

  test("whatever stands before or behind it, a denied command is denied, if the line could run at all", () => {
    const before = fc.constantFrom(
      "ls; ",
      "true && ",
      "cat README.md | ",
      "! ",
      "time ",
      "A=1 ",
      "\n",
      "{ ls; }; ",
      "(ls); ",
    );
    const behind = fc.constantFrom(
      "",
      "; ls",
      " && ls",
      " | cat",
      " &",
      " > src/log",
      " 2>&1",
      " # done",
      "\n",
      " || true",
    );
    fc.assert(
      fc.property(fc.array(before, { maxLength: 4 }), fc.array(behind, { maxLength: 2 }), (starts, ends) => {
        const line = `${starts.join("")}forbidden x${ends.join("")}`;
        expect(denying(line, "forbidden"), line).toBe("deny");
      }),
      { numRuns: 150 },
    );
  });

  test("a deny rule never makes anything freer, nor an ask rule, on any text at all", () => {
    fc.assert(
      fc.property(text, fc.constantFrom("rm", "ls", "bash", "echo a"), (line, command) => {
        const plain = decision(line);
        for (const given of ["deny", "ask"] as const) {
          const after = workspace.decide(line, { rules: [{ command, decision: given }] }).decision;
          expect(isStricter(plain, after), `${line}: ${plain} became ${after}`).toBe(false);
        }
      }),
      { numRuns: 200 },
    );
  });

  test("reading is the same twice, and a line is read alike as a line and as the words of a shell", () => {
    fc.assert(
      fc.property(text, (line) => {
        expect(read(line)).toEqual(read(line));
        const asWords = workspace.decide({ argv: ["bash", "-c", line], cwd: workspace.ws }).decision;
        expect(isStricter(decision(line), asWords), line).toBe(false);
      }),
      { numRuns: 150 },
    );
  });
});
