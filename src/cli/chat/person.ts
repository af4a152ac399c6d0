/** The person in front of a session, who approves calls and can be asked more than yes or no. */
import type { Approver } from "../../spec/stages.ts";

export interface Choice {
  readonly value: string;
  readonly label: string;
  readonly description?: string;
}

/** Questions of one conversation. Undefined if the person declined or is gone. */
export interface Asking {
  choose(words: string, choices: readonly Choice[]): Promise<string | undefined>;
  write(words: string): Promise<string | undefined>;
}

export interface Person extends Approver {
  /** One conversation at a time, in turn with approvals. Undefined if nobody can be asked. */
  converse<Result>(talk: (asking: Asking) => Promise<Result>, signal: AbortSignal): Promise<Result | undefined>;
}
