import { expect, test } from "vitest";
import { createMetrics } from "../../src/result/metrics.ts";
import type { Ended } from "../../src/spec/call.ts";

const ended = (extra: Partial<Ended> = {}): Ended => ({
  id: "1",
  name: "read",
  tool: "read",
  kind: "function",
  arguments: '{"a":"é"}',
  askedAt: 0,
  ok: true,
  content: [{ type: "text", text: "héllo" }],
  endedAt: 10,
  durationMs: 10,
  ...extra,
});

test("calls, endings by code, durations and bytes are counted per tool", () => {
  const metrics = createMetrics();
  for (let count = 0; count < 98; count++) metrics.count(ended());
  metrics.count(ended({ ok: false, code: "timeout", durationMs: 5000 }));
  metrics.count(ended({ ok: false, code: "timeout", durationMs: 5000 }));
  metrics.count(ended({ tool: "write", durationMs: 1 }));
  const { read, write } = metrics.snapshot();
  expect(read).toMatchObject({ calls: 100, successes: 98, errors: { timeout: 2 }, bytesIn: 1000, bytesOut: 600 });
  expect(read!.durationMs).toMatchObject({ count: 100, sum: 10_980, mean: 109.8 });
  expect(read!.durationMs.p50).toBeGreaterThanOrEqual(10);
  expect(read!.durationMs.p50).toBeLessThan(16);
  expect(read!.durationMs.p99).toBeGreaterThanOrEqual(5000);
  expect(write!.calls).toBe(1);
});

test("names that nobody registered are counted together", () => {
  const metrics = createMetrics();
  for (let count = 0; count < 50; count++) {
    const { tool: _, ...unknown } = ended({ name: `invented_${count}`, ok: false, code: "unknown_tool" });
    metrics.count(unknown);
  }
  expect(Object.keys(metrics.snapshot())).toEqual(["(unknown)"]);
});

test("the Prometheus text is well formed, whatever the name", () => {
  const metrics = createMetrics();
  metrics.count(ended({ tool: 'srv/"odd"\n\\' }));
  const lines = metrics.prometheus().trimEnd().split("\n");
  for (const line of lines)
    expect(line).toMatch(/^(# (HELP|TYPE) \w+ .+|\w+\{tool="(?:[^"\\\n]|\\.)*"(?:,\w+="[^"]*")*\} [0-9.e+-]+)$/);
  expect(lines).toContain('callgate_calls_total{tool="srv/\\"odd\\"\\n\\\\",code="ok"} 1');
  expect(lines.some((line) => line.includes('le="+Inf"} 1'))).toBe(true);
});
