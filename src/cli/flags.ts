/** Flags that several commands share, and how they become settings. */
import type { Config } from "./config.ts";
import { configKeys } from "./config-keys.ts";

const text = (brief: string, placeholder: string) =>
  ({ kind: "parsed", parse: String, optional: true, brief, placeholder }) as const;

/** A limit that is no number would be no limit. */
function readAmount(given: string): number {
  const amount = Number(given);
  if (given.trim() === "" || !(amount > 0)) throw new Error(`'${given}' is not a number above 0`);
  return amount;
}

/** Which model, under which policy: taken by exec, chat, demo, tools and call. */
export const sessionFlags = {
  model: text(configKeys.model.about, "NAME"),
  provider: text(configKeys.provider.about, "NAME"),
  baseUrl: text(configKeys.base_url.about, "URL"),
  wire: text(configKeys.wire.about, "WIRE"),
  sandbox: { kind: "enum", values: configKeys.sandbox.oneOf, optional: true, brief: configKeys.sandbox.about },
  approval: { kind: "enum", values: configKeys.approval.oneOf, optional: true, brief: configKeys.approval.about },
  profile: text(configKeys.profile.about, "NAME"),
  cwd: text("work in this folder", "DIR"),
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

export interface SessionFlags {
  readonly model?: string;
  readonly provider?: string;
  readonly baseUrl?: string;
  readonly wire?: string;
  readonly sandbox?: (typeof configKeys.sandbox.oneOf)[number];
  readonly approval?: (typeof configKeys.approval.oneOf)[number];
  readonly profile?: string;
  readonly cwd?: string;
  readonly addDir?: readonly string[];
  readonly allowHost?: readonly string[];
  readonly maxRequests?: number;
  readonly maxCostUsd?: number;
}

/** Flags as the topmost layer of the settings. What was not given stays open for the layers below. */
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
    max_requests: flags.maxRequests,
    max_cost_usd: flags.maxCostUsd,
  };
  return Object.fromEntries(Object.entries(settings).filter(([, value]) => value !== undefined)) as Config;
}
