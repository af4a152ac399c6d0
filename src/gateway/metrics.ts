/** What the gateway has done so far, as Prometheus reads it. */
import type { RequestRecord } from "./turn.ts";

/** Counts of a gateway, for Prometheus. */
export interface GatewayMetrics {
  count(record: RequestRecord): void;
  text(): string;
}

export function createMetrics(): GatewayMetrics {
  const series = new Map<string, Map<string, number>>();
  const add = (name: string, labels: Readonly<Record<string, string>>, value: number) => {
    let counters = series.get(name);
    if (counters === undefined) series.set(name, (counters = new Map()));
    const key = Object.entries(labels)
      .map(([label, text]) => `${label}=${JSON.stringify(text)}`)
      .join(",");
    counters.set(key, (counters.get(key) ?? 0) + value);
  };
  return {
    count(record) {
      const { client, wire, target, outcome } = record;
      add("callgate_gateway_requests_total", { client, wire, target, outcome }, 1);
      add("callgate_gateway_tokens_total", { target, direction: "input" }, record.inputTokens ?? 0);
      add("callgate_gateway_tokens_total", { target, direction: "output" }, record.outputTokens ?? 0);
      add("callgate_gateway_cost_usd_total", { target }, record.costUsd ?? 0);
      add("callgate_gateway_calls_total", { client }, record.calls);
      add("callgate_gateway_refused_calls_total", { client }, record.refused.length);
      add("callgate_gateway_seconds_total", { target }, record.durationMs / 1000);
    },
    text: () =>
      [...series]
        .flatMap(([name, counters]) => [
          `# TYPE ${name} counter`,
          ...[...counters].map(([labels, value]) => `${name}{${labels}} ${value}`),
        ])
        .join("\n")
        .concat("\n"),
  };
}
