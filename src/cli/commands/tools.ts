import { join } from "node:path";
import { buildCommand, buildRouteMap } from "@stricli/core";
import { defined, type JsonObject } from "../../base/json.ts";
import { stateDir } from "../../base/paths.ts";
import { createEngine } from "../../router/engine.ts";
import { addToolSearch } from "../../registry/search.ts";
import { describeDropped } from "../../session/notes.ts";
import type { FunctionSpec, ToolSpec } from "../../spec/model.ts";
import type { Approver } from "../../spec/stages.ts";
import { normalizeSchema, schemaTargets } from "../../schema/normalize.ts";
import { loadCodec } from "../../model/provider-model.ts";
import { isWireName } from "../../wire/codec.ts";
import type { Config } from "../config/config.ts";
import { engineOptions } from "../engine-options.ts";
import { toolFlags, type ToolFlags, toggle } from "../config/flags.ts";
import { exitCodes, print, printJson, runCommand, UsageError } from "../io.ts";
import { chooseProfile, deferForModel, offerToModel } from "../offered-tools.ts";
import { loadOwnTools } from "../own-tools.ts";
import { prepare } from "../prepare.ts";
import { chooseProvider } from "../select-model.ts";
import { firstLine } from "../chat/timeline.ts";

interface ToolsFlags extends ToolFlags {
  readonly json?: boolean;
}

const flags = {
  ...toolFlags,
  json: toggle("as JSON, as the wire has it"),
} as const;

const list = buildCommand({
  docs: { brief: "list the tools as a model gets them: --wire responses, chat, messages, gemini, mcp or text:DIALECT" },
  parameters: { flags },
  func: (given: ToolsFlags) => runCommand(() => show(given)),
});

interface LintFlags extends ToolsFlags {
  readonly maxBytes?: number;
}

const lint = buildCommand({
  docs: { brief: "check every tool against the rules of every provider" },
  parameters: {
    flags: {
      ...flags,
      maxBytes: {
        kind: "parsed",
        parse: Number,
        optional: true,
        brief: "cut schemas to this size and list what was cut (5000 is a good one)",
        placeholder: "N",
      },
    },
  },
  func: (given: LintFlags) => runCommand(() => check(given)),
});

export const command = buildRouteMap({
  routes: { list, lint },
  defaultCommand: "list",
  docs: { brief: "list the tools as a model gets them; 'tools lint' checks them" },
});

/** No request waits for this list, so a new server gets more time to be on it. */
const newServerWaitMs = 1_500;

interface Offer {
  readonly config: Config;
  /** Every tool, including those of servers. */
  readonly specs: readonly ToolSpec[];
  /** What the model is offered: the same, or without the tools that it has to search for. */
  readonly told: readonly ToolSpec[];
  /** The wire that was named, or the provider's, or the profile's; otherwise one that can carry every tool. */
  readonly wire: string;
  /** The dialect taught beside it, if the model may use either. */
  readonly taught?: string;
}

/** The list is that of a session in which a person can be asked. */
const someone: Approver = { ask: async () => undefined };

async function offer(given: ToolsFlags): Promise<Offer> {
  const { cwd, config } = await prepare(given);
  const profile = await chooseProfile(config, config.model);
  const own = profile.form.startsWith("text:") ? profile.form : undefined;
  const wire =
    (config.wire === "mcp" ? undefined : own) ??
    config.wire ??
    (config.provider === undefined ? "responses" : chooseProvider(config).provider.wire);
  const engine = createEngine({
    // Nothing is called, so nothing is kept there.
    ...(await engineOptions(config, cwd, process.env, {
      profile,
      only: true,
      spillDir: join(stateDir(process.env), "outputs"),
    })),
    approver: someone,
  });
  const loaded = await loadOwnTools(engine, config, cwd, { waitMs: newServerWaitMs });
  const provider = chooseProvider(config).name;
  const list = offerToModel(engine, profile, config, provider);
  const specs = list();
  if (loaded.mcp !== undefined) addToolSearch(engine.registry);
  const told = deferForModel(list, config, { provider, wire, model: config.model ?? "" })();
  await loaded.close();
  await engine.close();
  const taught = /^native\+text:(.+)$/.exec(profile.form)?.[1];
  return { config, specs, told, wire, ...defined({ taught }) };
}

async function show(given: ToolsFlags): Promise<void> {
  const { config, specs, told, wire, taught } = await offer(given);
  if (wire.startsWith("text:")) return showText(told, wire.slice("text:".length), given.json);
  if (wire === "mcp") return showTools(specs.flatMap(toMcp), given.json);
  if (!isWireName(wire))
    throw new UsageError(`there is no wire '${wire}': responses, chat, messages, gemini, mcp or text:DIALECT`);
  const { provider } = chooseProvider(config, wire);
  const options = { target: provider.target, ...(provider.quirks ? { quirks: provider.quirks } : {}) };
  const codec = await loadCodec[wire]();
  const { body, dropped } = codec.encodeRequest({ model: config.model ?? "model", input: [], tools: told }, options);
  // Whatever a wire makes of the list, its field is a list of objects, or is left out when there is none.
  const tools = (body["tools"] as readonly JsonObject[] | undefined) ?? [];
  showTools(given.json ? tools : tools.flatMap(declarations), given.json);
  if (given.json) return;
  const searched = specs.filter(({ name }) => !told.some((spec) => spec.name === name)).length;
  if (searched > 0) print(`  ${searched} more tools of servers are found by tool_search`);
  for (const line of describeDropped(dropped.map((one) => ({ type: "tool.dropped", ...one })))) print(`  ✗ ${line}`);
  if (taught === undefined) return;
  print("\nThe model may write a call as text too. It is taught this:\n");
  await showText(told, taught);
}

async function showText(specs: readonly ToolSpec[], dialect: string, json = false): Promise<void> {
  const { findDialect, teach } = await import("../../dialect/index.ts");
  const { unknownDialect } = await import("../../dialect/dialects.ts");
  if (findDialect(dialect) === undefined)
    throw new UsageError(`${unknownDialect(dialect)} ('callgate dialects' lists them)`);
  const prompt = teach(dialect, specs.flatMap(flat));
  if (json) printJson({ dialect, prompt });
  else print(prompt);
}

function showTools(tools: readonly JsonObject[], json = false): void {
  if (json) return printJson(tools);
  for (const tool of tools)
    print(
      `${nameOf(tool).padEnd(28)} ${String(JSON.stringify(tool).length).padStart(6)} bytes  ${firstLine(descriptionOf(tool), 100)}`,
    );
  print(`${tools.length} tools, ${JSON.stringify(tools).length} bytes`);
}

/** Function and custom tools, those of a namespace included. */
function flat(spec: ToolSpec) {
  if (spec.kind === "namespace") return [...spec.tools];
  if (spec.kind === "native") return spec.asFunction ? [spec.asFunction] : [];
  return [spec];
}

function toMcp(spec: ToolSpec): readonly JsonObject[] {
  return flat(spec).map((tool) => ({
    name: tool.name,
    description: tool.description,
    inputSchema:
      tool.kind === "function"
        ? tool.parameters
        : { type: "object", properties: { input: { type: "string" } }, required: ["input"] },
  }));
}

/** Gemini puts all functions into one entry. Its own tools are keys without a name. */
function declarations(entry: JsonObject): readonly JsonObject[] {
  const functions = entry["functionDeclarations"];
  return Array.isArray(functions) ? (functions as readonly JsonObject[]) : [entry];
}

function nameOf(tool: JsonObject): string {
  const inner = tool["function"] as JsonObject | undefined;
  return String(tool["name"] ?? inner?.["name"] ?? tool["type"] ?? Object.keys(tool)[0] ?? "");
}

function descriptionOf(tool: JsonObject): string {
  const inner = tool["function"] as JsonObject | undefined;
  return String(tool["description"] ?? inner?.["description"] ?? "");
}

/** Fails for a tool whose lowered schema a provider would refuse. What had to be changed is listed. */
async function check(given: LintFlags): Promise<number> {
  const { maxBytes } = given;
  if (maxBytes !== undefined && !(maxBytes > 0)) throw new UsageError("--max-bytes is a number of bytes above 0");
  const size = maxBytes === undefined ? {} : { maxBytes };
  const { checkSchema } = await import("../../schema/normalize/check-schema.ts");
  const tools = (await offer(given)).specs
    .flatMap(flat)
    .filter((spec): spec is FunctionSpec => spec.kind === "function");
  const rows = tools.flatMap((tool) =>
    schemaTargets.map((target) => {
      const { schema, changes } = normalizeSchema(tool.parameters, target, size);
      return { tool: tool.name, target, problems: checkSchema(schema, target), changes };
    }),
  );
  const bad = rows.filter(({ problems }) => problems.length > 0);
  if (given.json) printJson(rows);
  else {
    for (const { tool, target, changes } of rows.filter((row) => row.changes.length > 0))
      print(
        `${tool} for ${target}: ${changes.length} ${changes.length === 1 ? "change" : "changes"} (${firstLine(changes.map(({ path, what }) => `${path || "/"} ${what}`).join("; "), 120)})`,
      );
    for (const { tool, target, problems } of bad) print(`✗ ${tool} for ${target}: ${problems.join("; ")}`);
    print(
      `${tools.length} tools, ${schemaTargets.length} targets: ${bad.length === 0 ? "all fit" : `${bad.length} do not fit`}`,
    );
  }
  return bad.length === 0 ? exitCodes.done : exitCodes.failed;
}
