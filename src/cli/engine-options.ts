import { resolve } from "node:path";
import { toSettings, type ApprovalName, type SandboxName } from "../gate/modes.ts";
import type { EngineOptions } from "../router/engine.ts";
import { toEnvironmentPolicy } from "../runtime/environment.ts";
import type { NetworkGrant } from "../spec/access.ts";
import { builtins } from "../tools/index.ts";
import type { Config } from "./config.ts";
import { UsageError } from "./io.ts";

/** Settings to an engine: the built-in tools, the policy, the machine. */
export async function engineOptions(config: Config, cwd: string, env: NodeJS.ProcessEnv, spillDir?: string): Promise<EngineOptions> {
  const settings = toSettings(config.approval as ApprovalName | undefined, config.sandbox as SandboxName | undefined);
  const disabled = new Set(config.disabled_tools ?? []);
  return {
    tools: builtins.filter(({ name }) => !disabled.has(name)),
    workspace: cwd,
    approval: settings.approval,
    sandbox: settings.sandbox,
    gate: {
      extraWritableRoots: (config.writable_roots ?? []).map((root) => resolve(cwd, root)),
      network: toNetwork(config.network),
      ...(spillDir === undefined ? {} : { readableRoots: [spillDir] }),
    },
    ...(spillDir === undefined ? {} : { spillDir }),
    ...(config.environment === undefined ? {} : { environment: readEnvironment(config.environment) }),
    ...(config.tool_output_tokens === undefined ? {} : { result: { budget: { maxTokens: config.tool_output_tokens } } }),
  };
}

function toNetwork(hosts: readonly string[] | undefined): NetworkGrant {
  if (hosts === undefined || hosts.length === 0) return "off";
  return hosts.includes("*") ? "on" : hosts;
}

function readEnvironment(table: Readonly<Record<string, unknown>>) {
  const policy = toEnvironmentPolicy(table);
  if (policy === undefined) throw new UsageError("'environment' takes inherit (all, core, safe, none), exclude, include_only, set and ignore_default_excludes");
  return policy;
}
