/**
 * Counts per tool: calls, endings by code, durations and bytes. They are kept in memory and given out
 * as an object or as Prometheus text.
 */
import type { Part } from "../base/content.ts";
import type { Ended } from "../spec/call.ts";

/** Counts per tool since the engine was made. */
export interface Metrics {
  count(ended: Ended): void;
  snapshot(): Readonly<Record<string, ToolMetrics>>;
  prometheus(): string;
}

/** Counts of one tool. */
export interface ToolMetrics {
  readonly calls: number;
  readonly successes: number;
  /** Calls that were answered from the cache. */
  readonly cacheHits: number;
  readonly errors: Readonly<Record<string, number>>;
  readonly durationMs: {
    readonly count: number;
    readonly sum: number;
    readonly mean: number;
    readonly p50: number;
    readonly p90: number;
    readonly p99: number;
  };
  readonly bytesIn: number;
  readonly bytesOut: number;
}

/**
 * Upper bounds in milliseconds, each about 1.5 times the one before. A quantile is exact to within
 * that factor, and at most the last bound.
 */
const bounds = Array.from({ length: 40 }, (_, index) => 0.05 * 1.5 ** index);

interface Counter {
  calls: number;
  successes: number;
  cacheHits: number;
  readonly errors: Map<string, number>;
  sum: number;
  readonly buckets: number[];
  bytesIn: number;
  bytesOut: number;
}

export function createMetrics(): Metrics {
  const counters = new Map<string, Counter>();

  const counterOf = (tool: string): Counter => {
    let counter = counters.get(tool);
    if (counter === undefined) {
      counter = {
        calls: 0,
        successes: 0,
        cacheHits: 0,
        errors: new Map(),
        sum: 0,
        buckets: Array.from({ length: bounds.length + 1 }, () => 0),
        bytesIn: 0,
        bytesOut: 0,
      };
      counters.set(tool, counter);
    }
    return counter;
  };
  const sorted = () => [...counters].toSorted(([a], [b]) => (a < b ? -1 : 1));

  return {
    count(ended) {
      // A name that nobody registered is the model's invention. These are counted together, so that they cannot fill
      // the memory.
      const counter = counterOf(ended.tool ?? "(unknown)");
      counter.calls++;
      if (ended.cached) counter.cacheHits++;
      if (ended.ok) counter.successes++;
      else counter.errors.set(ended.code ?? "failed", (counter.errors.get(ended.code ?? "failed") ?? 0) + 1);
      counter.sum += ended.durationMs;
      counter.buckets[bucketOf(ended.durationMs)]!++;
      const { bytesIn, bytesOut } = sizeOf(ended);
      counter.bytesIn += bytesIn;
      counter.bytesOut += bytesOut;
    },
    snapshot: () => Object.fromEntries(sorted().map(([tool, counter]) => [tool, toMetrics(counter)])),
    prometheus: () => writePrometheus(sorted()),
  };
}

/** Bytes of the arguments as they came, and of the result; pictures and files by their encoded size. */
export function sizeOf(ended: Ended): { readonly bytesIn: number; readonly bytesOut: number } {
  return {
    bytesIn: Buffer.byteLength(ended.arguments),
    bytesOut: ended.content.reduce((sum, part) => sum + partBytes(part), 0),
  };
}

function partBytes(part: Part): number {
  const text = "text" in part ? part.text : undefined;
  const data = "data" in part ? part.data : undefined;
  return Buffer.byteLength(text ?? "") + (data?.length ?? 0);
}

function bucketOf(ms: number): number {
  const index = bounds.findIndex((bound) => ms <= bound);
  return index === -1 ? bounds.length : index;
}

function toMetrics({ calls, successes, cacheHits, errors, sum, buckets, bytesIn, bytesOut }: Counter): ToolMetrics {
  const at = (share: number) => quantile(buckets, calls * share);
  return {
    calls,
    successes,
    cacheHits,
    errors: Object.fromEntries(errors),
    durationMs: { count: calls, sum, mean: calls === 0 ? 0 : sum / calls, p50: at(0.5), p90: at(0.9), p99: at(0.99) },
    bytesIn,
    bytesOut,
  };
}

function quantile(buckets: readonly number[], rank: number): number {
  let seen = 0;
  for (const [index, count] of buckets.entries()) {
    seen += count;
    if (seen >= rank && seen > 0) return bounds[index] ?? bounds.at(-1)!;
  }
  return 0;
}

function writePrometheus(counters: readonly (readonly [string, Counter])[]): string {
  const lines = [
    "# HELP callgate_calls_total Tool calls by how they ended.",
    "# TYPE callgate_calls_total counter",
    ...counters.flatMap(([tool, { successes, errors }]) => [
      `callgate_calls_total{tool=${label(tool)},code="ok"} ${successes}`,
      ...[...errors].map(([code, count]) => `callgate_calls_total{tool=${label(tool)},code=${label(code)}} ${count}`),
    ]),
    "# HELP callgate_cache_hits_total Calls answered from the cache.",
    "# TYPE callgate_cache_hits_total counter",
    ...counters.map(([tool, { cacheHits }]) => `callgate_cache_hits_total{tool=${label(tool)}} ${cacheHits}`),
    "# HELP callgate_call_duration_seconds How long calls took, from asked to ended.",
    "# TYPE callgate_call_duration_seconds histogram",
    ...counters.flatMap(([tool, counter]) => writeHistogram(tool, counter)),
    "# HELP callgate_call_bytes_total Bytes of arguments in and content out.",
    "# TYPE callgate_call_bytes_total counter",
    ...counters.flatMap(([tool, { bytesIn, bytesOut }]) => [
      `callgate_call_bytes_total{tool=${label(tool)},direction="in"} ${bytesIn}`,
      `callgate_call_bytes_total{tool=${label(tool)},direction="out"} ${bytesOut}`,
    ]),
  ];
  return `${lines.join("\n")}\n`;
}

function writeHistogram(tool: string, { buckets, calls, sum }: Counter): readonly string[] {
  let seen = 0;
  const rows = bounds.map((bound, index) => {
    seen += buckets[index]!;
    return `callgate_call_duration_seconds_bucket{tool=${label(tool)},le="${(bound / 1000).toPrecision(3)}"} ${seen}`;
  });
  return [
    ...rows,
    `callgate_call_duration_seconds_bucket{tool=${label(tool)},le="+Inf"} ${calls}`,
    `callgate_call_duration_seconds_sum{tool=${label(tool)}} ${sum / 1000}`,
    `callgate_call_duration_seconds_count{tool=${label(tool)}} ${calls}`,
  ];
}

function label(value: string): string {
  return `"${value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n")}"`;
}
