/** One figure, and what it is compared with in the same run. */
export interface BenchRow {
  readonly name: string;
  readonly value: number;
  readonly unit: string;
  readonly baseline?: string;
  readonly ratio?: number;
  readonly aim?: string;
}

/** The median of several rounds, in microseconds per operation. */
export async function perOperation(
  count: number,
  rounds: number,
  body: () => Promise<unknown> | unknown,
): Promise<number> {
  const times: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const start = performance.now();
    for (let i = 0; i < count; i++) await body();
    times.push(((performance.now() - start) * 1000) / count);
  }
  return median(times);
}

export function median(values: readonly number[]): number {
  return percentile(values, 0.5);
}

/** `share` from 0 to 1. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length * share)] ?? Number.NaN;
}
