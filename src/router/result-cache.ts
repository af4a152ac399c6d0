/**
 * Results of tools that allow caching, returned again for the same input under the same grant. Each
 * conversation has its own cache.
 */
import { stableStringify } from "../base/json.ts";
import { readOutput } from "../result/shape.ts";
import type { Permitted, Ran } from "../spec/call.ts";
import type { Runtime } from "../spec/stages.ts";
import type { ToolOutput } from "../spec/tool.ts";

/** The least recently used entries are dropped first. */
const maxEntries = 100;

interface Entry {
  readonly output: ToolOutput;
  readonly until: number;
}

/** The runtime, called only for what no earlier call has found out. */
export function withCache(runtime: Runtime, now: () => number = Date.now): Runtime {
  const entries = new Map<string, Entry>();
  return {
    ...runtime,
    async run(permitted, ...how) {
      const key = keyOf(permitted);
      if (key === undefined) return runtime.run(permitted, ...how);
      const known = entries.get(key);
      entries.delete(key);
      if (known !== undefined && known.until > now()) {
        entries.set(key, known); // moved to the end: the map's order is the order of last use
        return { ...permitted, startedAt: now(), output: known.output, cached: true };
      }
      const ran = await runtime.run(permitted, ...how);
      if (isGood(ran)) {
        entries.set(key, { output: ran.output, until: now() + (permitted.tool.cache?.ttlMs ?? Infinity) });
        const [oldest] = entries.keys();
        if (entries.size > maxEntries && oldest !== undefined) entries.delete(oldest);
      }
      return ran;
    },
  };
}

/** Undefined means that the call has to run. A call that changes something always has to. */
function keyOf({ tool, input, grant, mutates }: Permitted): string | undefined {
  if (tool.cache === undefined || mutates) return undefined;
  // The input passed the tool's own schema, so it has the type that `key` expects.
  const own = tool.cache.key as ((input: unknown) => string) | undefined;
  return stableStringify([tool.name, own === undefined ? input : own(input), grant]);
}

function isGood({ error, denied, output }: Ran): boolean {
  if (error !== undefined || denied !== undefined) return false;
  const { ok, exec } = readOutput(output);
  return ok && (exec === undefined || (exec.exitCode === 0 && !exec.timedOut));
}
