// `npm run mutants`: breaks one line at a time in gate, router, result and runtime, and runs the tests that reach that
// line. A mutant that no test notices is printed. `--count 120` of the generated ones, `--seed 1` which; the named ones
// always run. `--reuse` takes the map of lines to tests of the last run; `--minutes 12` begins no mutant after that.
import { fork, spawn } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { parseSync } from "rolldown/utils";

const root = resolve(import.meta.dirname, "..");
const { values } = parseArgs({
  options: {
    count: { type: "string", default: "120" },
    seed: { type: "string", default: "1" },
    jobs: { type: "string", default: "1" },
    file: { type: "string" },
    minutes: { type: "string", default: "600" },
    reuse: { type: "boolean", default: false },
  },
});

/** Every file that lies in these folders; what lies deeper has its own oracles and attacks, which take too long here. */
const folders = ["gate", "router", "result", "runtime"];
const targets = folders.flatMap((folder) =>
  readdirSync(join(root, "src", folder))
    .filter((name) => name.endsWith(".ts") && name !== "index.ts")
    .map((name) => `src/${folder}/${name}`),
);

/** Where tests of these files lie. What takes minutes, or needs the whole machine, is left out. */
const furtherTests = [
  "test/tools/shell.test.ts",
  "test/tools/exec-command.test.ts",
  "test/cli/approve.test.ts",
  "test/session/chat-service.test.ts",
  "test/options-law.test.ts",
  "test/runtime/files/files.test.ts",
  "test/session/telemetry.test.ts",
];
const slowTests = /attacks|code|dialects|languages|oracle|speed|lines/;

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
  const lines = readFileSync(join(tree, file), "utf8").split("\n");
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
      const text = lines.with(index, changed).join("\n");
      return changed === code || !isCode(text) ? [] : [{ file, line: index + 1, before: line, text }];
    });
  });
}

/** What does not even parse is no mutant: every test would notice it. */
function isCode(text) {
  try {
    return parseSync("a.ts", text).errors.length === 0;
  } catch {
    return false;
  }
}

function namedMutants() {
  return named.map(([file, from, to]) => {
    const text = readFileSync(join(tree, file), "utf8");
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

/** The tree as it is now: what is written while the mutants run is not theirs. */
function copyTree(from) {
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
    cpSync(join(from, name), join(copy, name), { recursive: true, force: true });
  symlinkSync(join(root, "node_modules"), join(copy, "node_modules"));
  return copy;
}

/** Every test file that may notice a mutant. */
function testFiles() {
  const found = folders.flatMap((folder) =>
    readdirSync(join(root, "test", folder))
      .filter((name) => name.endsWith(".test.ts") && !slowTests.test(name))
      .map((name) => `test/${folder}/${name}`),
  );
  return [...found, ...furtherTests];
}

/** Runs one test file on the code as it is; says how long it took and which lines of the targets it reaches. */
function measure(copy, test) {
  const report = mkdtempSync(join(tmpdir(), "callgate-mutants-map-"));
  // What is left out costs nothing; a list of what to count would have every file of it read for every test.
  const exclude = ["test/**", "scripts/**", `src/!(${folders.join("|")})/**`].map(
    (glob) => `--coverage.exclude=${glob}`,
  );
  const args = [
    join(root, "node_modules/vitest/vitest.mjs"),
    "run",
    test,
    "--maxWorkers=1",
    "--coverage",
    "--coverage.reporter=json",
  ];
  args.push(`--coverage.reportsDirectory=${report}`, "--coverage.reportOnFailure", ...exclude);
  const from = Date.now();
  return new Promise((done) => {
    const child = spawn(process.execPath, args, { cwd: copy, stdio: "ignore", env });
    child.on("close", (code) => {
      if (code !== 0) return done(undefined);
      const whole = JSON.parse(readFileSync(join(report, "coverage-final.json"), "utf8"));
      rmSync(report, { recursive: true, force: true });
      const lines = Object.entries(whole).map(([path, { statementMap, s: hits }]) => {
        const reached = Object.entries(statementMap).filter(([id]) => hits[id] > 0);
        return [path.slice(copy.length + 1), reached.map(([, { start, end }]) => [start.line, end.line])];
      });
      done({ test, ms: Date.now() - from, reached: Object.fromEntries(lines) });
    });
  });
}

/**
 * For every test file its time and the lines it reaches, kept as they come. A test that fails anyway would kill every
 * mutant: it is left out.
 */
async function mapTests() {
  const kept = join(root, "node_modules", ".cache-mutants.json");
  const map = values.reuse && existsSync(kept) ? JSON.parse(readFileSync(kept, "utf8")) : [];
  for (const test of testFiles()) {
    if (map.some((row) => row.test === test)) continue;
    const row = await measure(tree, test);
    if (row === undefined) {
      console.log(`NOT TRUSTED ${test}: it fails without any mutant`);
      continue;
    }
    map.push(row);
    writeFileSync(kept, JSON.stringify(map));
    console.log(`${(row.ms / 1000).toFixed(1).padStart(6)} s  ${test}`);
  }
  return map;
}

/** A mutant that none of these notice is a survivor, whatever some distant test would have said. */
const nearestTests = 8;
/** Parameters and brackets are no statements, and a map of another day is a few lines off. */
const slack = values.reuse ? 20 : 4;

/** The tests that reach a line, those of its folder first, the quickest before the others. */
function testsOf(map, { file, line }) {
  const folder = file.replace(/^src/, "test").replace(/[^/]+$/, "");
  const distance = ({ test, ms }) => (test.startsWith(folder) ? 0 : 1_000_000) + ms;
  return map
    .filter(({ reached }) => (reached[file] ?? []).some(([from, to]) => from - slack <= line && line <= to + slack))
    .toSorted((a, b) => distance(a) - distance(b))
    .slice(0, nearestTests)
    .map(({ test }) => test);
}

/** A vitest that stays open in a process of its own, so that a mutant that never ends can be killed with it. */
function openRunner(copy) {
  const runner = join(root, "scripts", "mutants-runner.mjs");
  const child = fork(runner, [], { cwd: copy, stdio: "ignore", detached: true, env });
  return {
    notices: (mutant, tests) =>
      new Promise((done) => {
        const end = (answer) => {
          clearTimeout(limit);
          child.removeAllListeners();
          done(answer);
        };
        const limit = setTimeout(() => end({ killedBy: "it does not end", dead: true }), 300_000);
        child.once("message", end);
        child.once("exit", () => end({ killedBy: "the process ended", dead: true }));
        child.send({ file: mutant.file, text: mutant.text, tests });
      }),
    close: () => child.pid !== undefined && process.kill(-child.pid, "SIGKILL"),
  };
}

const tree = copyTree(root);
/** Nobody's login files: they may take longer than the tests. */
const env = { ...process.env, HOME: mkdtempSync(join(tmpdir(), "callgate-mutants-home-")) };
const files = targets.filter((file) => values.file === undefined || file.includes(values.file));
const generated = shuffle(files.flatMap(mutantsOf), Number(values.seed)).slice(0, Number(values.count));
const chosen = [...namedMutants().filter(({ file }) => files.includes(file)), ...generated];
// Now and then the code as it is takes a mutant's place: a test that fails on that would have killed anything.
const queue = chosen.flatMap((mutant, index) => (index % 12 === 0 ? [mutant, { ...mutant, control: true }] : [mutant]));
const lastStart = Date.now() + Number(values.minutes) * 60_000;
let map = await mapTests();
const survivors = [];
const killed = [];

/** A test that fails on the code as it is (a busy machine is enough) decides nothing: what it killed is tried again. */
function distrust(killedBy) {
  const test = killedBy.slice(0, killedBy.indexOf(": "));
  console.log(`NOT TRUSTED ${killedBy}`);
  map = map.filter((row) => row.test !== test);
  const again = killed.filter(([by]) => by.startsWith(test));
  queue.push(...again.map(([, mutant]) => mutant));
  for (const row of again) killed.splice(killed.indexOf(row), 1);
}

async function work() {
  const copy = copyTree(tree);
  let runner = openRunner(copy);
  for (let mutant = queue.shift(); mutant !== undefined && Date.now() < lastStart; mutant = queue.shift()) {
    const path = join(copy, mutant.file);
    const whole = readFileSync(path, "utf8");
    const given = mutant.control ? { ...mutant, text: whole } : mutant;
    const { killedBy, dead = false } = await runner.notices(given, testsOf(map, mutant));
    writeFileSync(path, whole);
    if (dead) {
      runner.close();
      runner = openRunner(copy);
    }
    if (mutant.control) {
      if (killedBy !== undefined) distrust(killedBy);
      continue;
    }
    const change = mutant.text.split("\n")[mutant.line - 1].trim();
    console.log(`${killedBy ? "killed  " : "SURVIVED"} ${mutant.file}:${mutant.line}  ${change.slice(0, 120)}`);
    if (killedBy) {
      console.log(`           ${killedBy.slice(0, 140)}`);
      killed.push([killedBy, mutant]);
    } else survivors.push(mutant);
  }
  runner.close();
  rmSync(copy, { recursive: true, force: true });
}

await Promise.all(Array.from({ length: Number(values.jobs) }, work));
for (const folder of [tree, env.HOME]) rmSync(folder, { recursive: true, force: true });
const tried = [...killed.map(([, mutant]) => mutant), ...survivors];
for (const folder of folders) {
  const of = (list) => list.filter(({ file }) => file.startsWith(`src/${folder}/`)).length;
  console.log(`${folder}: ${of(tried) - of(survivors)} of ${of(tried)}`);
}
const score = (100 * killed.length) / tried.length;
console.log(`${tried.length} mutants, ${killed.length} killed: ${score.toFixed(1)} %`);
process.exitCode = score >= 90 && !survivors.some((mutant) => mutant.named) ? 0 : 1;
