/**
 * The table of approval modes: what happens to a call that no rule matches, and the names that people
 * use for the modes.
 */
import { checkShape } from "../base/shape.ts";
import type { SandboxPolicy } from "../spec/access.ts";
import type { ApprovalMode, PolicySettings } from "../spec/stages.ts";

/** How much is known about what a call does. */
export type Risk = "harmless" | "other" | "dangerous" | "escalation";

/** What the policy says about a call. */
export type Decision = "allow" | "ask" | "deny";

const strictness = { allow: 0, ask: 1, deny: 2 } as const;

export function isStricter(a: Decision, b: Decision): boolean {
  return strictness[a] > strictness[b];
}

/** Every name of an approval mode, and the mode it stands for. */
const approvals = {
  never: "never",
  "on-request": "on-request",
  "on-failure": "on-failure",
  "unless-trusted": "unless-trusted",
  auto: "auto",
  disabled: "disabled",
  interactive: "on-request",
} as const satisfies Readonly<Record<string, ApprovalMode>>;

/** Every name that an approval mode may be given by. */
export type ApprovalName = keyof typeof approvals;
/** The keys of the table above; the compiler loses their types. */
export const approvalNames = Object.keys(approvals) as readonly ApprovalName[];

const sandboxes = {
  "read-only": "read-only",
  "workspace-write": "workspace-write",
  "full-access": "full-access",
  none: "full-access",
  restricted: "workspace-write",
} as const satisfies Readonly<Record<string, SandboxPolicy>>;

/** Every name that a sandbox mode may be given by. */
export type SandboxName = keyof typeof sandboxes;
/** The keys of the table above; the compiler loses their types. */
export const sandboxNames = Object.keys(sandboxes) as readonly SandboxName[];

/** A policy as people write it. Wherever a policy is given, every name of a mode is accepted. */
export interface PolicyNames {
  /** What happens to calls that no rule decides. */
  readonly approval?: ApprovalName;
  /** What commands may write. */
  readonly sandbox?: SandboxName;
}

/** The names of an approval mode and a sandbox as settings. Throws a TypeError for an unknown word. `auto` has no sandbox unless one is named. */
export function toSettings(approval: ApprovalName = "on-request", sandbox?: SandboxName): PolicySettings {
  const problem =
    checkShape(approval, { oneOf: approvalNames }, ["approval"]) ??
    (sandbox === undefined ? undefined : checkShape(sandbox, { oneOf: sandboxNames }, ["sandbox"]));
  if (problem) throw new TypeError(problem.message);
  const fallback = approval === "auto" ? "full-access" : "workspace-write";
  return { approval: approvals[approval], sandbox: sandboxes[sandbox ?? fallback] };
}

/** In these modes nobody is ever asked. */
export function asksNobody(approval: ApprovalMode): boolean {
  return approval === "never" || approval === "auto" || approval === "disabled";
}

/** `confines` says whether a sandbox will hold the call inside its grant. */
export function byMode(risk: Risk, settings: PolicySettings, confines: boolean): Decision {
  const { approval, sandbox } = settings;
  if (approval === "disabled") return "deny";
  if (risk === "harmless") return "allow";
  const held = confines || sandbox === "full-access";
  if (approval === "auto") return sandbox === "full-access" || (risk !== "escalation" && held) ? "allow" : "deny";
  const refuses = approval === "never";
  if (risk === "escalation" || risk === "dangerous") return refuses ? "deny" : "ask";
  if (approval === "unless-trusted") return "ask";
  if (held) return "allow";
  return refuses ? "deny" : "ask";
}

/** The reason for the decision, as the end of a sentence that begins with what the call does. */
export function modeReason(risk: Risk, settings: PolicySettings, confines: boolean): string {
  const { approval, sandbox } = settings;
  if (approval === "disabled") return switchedOff;
  if (risk === "harmless") return "it is known to be harmless";
  if (approval === "auto" && byMode(risk, settings, confines) === "allow")
    return sandbox === "full-access"
      ? "approval 'auto' runs whatever no rule denies"
      : "approval 'auto' runs it inside the sandbox";
  const who = asksNobody(approval) ? `approval '${approval}' refuses` : "a person has to agree to";
  if (risk === "escalation") return `${who} what needs more than the sandbox gives`;
  if (risk === "dangerous") return `${who} what is dangerous or cannot be understood`;
  if (approval === "unless-trusted") return "approval 'unless-trusted' asks about it";
  if (confines) return "it may run here because the sandbox confines it";
  return sandbox === "full-access" ? "you chose full access" : "nothing here can confine it";
}

export const switchedOff = "tool calls are switched off (approval 'disabled')";
