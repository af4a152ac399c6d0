import { toBaseGrant } from "../gate/grant.ts";
import { createPolicy, type GateOptions } from "../gate/options.ts";
import type { Policy } from "../gate/policy-type.ts";
import type { Gate } from "../spec/stages.ts";

export interface LazyGate extends Gate {
  /** Gets ready for the first call while nobody waits for it. */
  load(): Promise<unknown>;
}

/**
 * The gate, loaded with the first call: understanding commands is a large part of the engine, and a
 * session that only talks needs none of it. What is granted by default can be asked for at once.
 */
export function createLazyGate(options: GateOptions): LazyGate {
  let loading: Promise<Gate> | undefined;
  let loaded: Gate | undefined;
  let policy: Policy | undefined;
  const ownPolicy = () => (policy ??= createPolicy(options));
  const load = async (): Promise<Gate> => {
    const { createGate } = await import("../gate/gate.ts");
    return (loaded = createGate(options, ownPolicy()));
  };
  const gate = () => loaded ?? (loading ??= load());
  return {
    load: async () => gate(),
    pass: async (checked, signal, asking) => (await gate()).pass(checked, signal, asking),
    decide: async (checked, rehearse) => (await gate()).decide(checked, rehearse),
    widen: async (permitted, denied, signal) => (await gate()).widen(permitted, denied, signal),
    judge: async (ran, effects, signal) => (await gate()).judge(ran, effects, signal),
    after: async (ended, signal) => (await gate()).after(ended, signal),
    baseGrant: () => loaded?.baseGrant() ?? toBaseGrant(ownPolicy()),
  };
}
