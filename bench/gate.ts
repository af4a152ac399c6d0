/** Decisions about shell lines: 1,000 lines of our own lists under 500 rules, and how the time grows with rules and length. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parse } from "unbash";
import { createPolicy } from "../src/gate/options.ts";
import { decideCommand, type Policy } from "../src/gate/policy.ts";
import type { Rule } from "../src/gate/rules.ts";
import { median, percentile, type BenchRow } from "./measure.ts";

const rounds = 7;

export async function run(): Promise<readonly BenchRow[]> {
  const workspace = mkdtempSync(join(tmpdir(), "callgate-bench-gate-"));
  try {
    return measure(workspace);
  } finally {
    rmSync(workspace, { recursive: true, force: true });
  }
}

function measure(workspace: string): readonly BenchRow[] {
  const lines = loadLines(1_000);
  const withRules = (count: number) =>
    createPolicy({
      settings: { approval: "on-request", sandbox: "workspace-write" },
      workspace,
      confinement: { name: "bench", available: true },
      rules: makeRules(count),
    });
  const parsing = perLine(lines, (line) => void parse(line));
  const rows: BenchRow[] = [{ name: "parse alone (unbash)", value: parsing, unit: "µs/line" }];
  for (const count of [0, 500, 5_000]) {
    const policy = withRules(count);
    const value = perLine(lines, (line) => void decideCommand({ shell: line, cwd: workspace }, policy));
    rows.push({
      name: `decide, ${count} rules`,
      value,
      unit: "µs/line",
      ratio: value / parsing,
      baseline: "parse alone",
    });
    if (count === 500) {
      const each = eachLine(lines, (line) => void decideCommand({ shell: line, cwd: workspace }, policy));
      rows.push({ name: "decide one line, 500 rules, p50", value: percentile(each, 0.5), unit: "µs", aim: "≤ 30" });
      rows.push({ name: "decide one line, 500 rules, p99", value: percentile(each, 0.99), unit: "µs", aim: "≤ 300" });
    }
    if (count === 500) rows.push({ name: "decisions a second, 500 rules", value: 1_000_000 / value, unit: "/s" });
  }
  return [...rows, ...byLength(withRules(500), workspace)];
}

/** One line, longer and longer: words, commands, and what is cut off as too long. */
function byLength(policy: Policy, workspace: string): readonly BenchRow[] {
  return [1_000, 10_000, 100_000, 1_000_000].flatMap((length) => {
    const shapes = {
      "one word": `echo ${"a".repeat(length)}`,
      commands: "true; ".repeat(length / 6),
      text: `cat > x <<'E'\n${"some text; more (text)\n".repeat(length / 23)}E\n`,
    };
    return Object.entries(shapes).map(([shape, line]) => ({
      name: `decide ${length} characters, ${shape}`,
      value: perLine([line], () => void decideCommand({ shell: line, cwd: workspace }, policy)) / 1_000,
      unit: "ms",
      aim: "< 50",
    }));
  });
}

/** The time of each line by itself: the median of its rounds. */
function eachLine(lines: readonly string[], decide: (line: string) => void): readonly number[] {
  const times = lines.map((): number[] => []);
  for (let round = 0; round < rounds; round++)
    for (const [index, line] of lines.entries()) {
      const start = performance.now();
      decide(line);
      times[index]!.push((performance.now() - start) * 1_000);
    }
  return times.map(median);
}

function perLine(lines: readonly string[], decide: (line: string) => void): number {
  const times = Array.from({ length: rounds }, () => {
    const start = performance.now();
    for (const line of lines) decide(line);
    return ((performance.now() - start) * 1_000) / lines.length;
  });
  return median(times);
}

function loadLines(count: number): readonly string[] {
  const all = ["harmless", "hostile"].flatMap((name) =>
    readFileSync(join(process.cwd(), `test/gate/lines/${name}.txt`), "utf8")
      .split("\n")
      .filter(Boolean),
  );
  return Array.from({ length: count }, (_, index) => all[index % all.length]!);
}

function makeRules(count: number): readonly Rule[] {
  const decisions = ["allow", "ask", "deny"] as const;
  return Array.from({ length: count }, (_, index) => ({
    command: [`program${index % 97}`, `sub${index}`],
    decision: decisions[index % 3]!,
  }));
}
