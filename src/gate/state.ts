/** What one gate keeps between calls. */
import type { Memory } from "./approval.ts";
import type { GateOptions } from "./options.ts";
import type { Policy } from "./policy.ts";

export interface GateState {
  readonly options: GateOptions;
  readonly memory: Memory;
  /** Grows by the rules a person adds, and by what is learned about confinement. */
  policy: Policy;
  looked: boolean;
}
