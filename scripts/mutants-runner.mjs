// One vitest that stays open for `scripts/mutants.mjs`, in a process of its own: what a mutant hangs dies with it. It
// measures which lines a test file reaches, and says which test notices a mutant. All tests of a mutant share one
// worker and run in the order given; the first failure ends the run.
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { BaseSequencer, createVitest } from "vitest/node";

const root = process.cwd();
const [folders, report] = process.argv.slice(2);

let order = [];
class GivenOrder extends BaseSequencer {
  async sort(specifications) {
    return specifications.toSorted((a, b) => order.indexOf(a.moduleId) - order.indexOf(b.moduleId));
  }
}

const vitest = await createVitest("test", {
  root,
  watch: false,
  maxWorkers: 1,
  isolate: false,
  testTimeout: 20_000,
  bail: 1,
  reporters: [{}],
  sequence: { sequencer: GivenOrder },
  ...(report !== undefined && {
    coverage: {
      enabled: true,
      provider: "v8",
      reporter: ["json"],
      reportsDirectory: report,
      reportOnFailure: true,
      // What is left out costs nothing; a list of what to count would have every file of it read for every test.
      exclude: ["test/**", "scripts/**", `src/!(${folders})/**`],
    },
  }),
});
await vitest.standalone();

/** The first test that fails, as its file and its name. */
async function firstFailure(tests) {
  order = tests.map((test) => join(root, test));
  // What ended an earlier mutant is no word about this one.
  vitest.state.errorsSet.clear();
  vitest.state.filesMap.clear();
  const { testModules, unhandledErrors } = await vitest.runTestSpecifications(
    order.flatMap((path) => vitest.getModuleSpecifications(path)),
  );
  for (const [index, path] of order.entries()) {
    const module = testModules.find(({ moduleId }) => moduleId === path);
    if (module === undefined) continue; // what comes after the first failure does not run
    const failed = [...module.children.allTests("failed")][0];
    const said = module.errors()[0]?.message ?? failed?.fullName;
    if (said !== undefined) return { index, said: String(said) };
  }
  if (unhandledErrors.length === 0) return undefined;
  const path = unhandledErrors[0].VITEST_TEST_PATH;
  return { index: Math.max(0, order.indexOf(path)), said: String(unhandledErrors[0].message) };
}

function write(path, text) {
  writeFileSync(path, text);
  vitest.invalidateFile(path);
}

/**
 * Only a test that fails with the mutant, fails with it once more, alone, and passes on the code as it is has killed
 * it. `flaky` are the tests that fail on the code as it is.
 */
async function judge({ file, text, tests }) {
  const path = join(root, file);
  const whole = readFileSync(path, "utf8");
  const flaky = [];
  for (let rest = tests; rest.length > 0;) {
    write(path, text);
    const failure = await firstFailure(rest);
    const test = failure && rest[failure.index];
    const again = failure && (await firstFailure([test]));
    write(path, whole);
    if (failure === undefined) break;
    if ((await firstFailure([test])) !== undefined) flaky.push(test);
    else if (again !== undefined) return { killedBy: `${test}: ${failure.said}`, flaky };
    rest = rest.slice(failure.index + 1);
  }
  return { flaky };
}

/** How long a test file takes on the code as it is, and the lines it reaches; undefined if it fails. */
async function measure({ test }) {
  rmSync(join(report, "coverage-final.json"), { force: true });
  const from = Date.now();
  if ((await firstFailure([test])) !== undefined) return {};
  const covered = JSON.parse(readFileSync(join(report, "coverage-final.json"), "utf8"));
  const reached = Object.entries(covered).map(([path, file]) => [path.slice(root.length + 1), linesReached(file)]);
  const module = vitest.state.getTestModules().find(({ moduleId }) => moduleId === join(root, test));
  return { ms: Math.round(module?.diagnostic().duration ?? Date.now() - from), reached: Object.fromEntries(reached) };
}

/** A line is reached where the smallest statement that holds it is. Lines of no statement are reached with the file. */
function linesReached({ statementMap, s: hits }) {
  const statements = Object.entries(statementMap)
    .map(([id, { start, end }]) => ({ from: start.line, to: end.line, hit: hits[id] > 0 }))
    .toSorted((a, b) => b.to - b.from - (a.to - a.from) || Number(a.hit) - Number(b.hit));
  const last = Math.max(0, ...statements.map(({ to }) => to));
  const lines = Array.from({ length: last + 1 }, () => true);
  for (const { from, to, hit } of statements) lines.fill(hit, from, to + 1);
  return lines.flatMap((hit, line) => (hit ? [line] : []));
}

const requests = { measure, judge };
process.on("message", async ({ request, ...rest }) =>
  process.send(await requests[request](rest).catch((error) => ({ fault: String(error?.stack ?? error) }))),
);
