import type { NetworkGrant } from "../spec/access.ts";
import type { PolicySettings } from "../spec/stages.ts";
import type { Surroundings } from "./command/look.ts";
import type { RuleSet } from "./rules.ts";

/** Everything a decision depends on, beside the call itself and the file system. */
export interface Policy extends Surroundings {
  readonly settings: PolicySettings;
  /** Roots that may be changed under the chosen sandbox policy, links followed. */
  readonly writable: readonly string[];
  readonly protect: readonly string[];
  /** Names of files that run later: asked about when a tool writes them, open to commands in the sandbox. */
  readonly asked: readonly string[];
  readonly network: NetworkGrant;
  readonly rules: RuleSet;
  /** Commands will be held inside their grant. */
  readonly confines: boolean;
}
