/**
 * Real bash as the judge of our reading: with an empty PATH and a handler for unknown commands it
 * tells every command a line really starts. None may start that a deny rule for it would not have
 * stopped, and none that was neither named nor asked about.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as fc from "fast-check";
import { afterAll, expect, test } from "vitest";
import { createPolicy } from "../../src/gate/options.ts";
import { decideCommand } from "../../src/gate/policy.ts";
import type { Rule } from "../../src/gate/rules.ts";

const dir = realpathSync(mkdtempSync(join(tmpdir(), "callgate-oracle-")));
afterAll(() => rmSync(dir, { recursive: true, force: true }));
/** Each line has a log of its own: what it left in the background must not be heard under the next one. */
let lines = 0;
writeFileSync(
  join(dir, "handler"),
  `command_not_found_handle() { printf '%s\n' "$1" >> "$ORACLE_LOG"; return 0; }
`,
);

/** The names of the commands bash really tried to start. */
function started(line: string): readonly string[] {
  const log = join(dir, `log-${lines++}`);
  writeFileSync(log, "");
  spawnSync("/bin/bash", ["-c", line], {
    cwd: dir,
    env: { PATH: "/nowhere", BASH_ENV: join(dir, "handler"), HOME: dir, ORACLE_LOG: log },
    // A pipe of Node's is a socket, and bash with a socket as stdin reads no BASH_ENV.
    stdio: "ignore",
    timeout: 5_000,
  });
  return [...new Set(readFileSync(log, "utf8").split("\n").filter(Boolean))];
}

function decide(line: string, rules: readonly Rule[]) {
  const settings = { approval: "unless-trusted", sandbox: "workspace-write" } as const;
  return decideCommand(
    { shell: line, cwd: dir },
    createPolicy({
      settings,
      workspace: dir,
      home: dir,
      mask: [],
      confinement: { name: "test", available: true },
      rules,
    }),
  );
}

const names = ["zqa", "zqb", "zqc"] as const;
const name = fc.constantFrom(...names);
const octal = (text: string) => [...text].map((char) => `\\${char.charCodeAt(0).toString(8)}`).join("");

/** A name as it can be written. */
const spelled = name.chain((n) =>
  fc.constantFrom(
    n,
    `'${n}'`,
    `"${n}"`,
    `\\${n}`,
    `${n[0]}''${n.slice(1)}`,
    `${n[0]}\\${n.slice(1)}`,
    `$'${octal(n)}'`,
    `$"${n}"`,
    `$(echo ${n})`,
    `\`echo ${n}\``,
    `"$(echo ${n})"`,
    `\${x:-${n}}`,
    `\${x-${n}}`,
    `${n.slice(0, 2)}\${x}${n.slice(2)}`,
  ),
);

const simple = fc
  .tuple(
    fc.constantFrom(
      "",
      "V=1 ",
      "2>/dev/null ",
      "! ",
      "time ",
      "command ",
      "builtin command ",
      "exec 3>&1; ",
      "env ",
      "x= ",
    ),
    spelled,
    fc.constantFrom("", " a b", " 'a b'", " >/dev/null", " <<< x", " &", " 2>&1", " # c"),
  )
  .map((parts) => parts.join(""));

/** What can stand around a command. `⟨⟩` is its place. */
const frames = [
  "⟨⟩; true",
  "true; ⟨⟩",
  "true && ⟨⟩",
  "false || ⟨⟩",
  "true | ⟨⟩",
  "⟨⟩ | true",
  "(⟨⟩\n)",
  "{ ⟨⟩\n}",
  "if true; then ⟨⟩\nfi",
  "if ⟨⟩\nthen :; fi",
  "for i in 1; do ⟨⟩\ndone",
  "for ((i=0;i<1;i++)); do ⟨⟩\ndone",
  "case x in x) ⟨⟩\n;; esac",
  "f() { ⟨⟩\n}; f",
  "function f { ⟨⟩\n}; f",
  "while ⟨⟩\nfalse; do :; done",
  "until ⟨⟩\ntrue; do :; done",
  "echo $(⟨⟩\n)",
  'echo "$(⟨⟩\n)"',
  "x=$(⟨⟩\n)",
  "a=($(⟨⟩\n))",
  "echo ${u:-$(⟨⟩\n)}",
  "echo ${u:=$(⟨⟩\n)}",
  "echo $(( 0$(⟨⟩\n) ))",
  "[[ -n $(⟨⟩\n) ]]",
  "(( 0$(⟨⟩\n) ))",
  "cat <(⟨⟩\n)",
  "echo > >(⟨⟩\n)",
  "cat <<E\n$(⟨⟩\n)\nE",
  "cat <<-E\n\t$(⟨⟩\n)\nE",
  "cat <<< $(⟨⟩\n)",
  "echo x$(echo $(⟨⟩\n))",
  "coproc ⟨⟩\nwait",
  "a[$(⟨⟩\n)0]=1",
  "printf %s $(⟨⟩\n)",
  "echo ${x#$(⟨⟩\n)}",
  "echo ${x/a/$(⟨⟩\n)}",
  "echo ${x:$(⟨⟩\n)0}",
  "case $(⟨⟩\n) in *) ;; esac",
  "for i in $(⟨⟩\n); do :; done",
  "echo 2>&1 >$(⟨⟩\n)/dev/null",
  "true & ⟨⟩",
  "\n# c\n⟨⟩\n",
  "⟨⟩ \\\n x",
];

/** Text that a builtin evaluates. */
const evaluated = [
  "eval '⟨⟩'",
  "eval ⟨⟩",
  "trap '⟨⟩' EXIT",
  'eval "eval ⟨⟩"',
  "x='$(⟨⟩)'; echo ${x@P}",
  "test -v 'a[$(⟨⟩)]'",
  "[ -v 'a[$(⟨⟩)]' ]",
  "printf -v 'a[$(⟨⟩)]' x",
  "let 'a[$(⟨⟩)]=1'",
  "declare -a a; unset 'a[$(⟨⟩)0]'",
  "[[ 'a[$(⟨⟩)]' -eq 1 ]]",
  "b='a[$(⟨⟩)]'; echo $((b))",
  "b='a[$(⟨⟩)]'; ((b))",
  "read 'a[$(⟨⟩)0]' <<< 1",
  "alias q=⟨⟩; q",
  "shopt -s expand_aliases\nalias q='⟨⟩'\nq",
  'set -- ⟨⟩; "$@"',
  "set -- ⟨⟩; $1",
  "x=(⟨⟩); ${x[0]}",
  "x=⟨⟩; $x",
  "n=x; x=⟨⟩; ${!n}",
  "mapfile -C ⟨⟩ -c 1 a <<< x",
  "PS4='$(⟨⟩)'; set -x; true",
  "PROMPT_COMMAND=⟨⟩",
  "source /dev/stdin <<< ⟨⟩",
  ". /dev/stdin <<< ⟨⟩",
  "{⟨⟩,a}",
  "⟨⟩{,}",
  'q() { "$@"; }; q ⟨⟩',
  "hash -p /nowhere/x q; ⟨⟩",
  "exec 3< <(⟨⟩)",
];

const line = fc
  .tuple(simple, fc.array(fc.constantFrom(...frames), { maxLength: 3 }))
  .map(([inner, around]) => around.reduce((text, frame) => frame.replaceAll("⟨⟩", () => text), inner));

const denyAll = (found: readonly string[]) => found.map((command): Rule => ({ command: [command], decision: "deny" }));
const allowAll = names.map((command): Rule => ({ command: [command], decision: "allow" }));

function check(text: string): void {
  const ran = started(text);
  for (const rule of denyAll(ran))
    expect(decide(text, [rule]).decision, `${text}\nran ${String(rule.command)} against a deny`).toBe("deny");
  const verdict = decide(text, allowAll);
  const named = new Set(verdict.commands.map(([first]) => first));
  if (verdict.decision === "allow")
    expect(
      ran.filter((command) => !named.has(command)),
      `${text}\nran something nobody named`,
    ).toEqual([]);
}

test("the oracle hears what bash starts", () => {
  expect(started("zqa; echo $(zqb)")).toEqual(["zqa", "zqb"]);
});

test("whatever bash really starts, a deny rule for it would have stopped, and an allow had named it", () => {
  fc.assert(fc.property(line, check), { numRuns: 400, seed: 7 });
});

test.each(evaluated.flatMap((frame) => names.slice(0, 1).map((n) => frame.replaceAll("⟨⟩", () => n))))(
  "text that is evaluated: %s",
  (text) => check(text),
);
