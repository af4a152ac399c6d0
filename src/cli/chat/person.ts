/** The person in front of a session: approves calls, and is talked with where a yes or no is not enough. */
import type { Approver } from "../../spec/stages.ts";

export interface Choice {
  readonly value: string;
  readonly label: string;
  readonly description?: string;
}

/** Questions of one conversation. Undefined: they want none of it, or are gone. */
export interface Asking {
  choose(words: string, choices: readonly Choice[]): Promise<string | undefined>;
  write(words: string): Promise<string | undefined>;
}

export interface Person extends Approver {
  /** One conversation at a time, in turn with approvals. Undefined where nobody can be asked. */
  converse<Result>(talk: (asking: Asking) => Promise<Result>, signal: AbortSignal): Promise<Result | undefined>;
}
