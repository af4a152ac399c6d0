/** What decisions depend on, as a type that the files of this folder share. */
import type { NetworkGrant } from "../spec/access.ts";
import type { PolicySettings } from "../spec/stages.ts";
import type { Surroundings } from "./command/look.ts";
import type { RuleSet } from "./rules.ts";

/** Everything that a decision depends on, besides the call itself and the file system. */
export interface Policy extends Surroundings {
  readonly settings: PolicySettings;
  /** Folders that may be changed under the chosen sandbox policy, with links followed. */
  readonly writable: readonly string[];
  readonly protect: readonly string[];
  /**
   * Names of files that run later. They are asked about when a tool writes them, but commands in the
   * sandbox may write them.
   */
  readonly asked: readonly string[];
  readonly network: NetworkGrant;
  readonly rules: RuleSet;
  /** Whether a sandbox will hold commands inside their grant. */
  readonly confines: boolean;
}
