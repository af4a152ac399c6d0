/** Entry of `callgate/gateway`: any agent on any model, with the same governance as our own sessions. */
export { startGateway } from "./gateway.ts";
export type { Gateway } from "./gateway.ts";
export type { GatewayOptions } from "./options.ts";
export type { RequestRecord } from "./turn.ts";
export type { Judge, Refusal } from "./govern.ts";
export { createPolicyJudge } from "./client-tools.ts";
export { createKey, openKeyFile } from "./keys.ts";
export type { ClientKey, KeyFile } from "./keys.ts";
export { secretsOf } from "./secrets.ts";
export type { ModelExchange, Telemetry } from "../result/telemetry.ts";
export type { Search, SearchHit } from "./search.ts";
export type { RouteOptions, TargetOptions } from "./upstreams.ts";
export type { Allowance, BudgetOptions } from "./budget.ts";
/** Types that the signatures above mention. */
export type { GatewayMetrics } from "./metrics.ts";
