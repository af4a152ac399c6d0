/** Flags that several commands share, and how they become settings. */
import type { Config } from "./config.ts";
import { configKeys } from "./keys.ts";

const text = (brief: string, placeholder: string) =>
  ({ kind: "parsed", parse: String, optional: true, brief, placeholder }) as const;

/** A flag that is there or not. */
export const toggle = (brief: string) => ({ kind: "boolean", optional: true, withNegated: false, brief }) as const;

/** A limit that is not a number would not limit anything. */
function readAmount(given: string): number {
  const amount = Number(given);
  if (given.trim() === "" || !(amount > 0)) throw new Error(`'${given}' is not a number above 0`);
  return amount;
}

export function readPort(given: string): number {
  const port = Number(given);
  if (!/^\d+$/.test(given) || port > 65_535) throw new Error(`'${given}' is not a port`);
  return port;
}

export const folderFlags = { cwd: text("work in this folder", "DIR") } as const;

/** Which model is used, because what it sees depends on it. */
const modelFlags = {
  model: text(configKeys.model.about, "NAME"),
  provider: text(configKeys.provider.about, "NAME"),
  baseUrl: text(configKeys.base_url.about, "URL"),
  wire: text(configKeys.wire.about, "WIRE"),
  profile: text(configKeys.profile.about, "NAME"),
} as const;

/** What a call may do. */
export const policyFlags = {
  ...folderFlags,
  sandbox: { kind: "enum", values: configKeys.sandbox.oneOf, optional: true, brief: configKeys.sandbox.about },
  approval: { kind: "enum", values: configKeys.approval.oneOf, optional: true, brief: configKeys.approval.about },
  addDir: {
    kind: "parsed",
    parse: String,
    optional: true,
    variadic: true,
    brief: "a further folder that may be changed",
    placeholder: "DIR",
  },
  allowHost: {
    kind: "parsed",
    parse: String,
    optional: true,
    variadic: true,
    brief: "a host that may be contacted",
    placeholder: "HOST",
  },
} as const;

/** Flags for using tools without a session. */
export const toolFlags = { ...modelFlags, ...policyFlags } as const;

export const sessionFlags = {
  ...toolFlags,
  codeMode: toggle("let the model write scripts that call tools"),
  maxRequests: {
    kind: "parsed",
    parse: readAmount,
    optional: true,
    brief: configKeys.max_requests.about,
    placeholder: "N",
  },
  maxCostUsd: {
    kind: "parsed",
    parse: readAmount,
    optional: true,
    brief: configKeys.max_cost_usd.about,
    placeholder: "N",
  },
} as const;

export interface FolderFlags {
  readonly cwd?: string;
}

export interface PolicyFlags extends FolderFlags {
  readonly sandbox?: (typeof configKeys.sandbox.oneOf)[number];
  readonly approval?: (typeof configKeys.approval.oneOf)[number];
  readonly addDir?: readonly string[];
  readonly allowHost?: readonly string[];
}

export interface ToolFlags extends PolicyFlags {
  readonly model?: string;
  readonly provider?: string;
  readonly baseUrl?: string;
  readonly wire?: string;
  readonly profile?: string;
}

export interface SessionFlags extends ToolFlags {
  readonly codeMode?: boolean;
  readonly maxRequests?: number;
  readonly maxCostUsd?: number;
}

/** Flags as the topmost layer of the settings. What was not given is left to the layers below. */
export function flagsToConfig(flags: SessionFlags): Config {
  const settings = {
    model: flags.model,
    provider: flags.provider,
    base_url: flags.baseUrl,
    wire: flags.wire,
    sandbox: flags.sandbox,
    approval: flags.approval,
    profile: flags.profile,
    writable_roots: flags.addDir,
    network: flags.allowHost,
    code_mode: flags.codeMode,
    max_requests: flags.maxRequests,
    max_cost_usd: flags.maxCostUsd,
  };
  return Object.fromEntries(Object.entries(settings).filter(([, value]) => value !== undefined));
}
