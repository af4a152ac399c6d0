/** What `createEngine` takes, checked when the engine is made: a word nobody knows is a mistake, not a wish to ignore. */
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
  readonly tools?: readonly AnyTool[];
  /** A registry of your own, instead of `tools`. */
  readonly registry?: Registry;
  /** Every name of a mode is taken: `never`, `on-request` (the default), `on-failure`, `unless-trusted`, `auto`, `interactive`, `disabled`. */
  readonly approval?: ApprovalName;
  /** `read-only`, `workspace-write` (the default; also `restricted`), `full-access` (also `none`; the default under `auto`). */
  readonly sandbox?: SandboxName;
  /** Asked when policy says so. Left out: nobody is there, and the call ends as needs_approval. */
  readonly approver?: Approver;
  readonly gate?: Partial<Omit<GateOptions, "settings" | "workspace" | "approver" | "emit" | "memory" | "book">>;
  readonly result?: ShapeOptions;
  /** Which of the built-in tools a model sees, and in which form: profile, features, ToolsConfig. Left out: what its family was trained on. */
  readonly offer?: OfferSettings;
  readonly service?: Readonly<Record<string, unknown>>;
  readonly model?: Readonly<Record<string, unknown>>;
  /** Told about every call; the default prints nothing. */
  readonly log?: Logger;
  /** Calls as OpenTelemetry metrics and spans (`createTelemetry`). */
  readonly telemetry?: Telemetry;
  readonly timeoutMs?: number;
  /** Whose schemas' `default` values are filled in where a call leaves them out: those of tools that run here (`own`), of MCP servers' tools too (`all`), or nobody's. Left out: `own`. */
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
        layout: { oneOf: ["plain", "seed", "codex", "codex-json"] },
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

/** TypeError that names what is wrong, where, and the nearest right word. */
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

/** A profile that is not there, a policy that is none, or one that contradicts another. */
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

/** Closer than this, a name that no tool has is a slip of the pen. */
const slip = 2;

/**
 * Rules and hooks that name a tool nobody has. One that is almost the name of a tool is a TypeError; a rule from a file
 * speaks about many engines, and a tool may come later, so those only warn, with the first call.
 */
export function checkToolNames({ gate = {}, log }: EngineOptions, registry: Registry): { warn(): void } {
  const { rules = [], hooks = [] } = gate;
  const names = registry.list().map(({ name }) => name);
  const misspelt = (tool: string | undefined) => {
    if (tool === undefined || tool.includes("*") || names.includes(tool)) return undefined;
    // Calls find a tool under any spelling; rules match its own name.
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
        // A file of rules serves many folders: that a tool is not in this one is no mistake.
        if (source !== undefined) log?.info(message);
        else if (log !== undefined) log.warn(message);
        else process.emitWarning(message);
      }
    },
  };
}
