/** What one gate keeps between calls. */
import type { Memory } from "./memory.ts";
import type { GateOptions } from "./options.ts";
import type { Policy } from "./policy.ts";
import type { RuleBook } from "./rules.ts";

export interface GateState {
  readonly options: GateOptions;
  readonly memory: Memory;
  readonly book: RuleBook;
  /** With the book's rules of this moment. Changes by what is learned about confinement. */
  policy: Policy;
  looked: boolean;
}
