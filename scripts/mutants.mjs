// `npm run mutants`: breaks one line at a time in gate, router, result and runtime, and runs the nearest tests. A
// mutant that no test notices is printed. `--count 60` of the generated ones, `--seed 1` which; the named ones always run.
import { spawn } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";

const root = resolve(import.meta.dirname, "..");
const { values } = parseArgs({
  options: {
    count: { type: "string", default: "60" },
    seed: { type: "string", default: "1" },
    jobs: { type: "string", default: String(Math.max(1, Math.floor(availableParallelism() / 2))) },
    file: { type: "string" },
  },
});

/** The files that carry the promise, each with the tests nearest to it. */
const gate = ["test/gate/gate.test.ts", "test/gate/stated.test.ts", "test/router/route.test.ts"];
const targets = {
  "src/gate/agree.ts": gate,
  "src/gate/approval.ts": gate,
  "src/gate/gate.ts": [...gate, "test/gate/hooks.test.ts"],
  "src/gate/grant.ts": [...gate, "test/gate/grant.test.ts", "test/gate/laws.test.ts"],
  "src/gate/hooks.ts": ["test/gate/hooks.test.ts", ...gate],
  "src/gate/modes.ts": [...gate, "test/gate/modes.test.ts"],
  "src/gate/options.ts": [...gate, "test/router/options.test.ts"],
  "src/gate/policy.ts": [...gate, "test/gate/laws.test.ts", "test/gate/lines.test.ts"],
  "src/gate/rules.ts": ["test/gate/rules.test.ts", "test/router/options.test.ts", "test/gate/laws.test.ts", ...gate],
  "src/gate/verdict.ts": [...gate, "test/gate/modes.test.ts", "test/gate/laws.test.ts"],
  "src/router/engine-options.ts": ["test/router/options.test.ts"],
  "src/router/lanes.ts": ["test/router"],
  "src/router/route.ts": ["test/router", "test/gate/gate.test.ts"],
  "src/router/turns.ts": ["test/router"],
  "src/result/layout.ts": ["test/result", "test/tools/shell.test.ts"],
  "src/result/output.ts": ["test/result", "test/router/route.test.ts"],
  "src/result/shape.ts": ["test/result", "test/router"],
  "src/result/truncate.ts": ["test/result"],
  "src/runtime/handler.ts": ["test/router"],
  "src/runtime/rehearse.ts": ["test/runtime/rehearse.test.ts"],
  "src/runtime/runtime.ts": ["test/router", "test/runtime/rehearse.test.ts"],
};

/** Mutants that once survived: they must never do so again. */
const named = [
  ["src/gate/grant.ts", "grant.mask.filter((mask) => !isInside(target, mask))", "[]"],
  ["src/gate/policy.ts", '!mutates && approval !== "unless-trusted"', "!mutates"],
  ["src/router/route.ts", "await stages.record.started(permitted);", "void stages.record.started(permitted);"],
  ["src/gate/gate.ts", "if (told.withheld !== undefined) {", "if (false) {"],
  ["src/gate/policy.ts", "if (!mutates) return touches;", "return true;"],
  ["src/router/route.ts", "if (fault !== undefined) throw fault.error;", ""],
];

const changes = [
  [/ === /, " !== "],
  [/ !== /, " === "],
  [/ && /, " || "],
  [/ \|\| /, " && "],
  [/\.some\(/, ".every("],
  [/\.every\(/, ".some("],
  [/\btrue\b/, "false"],
  [/\bfalse\b/, "true"],
  [/ < /, " >= "],
  [/ > /, " <= "],
  [/ \?\? /, " && "],
  [/(\(|return |&& |\? )!(?=[\w(])/, "$1"],
  [/^(\s*)await (?=.*;$)/, "$1void "],
  [/^(\s*)(?!return|throw|const|let|import|export|case|break|continue)[\w.?]+\(.*\);$/, "$1;"],
  [/^(\s*)return \[\];$/, "$1return [undefined];"],
  [/"allow"/, '"deny"'],
  [/"deny"/, '"allow"'],
];

/** Every one-line change of a file that is code: no comment, no type, no import. */
function mutantsOf(file) {
  const lines = readFileSync(join(root, file), "utf8").split("\n");
  let typeDepth = 0;
  return lines.flatMap((line, index) => {
    if (/^(export )?(interface|type) /.test(line)) typeDepth = 1;
    const skip =
      typeDepth > 0 || /^\s*(\/\/|\/?\*|import |export (type|\{)|readonly |\| )/.test(line) || line.trim() === "";
    if (typeDepth > 0 && /^}|;$/.test(line) && !/^\s/.test(line)) typeDepth = 0;
    if (skip) return [];
    const code = line.replace(/\s\/\/ .*$/, "");
    return changes.flatMap(([from, to]) => {
      const changed = code.replace(from, to);
      return changed === code
        ? []
        : [{ file, line: index + 1, before: line, text: lines.with(index, changed).join("\n") }];
    });
  });
}

function namedMutants() {
  return named.map(([file, from, to]) => {
    const text = readFileSync(join(root, file), "utf8");
    if (!text.includes(from)) throw new Error(`${file} no longer holds '${from}': mend the list of named mutants`);
    const line = text.slice(0, text.indexOf(from)).split("\n").length;
    return { file, line, before: from, text: text.replace(from, () => to), named: true };
  });
}

/** The same numbers for the same seed. */
function shuffle(list, seed) {
  let state = seed * 2654435761;
  const next = () => ((state = (Math.imul(state ^ (state >>> 15), 2246822519) + 374761393) >>> 0), state);
  return list
    .map((item) => [next(), item])
    .toSorted(([a], [b]) => a - b)
    .map(([, item]) => item);
}

function copyOfTree() {
  const copy = mkdtempSync(join(tmpdir(), "callgate-mutants-"));
  for (const name of [
    "src",
    "test",
    "package.json",
    "tsconfig.json",
    "vitest.config.ts",
    "dist",
    "native",
    "examples",
    "docs",
    "api",
    "scripts",
  ])
    cpSync(join(root, name), join(copy, name), { recursive: true, force: true });
  symlinkSync(join(root, "node_modules"), join(copy, "node_modules"));
  return copy;
}

/** True where a test failed, or did not end in time. */
function fails(copy, tests) {
  const args = ["vitest", "run", "--bail=1", "--reporter=dot", "--testTimeout=20000", ...tests];
  return new Promise((done) => {
    const child = spawn("npx", args, { cwd: copy, stdio: "ignore", detached: true });
    const limit = setTimeout(() => process.kill(-child.pid, "SIGKILL"), 180_000);
    child.on("close", (code) => {
      clearTimeout(limit);
      done(code !== 0);
    });
  });
}

async function notices(copy, mutant) {
  const path = join(copy, mutant.file);
  const whole = readFileSync(path, "utf8");
  writeFileSync(path, mutant.text);
  const killed = await fails(copy, targets[mutant.file]);
  writeFileSync(path, whole);
  return killed;
}

const files = Object.keys(targets).filter((file) => values.file === undefined || file.includes(values.file));
const generated = shuffle(files.flatMap(mutantsOf), Number(values.seed)).slice(0, Number(values.count));
const queue = [...namedMutants().filter(({ file }) => files.includes(file)), ...generated];
const total = queue.length;
// A test that fails anyway would kill every mutant: first all of them run on the code as it is.
const whole = copyOfTree();
const broken = await fails(whole, [...new Set(files.flatMap((file) => targets[file]))]);
rmSync(whole, { recursive: true, force: true });
if (broken) {
  console.error("The tests fail without any mutant: nothing can be told from them.");
  process.exit(2);
}
const survivors = [];
async function work() {
  const copy = copyOfTree();
  for (let mutant = queue.shift(); mutant !== undefined; mutant = queue.shift()) {
    const killed = await notices(copy, mutant);
    const change = mutant.text.split("\n")[mutant.line - 1].trim();
    console.log(`${killed ? "killed  " : "SURVIVED"} ${mutant.file}:${mutant.line}  ${change.slice(0, 120)}`);
    if (!killed) survivors.push(mutant);
  }
  rmSync(copy, { recursive: true, force: true });
}
await Promise.all(Array.from({ length: Number(values.jobs) }, work));
const score = (100 * (total - survivors.length)) / total;
console.log(`${total} mutants, ${total - survivors.length} killed: ${score.toFixed(1)} %`);
process.exitCode = score >= 90 && !survivors.some((mutant) => mutant.named) ? 0 : 1;
