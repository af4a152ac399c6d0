/** What a client of the service may ask for: less than the service's own settings give, never more. */
import { defined } from "../../base/json.ts";
import { byMode, isStricter, type Risk } from "../../gate/modes.ts";
import type { SandboxPolicy } from "../../spec/access.ts";
import type { ApprovalMode, PolicySettings } from "../../spec/stages.ts";
import type { TurnLimits } from "../../session/index.ts";
import type { Config } from "../config/config.ts";

const risks = ["harmless", "other", "dangerous", "escalation"] as const satisfies readonly Risk[];

/** Whether this mode is at least as strict for every kind of call: it never allows what the service's own mode asks about or refuses. */
export function isNoLooser(asked: ApprovalMode, { approval, sandbox }: PolicySettings): boolean {
  return risks.every((risk) =>
    [true, false].every((confines) => {
      const own = byMode(risk, { approval, sandbox }, confines);
      return !isStricter(own, byMode(risk, { approval: asked, sandbox }, confines));
    }),
  );
}

const sandboxOrder = ["read-only", "workspace-write", "full-access"] as const satisfies readonly SandboxPolicy[];

export function isNoWider(asked: SandboxPolicy, { sandbox }: PolicySettings): boolean {
  return sandboxOrder.indexOf(asked) <= sandboxOrder.indexOf(sandbox);
}

/** Of each limit the smaller one: the client's, or that of the settings. */
export function narrowLimits(asked: Partial<TurnLimits>, config: Config): Partial<TurnLimits> {
  const { max_requests: maxRequests, max_calls: maxCalls, max_cost_usd: maxCostUsd, max_seconds: seconds } = config;
  const own = defined({ maxRequests, maxCalls, maxCostUsd, maxMs: seconds === undefined ? undefined : seconds * 1000 });
  const least = (name: keyof TurnLimits, most: number) => Math.min(most, asked[name] ?? Infinity);
  return {
    ...asked,
    ...(own.maxRequests === undefined ? {} : { maxRequests: least("maxRequests", own.maxRequests) }),
    ...(own.maxCalls === undefined ? {} : { maxCalls: least("maxCalls", own.maxCalls) }),
    ...(own.maxCostUsd === undefined ? {} : { maxCostUsd: least("maxCostUsd", own.maxCostUsd) }),
    ...(own.maxMs === undefined ? {} : { maxMs: least("maxMs", own.maxMs) }),
  };
}
