// `npm run mutants`: breaks one line at a time in the folders that make promises, and runs the tests that reach that
// line. A mutant that no test notices is printed. `--count 120` of the generated ones, `--seed 1` which; the named ones
// always run.
//
// A run can be cut into pieces: `--minutes 5` begins no mutant after that, and the same command goes on where the last
// one stopped as long as sources and tests are the same. `--survivors` tries those of the last run of this seed again,
// with the tests of now. `--file gate/grant` takes only the mutants of files whose path holds that. `--folder store` takes
// only the mutants of this folder (several: `store,session`), and judges them by its own tests alone. `--list` prints the sample.
import { fork } from "node:child_process";
import { createHash } from "node:crypto";
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
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
    jobs: { type: "string", default: "2" },
    file: { type: "string" },
    folder: { type: "string" },
    minutes: { type: "string", default: "600" },
    survivors: { type: "boolean", default: false },
    list: { type: "boolean", default: false },
  },
});
const folders = values.folder?.split(",") ?? ["gate", "router", "result", "runtime", "session", "store"];
const cache = join(root, "node_modules", ".cache-mutants");

/** Folders whose tests may notice a mutant, beside those of its own. */
const furtherTests = values.folder === undefined ? ["tools"] : [];

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

/** Every file below a folder whose name ends so, as a path from the root. */
function filesBelow(folder, ending) {
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(ending))
    .map(({ parentPath, name }) => join(parentPath, name).slice(root.length + 1))
    .toSorted();
}

const contentOf = (file) => readFileSync(join(root, file), "utf8");
const hash = (text) => createHash("sha256").update(text).digest("hex").slice(0, 16);

/** Every one-line change of a file that is code: no comment, no type, no import. */
function mutantsOf(file) {
  const lines = contentOf(file).split("\n");
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
      if (changed === code) return [];
      const text = lines.with(index, changed).join("\n");
      return [{ file, line: index + 1, before: line.trim(), after: changed.trim(), text }];
    });
  });
}

/** What does not even parse is no mutant: every test would notice it. */
function isCode({ text }) {
  try {
    return parseSync("a.ts", text).errors.length === 0;
  } catch {
    return false;
  }
}

function namedMutants() {
  return named.map(([file, from, to]) => {
    const text = contentOf(file);
    if (!text.includes(from)) throw new Error(`${file} no longer holds '${from}': mend the list of named mutants`);
    const line = text.slice(0, text.indexOf(from)).split("\n").length;
    return { file, line, before: from, after: to, text: text.replace(from, () => to), named: true };
  });
}

/** Mutants that change nothing anybody could see, each with its reason. They are left out, and say so here. */
const equivalent = JSON.parse(contentOf("scripts/mutants-equivalent.json"));
function reasonOf({ file, before, after }) {
  return equivalent.find((row) => row.file === file && row.before === before && row.after === after)?.reason;
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

function take(list, count) {
  const taken = [];
  for (const mutant of list) {
    if (taken.length === count) break;
    if (reasonOf(mutant) === undefined && isCode(mutant)) taken.push(mutant);
  }
  return taken;
}

const keyOf = ({ file, before, after }) => JSON.stringify([file, before, after]);

/**
 * A copy of the tree: what is written meanwhile is not the mutants', and they are nobody else's. It lies beside the
 * tree, because sandboxes treat the temp folder in their own way.
 */
function copyTree() {
  const copy = mkdtempSync(join(root, "..", ".callgate-mutants-"));
  chmodSync(copy, 0o755); // some tests go on as another user
  const names = ["src", "test", "package.json", "tsconfig.json", "vitest.config.ts", "dist", "native", "examples"];
  for (const name of [...names, "docs", "api", "scripts", "web"])
    cpSync(join(root, name), join(copy, name), { recursive: true, force: true });
  symlinkSync(join(root, "node_modules"), join(copy, "node_modules"));
  return copy;
}

/** Nobody's login files: they may take longer than the tests. */
const home = join(cache, "home");

/** A runner in a group of processes of its own, so that it can be ended with all it started. */
function openRunner(copy, report = []) {
  const child = fork(join(copy, "scripts", "mutants-runner.mjs"), [folders.join("|"), ...report], {
    cwd: copy,
    stdio: "ignore",
    detached: true,
    env: { ...process.env, HOME: home },
  });
  return {
    ask: (message, limitMs) =>
      new Promise((done) => {
        const end = (answer) => {
          clearTimeout(limit);
          child.removeAllListeners();
          done(answer);
        };
        const limit = setTimeout(() => end({ dead: "it does not end" }), limitMs);
        child.once("message", end);
        child.once("exit", () => end({ dead: "the process ended" }));
        child.send(message);
      }),
    close: () => {
      try {
        if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
      } catch {
        // It has ended by itself.
      }
    },
  };
}

/**
 * For every test file its time and the lines it reaches, kept from run to run: what was measured is measured again only
 * when the test file has changed. Where a source has changed since, every line of it counts as reached.
 */
async function mapTests(copy) {
  const kept = join(cache, `map-${folders.join("_")}.json`);
  const map = new Map(existsSync(kept) ? JSON.parse(readFileSync(kept, "utf8")) : []);
  const tests = [...folders, ...furtherTests].flatMap((folder) => filesBelow(`test/${folder}`, ".test.ts"));
  for (const test of map.keys()) if (!tests.includes(test)) map.delete(test);
  const stale = tests.filter((test) => map.get(test)?.hash !== hash(contentOf(test)));
  if (stale.length === 0) return map;
  const report = mkdtempSync(join(tmpdir(), "callgate-mutants-map-"));
  let runner = openRunner(copy, [report]);
  for (const test of stale) {
    if (Date.now() > lastStart) break;
    const { ms, reached = {}, dead, fault } = await runner.ask({ request: "measure", test }, 120_000);
    if (dead) {
      runner.close();
      runner = openRunner(copy, [report]);
    }
    if (ms === undefined) {
      console.log(`NOT TRUSTED ${test}: it fails without any mutant ${dead ?? fault ?? ""}`);
      map.delete(test);
      continue;
    }
    const sources = Object.fromEntries(Object.keys(reached).map((file) => [file, hash(contentOf(file))]));
    map.set(test, { hash: hash(contentOf(test)), ms, reached, sources });
    writeFileSync(kept, JSON.stringify([...map]));
  }
  runner.close();
  rmSync(report, { recursive: true, force: true });
  return map;
}

/** No mutant is given more than this of tests: what only a distant test would notice after that is a survivor. */
const enoughMs = 60_000;

/** The tests that reach a line: the nearest and quickest first. */
function testsOf(map, { file, line }) {
  const [, folder] = file.split("/");
  const name = file.split("/").at(-1).replace(".ts", "");
  const distance = ([test, { ms }]) =>
    ms + (test.startsWith(`test/${folder}/`) ? 0 : 5_000) - (test.endsWith(`/${name}.test.ts`) ? 5_000 : 0);
  let spent = 0;
  return [...map]
    .filter(([, { reached, sources }]) => {
      if (reached[file] === undefined) return false;
      return sources[file] !== hash(contentOf(file)) || reached[file].includes(line) || line > reached[file].at(-1);
    })
    .toSorted((a, b) => distance(a) - distance(b))
    .filter(([, { ms }]) => (spent += ms) <= enoughMs)
    .map(([test, { ms }]) => ({ test, ms }));
}

const all = folders
  .flatMap((folder) => filesBelow(`src/${folder}`, ".ts"))
  .filter((file) => !file.endsWith("/index.ts"));
const files = all.filter((file) => values.file === undefined || file.includes(values.file));
const possible = files.flatMap(mutantsOf);
const sample = [
  ...namedMutants().filter(({ file }) => files.includes(file)),
  ...take(shuffle(possible, Number(values.seed)), Number(values.count)),
];
if (values.list) {
  for (const { file, line, before, after } of sample) console.log(`${file}:${line}\n  - ${before}\n  + ${after}`);
  console.log(`${possible.length} are possible`);
  process.exit();
}

const testsAndSources = ["src", "test"].flatMap((folder) => filesBelow(folder, ".ts"));
const tree = hash(testsAndSources.map((file) => file + contentOf(file)).join("\0"));
mkdirSync(home, { recursive: true });
const keptRun = join(
  cache,
  `seed-${values.seed}-${values.count}-${folders.join("_")}${(values.file ?? "").replaceAll("/", "_")}.json`,
);
const before = existsSync(keptRun) ? JSON.parse(readFileSync(keptRun, "utf8")) : { tree, results: [] };
const results = new Map(before.tree === tree || values.survivors ? before.results : []);
const survivedBefore = (mutant) => results.has(keyOf(mutant)) && results.get(keyOf(mutant)) === null;
const queue = sample.filter((mutant) => (values.survivors ? survivedBefore(mutant) : !results.has(keyOf(mutant))));

const lastStart = Date.now() + Number(values.minutes) * 60_000;
const copies = Array.from({ length: Math.min(Number(values.jobs), Math.max(1, queue.length)) }, copyTree);
const map = await mapTests(copies[0]);

async function work(copy) {
  let runner = openRunner(copy);
  for (let mutant = queue.shift(); mutant !== undefined; mutant = queue.shift()) {
    if (Date.now() > lastStart) break;
    const killedBy = await judge(mutant);
    results.set(keyOf(mutant), killedBy ?? null);
    if (!values.survivors) writeFileSync(keptRun, JSON.stringify({ tree, results: [...results] }));
    console.log(`${killedBy ? "killed  " : "SURVIVED"} ${mutant.file}:${mutant.line}  ${mutant.after.slice(0, 120)}`);
    console.log(`         ${killedBy ? `  ${killedBy.slice(0, 140)}` : `- ${mutant.before.slice(0, 140)}`}`);
  }
  runner.close();

  /** What hangs or ends the process is tried twice before it counts. */
  async function judge(mutant) {
    const chosen = testsOf(map, mutant);
    const tests = chosen.map(({ test }) => test);
    const limitMs = 60_000 + 5 * chosen.reduce((sum, { ms }) => sum + ms, 0);
    for (let tries = 1; ; tries++) {
      const {
        killedBy,
        dead,
        fault,
        flaky = [],
      } = await runner.ask(
        { request: "judge", file: mutant.file, text: mutant.text, tests: tests.filter((test) => map.has(test)) },
        limitMs,
      );
      for (const test of flaky) {
        console.log(`NOT TRUSTED ${test}: it failed on the code as it is`);
        map.delete(test);
      }
      if (fault !== undefined) throw new Error(fault);
      if (dead === undefined) return killedBy;
      runner.close();
      writeFileSync(join(copy, mutant.file), contentOf(mutant.file));
      runner = openRunner(copy);
      if (tries === 2) return dead;
    }
  }
}

await Promise.all(copies.map(work));
for (const folder of copies) rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
const tried = sample.filter((mutant) => results.has(keyOf(mutant)));
const survivors = tried.filter((mutant) => results.get(keyOf(mutant)) === null);
for (const folder of folders) {
  const of = (list) => list.filter(({ file }) => file.startsWith(`src/${folder}/`)).length;
  console.log(`${folder}: ${of(tried) - of(survivors)} of ${of(tried)}`);
}
const score = (100 * (tried.length - survivors.length)) / tried.length;
console.log(
  `${tried.length} of ${sample.length} mutants tried, ${tried.length - survivors.length} killed: ${score.toFixed(1)} %`,
);
process.exitCode = score >= 90 && !survivors.some((mutant) => mutant.named) ? 0 : 1;
