/** What a gate is made of, and the policy that follows from it. */
import { homedir } from "node:os";
import type { Grant, NetworkGrant } from "../spec/access.ts";
import type { Checked, Ruling } from "../spec/call.ts";
import type { Approver, Confinement, Emit, PolicySettings } from "../spec/stages.ts";
import type { Memory } from "./approval.ts";
import type { Hook } from "./hooks.ts";
import { defaultMask, defaultProtect, resolveReal } from "./paths.ts";
import type { Policy } from "./policy.ts";
import { compileRules, type Rule } from "./rules.ts";

export interface PolicyOptions {
  readonly settings: PolicySettings;
  readonly workspace: string;
  readonly extraWritableRoots?: readonly string[];
  /** Folders outside the workspace that may be read without a question (kept outputs, skills). */
  readonly readableRoots?: readonly string[];
  readonly protect?: readonly string[];
  readonly mask?: readonly string[];
  readonly network?: NetworkGrant;
  readonly rules?: readonly Rule[];
  /** What holds commands inside their grant on this machine; a function is asked once, when the first command comes. */
  readonly confinement: Confinement | (() => Promise<Confinement>);
  readonly home?: string;
}

export interface GateOptions extends PolicyOptions {
  /** Left out: nobody can be asked, and what would need it ends as needs_approval. */
  readonly approver?: Approver;
  readonly hooks?: readonly Hook[];
  readonly emit?: Emit;
  readonly memory?: Memory;
  /** Where 'always' is written. Left out: 'always' is not offered. */
  readonly always?: { readonly file: string; save(rule: Rule): Promise<void> };
  /** Told every decision, with who made it and why (audit log). */
  readonly record?: (entry: GateRecord) => void | Promise<void>;
  /** A diff to show for a call that changes files. */
  readonly preview?: (checked: Checked) => Promise<string | undefined>;
}

export interface GateRecord {
  readonly call: string;
  readonly tool: string;
  /** Of the exact call, what it touches and the grant. */
  readonly hash: string;
  readonly ruling: Ruling;
  readonly outcome: "permitted" | "refused";
  readonly grant?: Grant;
}

export function createPolicy(options: PolicyOptions): Policy {
  const home = options.home ?? homedir();
  const workspace = resolveReal(options.workspace, "/") ?? options.workspace;
  const real = (path: string) => resolveReal(path, workspace) ?? path;
  const { confinement, extraWritableRoots = [], readableRoots = [] } = options;
  const { sandbox } = options.settings;
  const inPolicy = {
    "full-access": ["/"],
    "workspace-write": [workspace, ...extraWritableRoots.map(real)],
    "read-only": [],
  };
  return {
    settings: options.settings,
    real: resolveReal,
    workspace,
    home,
    writable: inPolicy[sandbox],
    readable: [...readableRoots, ...extraWritableRoots].map(real),
    protect: (options.protect ?? defaultProtect).map((name) => (name.startsWith("/") ? real(name) : name)),
    mask: [...new Set((options.mask ?? defaultMask(home)).map(real))],
    network: sandbox === "full-access" ? "on" : (options.network ?? "off"),
    rules: compileRules(options.rules ?? []),
    // Until it has been looked at, a sandbox is taken to be there: it is looked at before the first command is judged.
    confines: (typeof confinement === "function" || confinement.available) && sandbox !== "full-access",
  };
}
