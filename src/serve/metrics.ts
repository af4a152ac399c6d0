/** What the service has done so far, as Prometheus reads it. */
import type { SessionEvent } from "../session/index.ts";

/** Counts of a service, for Prometheus. */
export interface ServeMetrics {
  count(name: "wakes", by?: number): void;
  gauge(name: "listeners", by: number): void;
  request(route: string, status: number, ms: number): void;
  heard(event: SessionEvent): void;
  text(sessions: Readonly<Record<string, number>>): string;
}

export function createServeMetrics(): ServeMetrics {
  const counters = new Map<string, number>();
  const gauges = new Map<string, number>();
  const add = (to: Map<string, number>, name: string, by: number) => void to.set(name, (to.get(name) ?? 0) + by);
  const label = (text: string) => JSON.stringify(text);
  return {
    count: (name, by = 1) => add(counters, `callgate_serve_${name}_total`, by),
    gauge: (name, by) => add(gauges, `callgate_serve_${name}`, by),
    request(route, status, ms) {
      add(counters, `callgate_serve_requests_total{route=${label(route)},status="${status}"}`, 1);
      add(counters, `callgate_serve_request_seconds_total{route=${label(route)}}`, ms / 1000);
    },
    heard(event) {
      if (event.type === "call.ended")
        add(
          counters,
          `callgate_serve_calls_total{code=${label(event.call.ok ? "ok" : (event.call.code ?? "failed"))}}`,
          1,
        );
      if (event.type === "turn.ended") add(counters, `callgate_serve_turns_total{reason=${label(event.reason)}}`, 1);
      if (event.type !== "usage.updated") return;
      add(counters, `callgate_serve_tokens_total{direction="input"}`, event.usage.input);
      add(counters, `callgate_serve_tokens_total{direction="output"}`, event.usage.output);
    },
    text(sessions) {
      const now = Object.entries({ idle: 0, running: 0, waiting: 0, faulty: 0, ended: 0, ...sessions }).map(
        ([status, n]) => [`callgate_serve_sessions{status=${label(status)}}`, n],
      );
      const write = (kind: string, rows: Iterable<readonly unknown[]>) => {
        const named = new Map<string, string[]>();
        for (const [key, value] of rows) {
          const name = String(key).split("{")[0]!;
          const lines = named.get(name) ?? [];
          named.set(name, [...lines, `${String(key)} ${String(value)}`]);
        }
        return [...named].flatMap(([name, lines]) => [`# TYPE ${name} ${kind}`, ...lines]);
      };
      return [...write("counter", counters), ...write("gauge", [...gauges, ...now])].join("\n").concat("\n");
    },
  };
}
