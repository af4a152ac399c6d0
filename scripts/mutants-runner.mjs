// One vitest that stays open for `scripts/mutants.mjs`: a mutant comes in, the test that noticed it goes out. The tests
// of a mutant run one file after the other, and the first failure decides.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createVitest } from "vitest/node";

const root = process.cwd();
const vitest = await createVitest("test", {
  root,
  watch: false,
  maxWorkers: 1,
  testTimeout: 20_000,
  bail: 1,
  reporters: [{}],
});
await vitest.standalone();

function write(path, text) {
  writeFileSync(path, text);
  vitest.invalidateFile(path);
}

/** The name of the first test that fails, or undefined. */
async function failing(test) {
  // What ended an earlier mutant is no word about this one.
  vitest.state.errorsSet.clear();
  vitest.state.filesMap.clear();
  const { testModules, unhandledErrors } = await vitest.runTestSpecifications(
    vitest.getModuleSpecifications(join(root, test)),
  );
  if (testModules.length === 0) return `${test} did not run`;
  for (const module of testModules.filter(({ moduleId }) => moduleId === join(root, test))) {
    if (module.errors().length > 0) return `${test}: ${String(module.errors()[0]?.message)}`;
    for (const one of module.children.allTests("failed")) return `${test}: ${one.fullName}`;
  }
  return unhandledErrors.length > 0 ? `${test}: ${String(unhandledErrors[0]?.message)}` : undefined;
}

async function notices({ file, text, tests }) {
  const path = join(root, file);
  const whole = readFileSync(path, "utf8");
  write(path, text);
  let failed;
  for (const test of tests) failed ??= await failing(test);
  write(path, whole);
  return failed;
}

process.on("message", async (mutant) => process.send({ killedBy: await notices(mutant).catch(String) }));
