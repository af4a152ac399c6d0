/** What `createEngine` takes, checked when the engine is made: a word nobody knows is a mistake, not a wish to ignore. */
import type { Limits } from "../spec/capability.ts";
import { statSync } from "node:fs";
import { resolve } from "node:path";
import { checkOptions, type Shape } from "../base/shape.ts";
import { distance, nearest } from "../base/text.ts";
import { matchName, ruleName } from "../gate/rules.ts";
import { approvalNames, sandboxNames, type ApprovalName, type SandboxName } from "../gate/modes.ts";
import { checkRules, engineGateShape, type GateOptions } from "../gate/options.ts";
import type { ShapeOptions } from "../result/shape.ts";
import type { Budget } from "../result/truncate.ts";
import type { Telemetry } from "../result/telemetry.ts";
import type { Registry } from "../registry/registry.ts";
import type { Approver } from "../spec/stages.ts";
import type { AnyTool, Logger } from "../spec/tool.ts";
import type { HostOptions } from "./host.ts";

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
  readonly service?: Readonly<Record<string, unknown>>;
  readonly model?: Readonly<Record<string, unknown>>;
  /** Told about every call; the default prints nothing. */
  readonly log?: Logger;
  /** Calls as OpenTelemetry metrics and spans (`createTelemetry`). */
  readonly telemetry?: Telemetry;
  readonly timeoutMs?: number;
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
        spill: "function",
        checkOutput: "function",
        now: "function",
      } satisfies Record<keyof NonNullable<EngineOptions["result"]>, Shape>,
      noun: "option",
    },
    service: "any",
    model: "any",
    log,
    telemetry: { methods: ["record"], words: "what createTelemetry gives" },
    timeoutMs: { above: 0 },
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
  const workspace = options.workspace ?? process.cwd();
  for (const [name, path] of [
    ["workspace", workspace],
    ["cwd", resolve(workspace, options.cwd ?? ".")],
  ] as const)
    if (!(statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false))
      throw new TypeError(`createEngine: '${name}' is not a folder: ${path}`);
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
        if (log !== undefined) log.warn(message);
        else if (source === undefined) process.emitWarning(message);
      }
    },
  };
}
