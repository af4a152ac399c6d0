/** What one gate keeps between calls. */
import type { Memory } from "./options.ts";
import type { GateOptions } from "./options.ts";
import type { Policy } from "./policy.ts";
import type { RuleBook } from "./rules.ts";

export interface GateState {
  readonly options: GateOptions;
  readonly memory: Memory;
  readonly book: RuleBook;
  /** The policy with the present rules of the book. It changes when more is known about confinement. */
  policy: Policy;
  looked: boolean;
}
