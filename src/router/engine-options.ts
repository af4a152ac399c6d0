/**
 * What `createEngine` takes. The options are checked when the engine is made, so that a misspelled
 * word is an error and is not silently ignored.
 */
import type { Limits } from "../spec/capability.ts";
import { statSync } from "node:fs";
import { resolve } from "node:path";
import { defined } from "../base/json.ts";
import { checkOptions, checkShape, type Shape } from "../base/shape.ts";
import { distance, nearest } from "../base/text.ts";
import { matchName, ruleName } from "../gate/rules.ts";
import { approvalNames, sandboxNames, type ApprovalName, type PolicyNames, type SandboxName } from "../gate/modes.ts";
import { checkRules, engineGateShape, type GateOptions } from "../gate/options.ts";
import type { FillDefaults } from "../check/check.ts";
import type { ShapeOptions } from "../result/shape.ts";
import type { Budget } from "../result/truncate.ts";
import type { Telemetry } from "../result/telemetry.ts";
import { checkWanted } from "../registry/offer.ts";
import { offerShape, selectProfile, type OfferSettings } from "../registry/profile.ts";
import type { Registry } from "../registry/registry.ts";
import type { Approver } from "../spec/stages.ts";
import type { AnyTool, Logger } from "../spec/tool.ts";
import type { HostOptions } from "./host.ts";

/** Options of `createEngine`. */
export interface EngineOptions extends HostOptions {
  /** The tools that models may call. */
  readonly tools?: readonly AnyTool[];
  /** A registry of your own, instead of `tools`. */
  readonly registry?: Registry;
  /**
   * Any name of a mode: `never`, `on-request` (the default), `on-failure`, `unless-trusted`, `auto`,
   * `interactive`, `disabled`.
   */
  readonly approval?: ApprovalName;
  /** `read-only`, `workspace-write` (the default; also `restricted`), `full-access` (also `none`; the default under `auto`). */
  readonly sandbox?: SandboxName;
  /** Asked when policy says so. Left out: nobody can be asked, and such a call ends as `needs_approval`. */
  readonly approver?: Approver;
  /** Rules, hooks and everything else that the gate is made of. */
  readonly gate?: Partial<Omit<GateOptions, "settings" | "workspace" | "approver" | "emit" | "memory" | "book">>;
  /** How results are cut and laid out. */
  readonly result?: ShapeOptions;
  /**
   * Which built-in tools a model sees, and in which form: profile, features, ToolsConfig. Left out: what
   * the model's family was trained on.
   */
  readonly offer?: OfferSettings;
  /** Whatever your handlers need, by name: they find it in `ctx.service`. */
  readonly service?: Readonly<Record<string, unknown>>;
  /** Models that your handlers use, by name: they find them in `ctx.model`. */
  readonly model?: Readonly<Record<string, unknown>>;
  /** Told about every call; the default prints nothing. */
  readonly log?: Logger;
  /** Calls as OpenTelemetry metrics and spans (`createTelemetry`). */
  readonly telemetry?: Telemetry;
  /** How long a handler may take whose tool says nothing about it. Left out: ten minutes. */
  readonly timeoutMs?: number;
  /**
   * Whose schemas' `default` values are filled in when a call leaves a parameter out: those of tools
   * that run here (`own`), those of MCP servers' tools as well (`all`), or nobody's (`none`). Left out:
   * `own`.
   */
  readonly defaults?: FillDefaults;
}

const log: Shape = {
  methods: ["debug", "info", "warn", "error"],
  words: "a logger with debug, info, warn and error",
};

const engineShape: Shape = {
  fields: {
    tools: { list: "any" },
    registry: { methods: ["find", "bind"], words: "a registry, as createRegistry makes it" },
    approval: { oneOf: approvalNames },
    sandbox: { oneOf: sandboxNames },
    approver: { methods: ["ask"], words: "an approver: an object with a function 'ask'" },
    gate: engineGateShape,
    result: {
      fields: {
        budget: {
          fields: {
            maxTokens: { above: 0 },
            maxLines: { above: 0 },
            maxBytes: { above: 0 },
            maxMediaBytes: { above: 0 },
          } satisfies Record<keyof Budget, Shape>,
          noun: "option",
        },
        layout: { oneOf: ["plain", "sections", "codex", "codex-json"] },
        elevation: "function",
        spill: "function",
        checkOutput: "function",
        now: "function",
      } satisfies Record<keyof NonNullable<EngineOptions["result"]>, Shape>,
      noun: "option",
    },
    offer: offerShape,
    service: "any",
    model: "any",
    log,
    telemetry: { methods: ["record"], words: "what createTelemetry gives" },
    timeoutMs: { above: 0 },
    defaults: { oneOf: ["own", "all", "none"] },
    workspace: "string",
    cwd: "string",
    environment: {
      fields: {
        inherit: { oneOf: ["safe", "core", "all", "none"] },
        ignoreDefaultExcludes: "boolean",
        exclude: "strings",
        set: { each: "string" },
        includeOnly: "strings",
      } satisfies Record<keyof NonNullable<EngineOptions["environment"]>, Shape>,
      noun: "option",
    },
    launcher: "string",
    commandLimits: {
      fields: {
        timeoutMs: { above: -1 },
        processes: { above: -1 },
        memoryBytes: { above: -1 },
        fileBytes: { above: -1 },
        openFiles: { above: -1 },
        tempBytes: { above: -1 },
      } satisfies Record<keyof Limits, Shape>,
      noun: "limit",
    },
    maxCommands: { above: 0 },
    loginFiles: "boolean",
    spillDir: "string",
    keepBytes: { above: 0 },
    onFileChange: "function",
  } satisfies Record<keyof EngineOptions, Shape>,
  noun: "option",
};

/** Throws a TypeError that names what is wrong, where it is, and the nearest right word. */
export function checkEngineOptions(options: EngineOptions): void {
  checkOptions("createEngine", options, engineShape);
  checkRules("createEngine: gate.rules", options.gate?.rules ?? []);
  if (options.tools !== undefined && options.registry !== undefined)
    throw new TypeError("createEngine: give 'tools' or a 'registry', not both");
  checkOffer(options);
  const workspace = options.workspace ?? process.cwd();
  for (const [name, path] of [
    ["workspace", workspace],
    ["cwd", resolve(workspace, options.cwd ?? ".")],
  ] as const)
    if (!(statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false))
      throw new TypeError(`createEngine: '${name}' is not a folder: ${path}`);
}

/** Finds a profile that does not exist, an unknown policy, or two settings that contradict each other. */
function checkOffer({ offer = {}, approval, sandbox, ...options }: EngineOptions): void {
  try {
    selectProfile(offer);
    const { approval_policy: approvalPolicy, sandbox_policy: sandboxPolicy } = offer.config ?? {};
    const tools = options.tools ?? options.registry?.list() ?? [];
    checkWanted(offer.experimental_supported_tools, tools);
    checkWanted(offer.config?.experimental_supported_tools, tools);
    for (const [name, given, other, words] of [
      ["approval", approval, approvalPolicy, approvalNames],
      ["sandbox", sandbox, sandboxPolicy, sandboxNames],
    ] as const) {
      const problem =
        other === undefined ? undefined : checkShape(other, { oneOf: words }, ["config", `${name}_policy`]);
      if (problem) throw new TypeError(problem.message);
      if (other !== undefined && given !== undefined && given !== other)
        throw new TypeError(`'${name}' is '${given}' and config.${name}_policy is '${other}': give one of them`);
    }
  } catch (error) {
    if (error instanceof TypeError) throw new TypeError(`createEngine: offer: ${error.message}`, { cause: error });
    throw error;
  }
}

/** The modes as options and ToolsConfig give them, checked before. */
export function policyOf({ approval, sandbox, offer }: EngineOptions): PolicyNames {
  const { approval_policy: approvalPolicy, sandbox_policy: sandboxPolicy } = offer?.config ?? {};
  return defined({
    approval: approval ?? (approvalPolicy as ApprovalName | undefined),
    sandbox: sandbox ?? (sandboxPolicy as SandboxName | undefined),
  });
}

/** A name within this edit distance of a tool's name is taken to be a typing mistake. */
const slip = 2;

/**
 * Finds rules and hooks that name an unknown tool. A name that is almost a tool's name is a TypeError.
 * A name that resembles none is only a warning with the first call, because a file of rules serves
 * many engines and a tool may be added later.
 */
export function checkToolNames({ gate = {}, log }: EngineOptions, registry: Registry): { warn(): void } {
  const { rules = [], hooks = [] } = gate;
  const names = registry.list().map(({ name }) => name);
  const misspelt = (tool: string | undefined) => {
    if (tool === undefined || tool.includes("*") || names.includes(tool)) return undefined;
    // A call finds its tool under any spelling, but a rule matches only the tool's own name.
    return registry.find(tool)?.name ?? nearest(tool, names, 1).find((name) => distance(tool, name) <= slip);
  };
  const fail = (where: string, tool: string | undefined) => {
    const meant = misspelt(tool);
    if (meant !== undefined)
      throw new TypeError(`createEngine: ${where}: there is no tool '${tool}'; did you mean '${meant}'?`);
  };
  for (const [index, { tool, source }] of rules.entries()) if (source === undefined) fail(`gate.rules[${index}]`, tool);
  for (const [index, { tool }] of hooks.entries()) fail(`gate.hooks[${index}]`, tool);
  let warned = false;
  return {
    warn() {
      if (warned) return;
      warned = true;
      const tools = registry.list().map(({ name }) => name);
      for (const [index, rule] of rules.entries()) {
        const { tool, source } = rule;
        if (tool === undefined || tools.some((name) => matchName(name, tool))) continue;
        const where = source === undefined ? `gate.rules[${index}]` : `a rule of ${source}`;
        const message = `${where} (${ruleName(rule)}) matches no tool`;
        // A file of rules serves many folders, so it may well name a tool that this folder does not have.
        if (source !== undefined) log?.info(message);
        else if (log !== undefined) log.warn(message);
        else process.emitWarning(message);
      }
    },
  };
}
