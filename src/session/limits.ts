import type { CallItem, ResultItem, Usage } from "../spec/model.ts";

/** What stops a turn that does not stop by itself. */
export interface TurnLimits {
  readonly maxRequests: number;
  readonly maxCalls: number;
  readonly maxTokens: number;
  readonly maxCostUsd: number;
  readonly maxMs: number;
}

export const noLimits: TurnLimits = {
  maxRequests: Infinity,
  maxCalls: Infinity,
  maxTokens: Infinity,
  maxCostUsd: Infinity,
  maxMs: Infinity,
};

/** What a turn has used up. */
export interface Spent {
  readonly requests: number;
  readonly calls: number;
  readonly usage: Usage;
  readonly costUsd: number;
  readonly ms: number;
}

/** The limit that was reached, in words, or undefined. */
export function exceeded(limits: TurnLimits, spent: Spent): string | undefined {
  if (spent.requests >= limits.maxRequests) return `${limits.maxRequests} requests`;
  if (spent.calls >= limits.maxCalls) return `${limits.maxCalls} calls`;
  if (spent.usage.input + spent.usage.output >= limits.maxTokens) return `${limits.maxTokens} tokens`;
  if (spent.costUsd >= limits.maxCostUsd) return `${limits.maxCostUsd} US dollars`;
  if (spent.ms >= limits.maxMs) return `${limits.maxMs} ms`;
  return undefined;
}

export function addUsage(a: Usage, b: Usage): Usage {
  return {
    input: a.input + b.input,
    output: a.output + b.output,
    cached: (a.cached ?? 0) + (b.cached ?? 0),
    cacheWritten: (a.cacheWritten ?? 0) + (b.cacheWritten ?? 0),
    reasoning: (a.reasoning ?? 0) + (b.reasoning ?? 0),
  };
}

export const noUsage: Usage = { input: 0, output: 0 };

/** Notices a model that asks for the same thing and gets the same answer, over and over. */
export interface LoopWatch {
  /** How often in a row exactly this call ended in exactly this way. */
  seen(call: CallItem, result: ResultItem): number;
}

export const maxRepeats = 8;

export function createLoopWatch(): LoopWatch {
  let last: { readonly call: CallItem; readonly result: ResultItem } | undefined;
  let count = 0;
  return {
    seen(call, result) {
      const isSame =
        last !== undefined &&
        call.name === last.call.name &&
        call.arguments === last.call.arguments &&
        result.ok === last.result.ok &&
        JSON.stringify(result.content) === JSON.stringify(last.result.content);
      count = isSame ? count + 1 : 1;
      last = { call, result };
      return count;
    },
  };
}
