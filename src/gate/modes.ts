/** The table of approval modes: what happens to something no rule speaks about. */
import type { SandboxPolicy } from "../spec/access.ts";
import type { ApprovalMode, PolicySettings } from "../spec/stages.ts";

/** How much is known about what a call does. */
export type Risk = "harmless" | "other" | "dangerous" | "escalation";

export type Decision = "allow" | "ask" | "deny";

const strictness = { allow: 0, ask: 1, deny: 2 } as const;

export function isStricter(a: Decision, b: Decision): boolean {
  return strictness[a] > strictness[b];
}

export const approvalNames = [
  "never",
  "on-request",
  "on-failure",
  "unless-trusted",
  "disabled",
  "auto",
  "interactive",
] as const;
export type ApprovalName = (typeof approvalNames)[number];

export const sandboxNames = ["read-only", "workspace-write", "full-access", "none", "restricted"] as const;
export type SandboxName = (typeof sandboxNames)[number];

/** The names people write (the seeds' among them) to settings. `auto` is never + full-access, unless a sandbox was named. */
export function toSettings(approval: ApprovalName = "on-request", sandbox?: SandboxName): PolicySettings {
  const modes: Record<ApprovalName, ApprovalMode> = {
    never: "never",
    "on-request": "on-request",
    "on-failure": "on-failure",
    "unless-trusted": "unless-trusted",
    disabled: "disabled",
    auto: "never",
    interactive: "on-request",
  };
  const policies: Record<SandboxName, SandboxPolicy> = {
    "read-only": "read-only",
    "workspace-write": "workspace-write",
    "full-access": "full-access",
    none: "full-access",
    restricted: "workspace-write",
  };
  const fallback = approval === "auto" ? "full-access" : "workspace-write";
  return { approval: modes[approval], sandbox: policies[sandbox ?? fallback] };
}

/** `confines`: something will hold the call inside its grant. */
export function byMode(risk: Risk, settings: PolicySettings, confines: boolean): Decision {
  const { approval, sandbox } = settings;
  if (risk === "harmless") return "allow";
  if (approval === "disabled") return "deny";
  const refuses = approval === "never";
  if (risk === "escalation" || risk === "dangerous") return refuses ? "deny" : "ask";
  if (approval === "unless-trusted") return "ask";
  if (confines || sandbox === "full-access") return "allow";
  return refuses ? "deny" : "ask";
}

/** One line for a person, after "because". */
export function modeReason(risk: Risk, settings: PolicySettings, confines: boolean): string {
  const { approval, sandbox } = settings;
  if (risk === "harmless") return "known to be harmless";
  if (approval === "disabled") return "approval mode 'disabled' refuses everything that is not known to be harmless";
  if (risk === "escalation") return "it needs more than the sandbox gives";
  if (risk === "dangerous") return "it is dangerous or cannot be understood";
  if (approval === "unless-trusted") return "approval is 'unless-trusted'";
  if (confines) return "the sandbox confines it";
  return sandbox === "full-access" ? "you chose full access" : "nothing here can confine it";
}
