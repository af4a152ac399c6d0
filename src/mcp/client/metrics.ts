/** What happened with each server: events as they come, counts to look at later. */

export type McpEvent =
  | {
      readonly type: "server.started";
      readonly server: string;
      readonly ok: boolean;
      readonly durationMs: number;
      readonly problem?: string;
    }
  | { readonly type: "server.call.started"; readonly server: string; readonly tool: string; readonly callId: string }
  | {
      readonly type: "server.call.ended";
      readonly server: string;
      readonly tool: string;
      readonly callId: string;
      readonly ok: boolean;
      readonly durationMs: number;
    };

/** Counts of one server. */
export interface ServerMetrics {
  readonly starts: number;
  readonly failedStarts: number;
  readonly calls: number;
  readonly failedCalls: number;
  readonly callMs: { readonly sum: number; readonly mean: number; readonly max: number };
}

export interface McpMetrics {
  count(event: McpEvent): void;
  snapshot(): ReadonlyMap<string, ServerMetrics>;
}

interface Counter {
  starts: number;
  failedStarts: number;
  calls: number;
  failedCalls: number;
  sum: number;
  max: number;
}

export function createMcpMetrics(): McpMetrics {
  const counters = new Map<string, Counter>();
  const counterOf = (server: string): Counter => {
    const counter = counters.get(server) ?? { starts: 0, failedStarts: 0, calls: 0, failedCalls: 0, sum: 0, max: 0 };
    counters.set(server, counter);
    return counter;
  };
  return {
    count(event) {
      const counter = counterOf(event.server);
      if (event.type === "server.started") {
        counter.starts++;
        if (!event.ok) counter.failedStarts++;
      } else if (event.type === "server.call.ended") {
        counter.calls++;
        if (!event.ok) counter.failedCalls++;
        counter.sum += event.durationMs;
        counter.max = Math.max(counter.max, event.durationMs);
      }
    },
    snapshot: () => new Map([...counters].map(([server, counter]) => [server, toMetrics(counter)])),
  };
}

function toMetrics({ starts, failedStarts, calls, failedCalls, sum, max }: Counter): ServerMetrics {
  return { starts, failedStarts, calls, failedCalls, callMs: { sum, mean: calls === 0 ? 0 : sum / calls, max } };
}
