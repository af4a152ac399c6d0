/** What a gate is made of, and the policy that follows from it. */
import { homedir } from "node:os";
import type { Grant, NetworkGrant } from "../spec/access.ts";
import type { Ruling } from "../spec/call.ts";
import type { Approver, Confinement, Emit } from "../spec/stages.ts";
import { checkOptions, type Shape } from "../base/shape.ts";
import { hookShape, type Hook } from "./hooks.ts";
import { approvalNames, sandboxNames, toSettings, type PolicyNames } from "./modes.ts";
import { defaultMask, resolveReal } from "./paths.ts";
import type { Policy } from "./policy-type.ts";
import { compileRules, ruleProblem, type Rule, type RuleBook } from "./rules.ts";
import { runLater } from "./run-later.ts";

/** Options of `createPolicy`. */
export interface PolicyOptions {
  /** Every name of a mode is accepted. Left out: `on-request` and `workspace-write`. */
  readonly settings?: PolicyNames;
  /** The folder that calls work in. */
  readonly workspace: string;
  /** Further folders that may be written as the workspace may. */
  readonly extraWritableRoots?: readonly string[];
  /** Folders outside the workspace that may be read without a question (kept outputs, skills). */
  readonly readableRoots?: readonly string[];
  /** Names that stay read-only in the sandbox and are always asked about. Left out: `runLater.protected`. */
  readonly protect?: readonly string[];
  /** Names that are asked about when a file tool writes them. Left out: `runLater.asked`. */
  readonly asked?: readonly string[];
  /** Files and folders that no call may read. Left out: the usual places of keys and credentials. */
  readonly mask?: readonly string[];
  /** What commands may reach: nothing, everything, or these hosts. */
  readonly network?: NetworkGrant;
  /** Rules that decide before the modes do; the strictest one that matches counts. */
  readonly rules?: readonly Rule[];
  /**
   * What holds commands inside their grant on this machine. A function is called once, when the first
   * command comes.
   */
  readonly confinement: Confinement | (() => Promise<Confinement>);
  /** The user's home folder. Left out: this process's. */
  readonly home?: string;
}

/** What people have said yes to in one conversation, as keys of questions. A `Set` of strings is one. */
export interface Memory {
  has(key: string): boolean;
  add(key: string): unknown;
}

/** Options of `createGate`: those of the policy, and who is asked. */
export interface GateOptions extends PolicyOptions {
  /** Left out: nobody can be asked, and a call that needs an answer ends as `needs_approval`. */
  readonly approver?: Approver;
  /** Functions or programs that see each call before and after it runs, in this order. */
  readonly hooks?: readonly Hook[];
  /**
   * `asked`: a command that would need a question runs with its writes held back, and the question is
   * about what it did.
   */
  readonly held?: "off" | "asked";
  /** `all`: every confined command is held and kept at once, so that it can be undone. */
  readonly undo?: "files" | "all";
  /** Why the writes of a command cannot be held on this machine. Undefined if they can. */
  readonly whyNotHeld?: (grant: Grant, cwd: string) => Promise<string | undefined>;
  /** Called with the events of a decision: questions, answers, log lines. */
  readonly emit?: Emit;
  /** What was agreed to earlier, and where a yes for the session is remembered. Left out: an empty `Set`. */
  readonly memory?: Memory;
  /** Rules shared with other gates. Left out: `rules` and what a person adds, for this gate alone. */
  readonly book?: RuleBook;
  /** Where 'always' saves its rule. Left out: 'always' is not offered. */
  readonly always?: { readonly file: string; save(rule: Rule): Promise<void> };
  /** Called with every decision, who made it and why (audit log). */
  readonly record?: (entry: GateRecord) => void | Promise<void>;
}

/** One decision, as the audit log gets it. */
export interface GateRecord {
  readonly call: string;
  readonly tool: string;
  /** The hash of the exact call, what it touches and the grant. A question and its answer have the same hash. */
  readonly hash?: string;
  readonly ruling: Ruling;
  /** `kept`, `dropped`: what became of its held writes. `withheld`: it ran, and an after-hook withheld its result. */
  readonly outcome: "permitted" | "refused" | "withheld" | "kept" | "dropped";
  readonly grant?: Grant;
}

/** What one gate keeps between calls. */
export interface GateState {
  readonly options: GateOptions;
  readonly memory: Memory;
  readonly book: RuleBook;
  /** The policy with the present rules of the book. It changes when more is known about confinement. */
  policy: Policy;
  looked: boolean;
}

const policyFields = {
  settings: { fields: { approval: { oneOf: approvalNames }, sandbox: { oneOf: sandboxNames } }, noun: "setting" },
  workspace: "string",
  extraWritableRoots: "strings",
  readableRoots: "strings",
  protect: "strings",
  asked: "strings",
  mask: "strings",
  network: {
    either: [{ oneOf: ["off", "on"] }, "strings"],
    words: "'off', 'on' or a list of hosts",
  },
  rules: { list: "any" },
  confinement: {
    either: ["function", { fields: { name: "string", available: "boolean" } }],
    words: "what confines commands, or a function that finds out",
  },
  home: "string",
} as const satisfies Record<keyof PolicyOptions, Shape>;

const gateFields = {
  ...policyFields,
  approver: { methods: ["ask"], words: "an approver: an object with a function 'ask'" },
  hooks: { list: hookShape },
  held: { oneOf: ["off", "asked"] },
  undo: { oneOf: ["files", "all"] },
  whyNotHeld: "function",
  emit: "function",
  memory: { methods: ["has", "add"], words: "what was agreed to: a Set of strings, or an object with 'has' and 'add'" },
  book: { methods: ["add"], words: "a book of rules that several gates share" },
  always: { fields: { file: "string", save: "function" }, required: ["file", "save"] },
  record: "function",
} as const satisfies Record<keyof GateOptions, Shape>;

const {
  settings: _settings,
  workspace: _workspace,
  approver: _approver,
  emit: _emit,
  memory: _memory,
  book: _book,
  ...ofAnEngine
} = gateFields;

/**
 * Checks what may be changed while calls run. Throws a TypeError that names what is wrong and the
 * nearest right word.
 */
export function checkPolicyChange(change: PolicyNames): void {
  checkOptions("setPolicy", change, { ...policyFields.settings, noun: "option" });
}

/** The gate's options inside an engine's options, which cover the rest. */
export const engineGateShape: Shape = { fields: ofAnEngine, noun: "option" };

/**
 * Throws a TypeError for a rule that is not one, because a rule that nobody understands would silently
 * protect nothing.
 */
export function checkRules(owner: string, rules: readonly unknown[]): void {
  for (const [index, rule] of rules.entries()) {
    const problem = ruleProblem(rule);
    if (problem !== undefined) throw new TypeError(`${owner}[${index}]: ${problem}`);
  }
}

export function checkGateOptions(owner: string, options: GateOptions): void {
  checkOptions(owner, options, { fields: gateFields, required: ["workspace", "confinement"], noun: "option" });
}

/** Rules and modes as one value, which `decideCommand` and `decideAccess` judge by. */
export function createPolicy(options: PolicyOptions): Policy {
  checkRules("rules", options.rules ?? []);
  const settings = toSettings(options.settings?.approval, options.settings?.sandbox);
  const home = options.home ?? homedir();
  const workspace = resolveReal(options.workspace, "/") ?? options.workspace;
  // Most masked places lie in one folder, the user's.
  const seen = new Map<string, string>();
  const real = (path: string) => resolveReal(path, workspace, seen) ?? path;
  const { confinement, extraWritableRoots = [], readableRoots = [] } = options;
  const { sandbox } = settings;
  const inPolicy = {
    "full-access": ["/"],
    "workspace-write": [workspace, ...extraWritableRoots.map(real)],
    "read-only": [],
  };
  return {
    settings,
    real: resolveReal,
    workspace,
    home,
    writable: inPolicy[sandbox],
    readable: [...readableRoots, ...extraWritableRoots].map(real),
    protect: (options.protect ?? runLater.protected).map((name) => (name.startsWith("/") ? real(name) : name)),
    asked: options.asked ?? runLater.asked,
    mask: [...new Set((options.mask ?? defaultMask(home)).map(real))],
    network: sandbox === "full-access" ? "on" : (options.network ?? "off"),
    rules: compileRules(options.rules ?? []),
    // A sandbox is assumed to be there until it has been looked at, which happens before the first command is judged.
    confines: (typeof confinement === "function" || confinement.available) && sandbox !== "full-access",
  };
}
