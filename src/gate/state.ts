/** What one gate keeps between calls. */
import type { Memory } from "./approval.ts";
import type { GateOptions } from "./options.ts";
import type { Policy } from "./policy.ts";

export interface GateState {
  readonly options: GateOptions;
  readonly memory: Memory;
  /** How often hooks rewrote a call that has not ended yet. */
  readonly rewrites: Map<string, number>;
  /** Calls that were widened once already. */
  readonly widened: Set<string>;
  /** Grows by the rules a person adds, and by what is learned about confinement. */
  policy: Policy;
  looked: boolean;
}
