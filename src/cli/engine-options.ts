/** Turns settings into the options of an engine: policy, rules, sandbox, limits. */
import { join, resolve } from "node:path";
import { defined, isObject } from "../base/json.ts";
import type { Limits } from "../spec/capability.ts";
import { stateDir } from "../base/paths.ts";
import { createCommandHook, type Hook } from "../gate/hooks.ts";
import type { GateRecord } from "../gate/options.ts";
import { toSettings, type ApprovalName, type SandboxName } from "../gate/modes.ts";
import { defaultMask } from "../gate/paths.ts";
import type { Profile } from "../registry/profile.ts";
import type { ToolsConfig } from "../registry/tools-config.ts";
import type { EngineOptions } from "../router/engine.ts";
import { toEnvironmentPolicy } from "../runtime/environment.ts";
import type { NetworkGrant } from "../spec/access.ts";
import type { PolicySettings } from "../spec/stages.ts";
import { openAudit, type AuditEntry } from "../store/audit.ts";
import { webSearchService } from "../tools/web-search.ts";
import type { Config } from "./config/config.ts";
import { say, UsageError } from "./io.ts";
import { commandTools } from "./offered-tools.ts";
import { serverRules } from "./mcp/clients.ts";
import { readRules, saveAlways } from "./policy/rules.ts";
import { runLaterOptions } from "./policy/run-later.ts";
import { stateProblem } from "./state-folder.ts";
import { createWebSearch } from "./web-search.ts";

export interface EngineSettings {
  /** Where outputs that are too long for a model are kept. */
  readonly spillDir?: string;
  readonly profile?: Profile;
  /** Only what the profile shows, so that a model can call exactly what it was offered. */
  readonly only?: boolean;
  /** Where the engine's and the tools' warnings go; stderr if left out. */
  readonly warn?: (message: string) => void;
}

/** Turns settings into the options of an engine, with the built-in tools, the policy and its rules. */
export async function engineOptions(
  config: Config,
  cwd: string,
  env: NodeJS.ProcessEnv,
  { spillDir, profile, only, warn = (message) => say(`callgate: ${message}`) }: EngineSettings = {},
): Promise<EngineOptions> {
  const settings = readPolicy(config);
  const webSearch = createWebSearch(config, cwd);
  const problem = stateProblem(env);
  if (problem !== undefined) throw new UsageError(problem);
  const disabled = new Set(config.disabled_tools ?? []);
  const audit = openAudit({ path: join(stateDir(env), "audit.jsonl") });
  return {
    tools: (await commandTools(only ? profile : undefined)).filter(({ name }) => !disabled.has(name)),
    workspace: cwd,
    log: { debug() {}, info() {}, warn, error: warn },
    approval: settings.approval,
    sandbox: settings.sandbox,
    gate: {
      rules: [...(await readRules(cwd, env)), ...serverRules(config, cwd)],
      always: saveAlways(env),
      hooks: readHooks(config.hooks, cwd),
      held: config.held === "off" ? "off" : "asked",
      undo: config.undo === "all" ? "all" : "files",
      record: recordTogether((entries) => audit.append(...entries)),
      extraWritableRoots: (config.writable_roots ?? []).map((root) => resolve(cwd, root)),
      network: toNetwork(config.network),
      ...runLaterOptions(config, cwd, env),
      ...(config.masked_paths === undefined
        ? {}
        : { mask: [...defaultMask(env["HOME"] ?? "/"), ...config.masked_paths] }),
    },
    ...(webSearch === undefined ? {} : { service: { [webSearchService]: webSearch } }),
    ...(config.defaults === undefined ? {} : { defaults: config.defaults as NonNullable<EngineOptions["defaults"]> }),
    ...defined({ spillDir, keepBytes: config.tool_output_keep_bytes }),
    ...defined({ loginFiles: config.login_files, commandLimits: readLimits(config.command_limits) }),
    ...defined({ maxCommands: config.max_commands }),
    ...(config.environment === undefined ? {} : { environment: readEnvironment(config.environment) }),
    result: {
      ...(profile === undefined ? {} : { layout: profile.layout }),
      budget: {
        ...readTruncation(config.truncation_policy),
        ...defined({
          maxTokens: config.tool_output_tokens,
          maxLines: config.tool_output_lines,
          maxBytes: config.tool_output_bytes,
        }),
      },
    },
  };
}

/** `approval` and `sandbox`, or the same under their names in the table `tools`. */
export function readPolicy(config: Config): PolicySettings {
  const { approval_policy: approval, sandbox_policy: sandbox } = (config.tools ?? {}) as ToolsConfig;
  try {
    return toSettings(
      (config.approval ?? approval) as ApprovalName | undefined,
      (config.sandbox ?? sandbox) as SandboxName | undefined,
    );
  } catch (error) {
    if (error instanceof TypeError) throw new UsageError(error.message);
    throw error;
  }
}

function toNetwork(hosts: readonly string[] | undefined): NetworkGrant {
  if (hosts === undefined || hosts.length === 0) return "off";
  return hosts.includes("*") ? "on" : hosts;
}

/** `[command_limits]`, whose shape has been checked: names in snake case. */
function readLimits(table: Readonly<Record<string, unknown>> | undefined): Limits | undefined {
  if (table === undefined) return undefined;
  const number = (name: string) => (typeof table[name] === "number" ? table[name] : undefined);
  return defined({
    processes: number("processes"),
    memoryBytes: number("memory_bytes"),
    fileBytes: number("file_bytes"),
    openFiles: number("open_files"),
    tempBytes: number("temp_bytes"),
  });
}

/** `[truncation_policy]`, whose shape has been checked. */
function readTruncation(table: Readonly<Record<string, unknown>> = {}): { maxTokens?: number; maxLines?: number } {
  const { max_output_tokens: maxTokens, max_lines: maxLines } = table;
  return {
    ...(typeof maxTokens === "number" ? { maxTokens } : {}),
    ...(typeof maxLines === "number" ? { maxLines } : {}),
  };
}

function readEnvironment(table: Readonly<Record<string, unknown>>) {
  const policy = toEnvironmentPolicy(table);
  if (policy === undefined) {
    throw new UsageError(
      "'environment' takes inherit (all, core, safe, none), exclude, include_only, set and ignore_default_excludes",
    );
  }
  return policy;
}

/** `[[hooks.before]] command = ["prog"], tool = "shell*"`, and the same under `after`. */
function readHooks(table: Readonly<Record<string, unknown>> | undefined, cwd: string): readonly Hook[] {
  return (["before", "after"] as const).flatMap((when) => {
    const entries = table?.[when] ?? [];
    if (!Array.isArray(entries)) throw new UsageError(`'hooks.${when}' must be a list of tables`);
    return entries.map((entry: unknown) => {
      const command = isObject(entry) ? entry["command"] : undefined;
      if (!isObject(entry) || !Array.isArray(command) || !command.every((word) => typeof word === "string")) {
        throw new UsageError(`each of 'hooks.${when}' needs command = ["program", "argument", …]`);
      }
      const { tool, timeout_ms: timeoutMs, watches } = entry;
      return createCommandHook({
        argv: command,
        when,
        cwd,
        ...(typeof tool === "string" ? { tool } : {}),
        ...(typeof timeoutMs === "number" ? { timeoutMs } : {}),
        ...(watches === true ? { watches } : {}),
      });
    });
  });
}

/**
 * Decisions of one moment, such as those about eight files that are read together, are written together, each before
 * its call runs.
 */
function recordTogether(write: (entries: readonly AuditEntry[]) => void): (entry: GateRecord) => Promise<void> {
  let waiting: AuditEntry[] = [];
  let written: Promise<void> | undefined;
  const writeAll = () => {
    const entries = waiting;
    waiting = [];
    written = undefined;
    write(entries);
  };
  return (entry) => {
    waiting.push({ ...entry });
    // After all that is ready to run has run.
    written ??= new Promise<void>((resolve) => process.nextTick(resolve)).then(writeAll);
    return written;
  };
}
