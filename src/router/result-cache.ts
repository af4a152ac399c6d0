/** Results of tools that say they can be cached, given again for the same input under the same grant. One conversation's own. */
import { stableStringify } from "../base/json.ts";
import { readOutput } from "../result/output.ts";
import type { Permitted, Ran } from "../spec/call.ts";
import type { Runtime } from "../spec/stages.ts";
import type { ToolOutput } from "../spec/tool.ts";

/** The least recently used ones go first. */
const maxEntries = 100;

interface Entry {
  readonly output: ToolOutput;
  readonly until: number;
}

/** The runtime, asked only for what no earlier call has found out. */
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
        entries.set(key, known); // at the end again: the map's order is the order of last use
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

/** Undefined: this call runs. One that changes something always does. */
function keyOf({ tool, input, grant, mutates }: Permitted): string | undefined {
  if (tool.cache === undefined || mutates) return undefined;
  // The input passed the tool's own schema, which is what the forgotten type stood for.
  const own = tool.cache.key as ((input: unknown) => string) | undefined;
  return stableStringify([tool.name, own === undefined ? input : own(input), grant]);
}

function isGood({ error, denied, output }: Ran): boolean {
  if (error !== undefined || denied !== undefined) return false;
  const { ok, exec } = readOutput(output);
  return ok && (exec === undefined || (exec.exitCode === 0 && !exec.timedOut));
}
