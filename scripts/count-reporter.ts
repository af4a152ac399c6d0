import type { Reporter, TestModule } from "vitest/node";
import { howToGet } from "../test/needs.ts";

/**
 * Ends a run with the one plain line that any CI can read: `N passed, N failed, N skipped`. Above it stands what was
 * skipped and how to get what was missing. With `CALLGATE_TEST_ALL=1`, as in CI, a skipped test fails the run, but for
 * the maintainers' own cases: nobody can install these.
 */
export default class CountReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const counts = { passed: 0, failed: 0, skipped: 0, pending: 0 };
    const missing = new Map<string, number>();
    const again: string[] = [];
    for (const module of modules) {
      for (const test of module.children.allTests()) {
        const { state } = test.result();
        counts[state]++;
        if (test.diagnostic()?.flaky === true) again.push(`${module.relativeModuleId}: ${test.name}`);
        if (state !== "skipped") continue;
        const need = /\bneeds ([^()]+)\)/.exec(test.fullName)?.[1] ?? "something its title does not name";
        missing.set(need, (missing.get(need) ?? 0) + 1);
      }
      if (module.state() === "failed" && [...module.children.allTests()].length === 0) counts.failed++;
    }
    if (again.length > 0) console.log(`\npassed at the second try only:\n  ${again.join("\n  ")}`);
    const skipped = counts.skipped + counts.pending;
    if (missing.size > 0)
      console.log(`\nskipped: ${[...missing].map(([need, count]) => tell(need, count)).join("; ")}`);
    if (skipped > (missing.get("the shared cases") ?? 0) && process.env["CALLGATE_TEST_ALL"] === "1") {
      console.log("CALLGATE_TEST_ALL=1: nothing may be skipped here.");
      process.exitCode = 1;
    }
    console.log(`\n${counts.passed} passed, ${counts.failed} failed, ${skipped} skipped`);
  }
}

function tell(need: string, count: number): string {
  const ways: Readonly<Record<string, string>> = howToGet;
  const first = need.split(/, | and /)[0] ?? need;
  const way = Object.hasOwn(ways, first) ? ` (${ways[first]})` : "";
  return `${count} ${count === 1 ? "needs" : "need"} ${need}${way}`;
}
