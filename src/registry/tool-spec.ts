/** A tool as it is described to a model: in a neutral form, before any wire's and any provider's rules. */
import { isObject, type Json, type JsonObject } from "../base/json.ts";
import { checkOptions, optionsShape } from "../base/shape.ts";
import { nearest } from "../base/text.ts";
import { isFreeform, type Freeform } from "../spec/freeform.ts";
import type { CustomSpec, FunctionSpec, ToolSpec } from "../spec/model.ts";
import { normalizeSchema, type SchemaTarget } from "../schema/normalize.ts";
import { toSchema } from "../schema/schema.ts";
import type { AnyTool, Situation } from "../spec/tool.ts";

/** The situation for descriptions that are asked for outside a session. It promises nothing. */
const nowhere: Situation = {
  workspace: ".",
  cwd: ".",
  sandbox: "workspace-write",
  writableRoots: [],
  network: "off",
  canEscalate: false,
  platform: "linux",
};

export function describeTool(tool: AnyTool, situation: Situation = nowhere): string {
  return typeof tool.description === "function" ? tool.description(situation) : tool.description;
}

/** The input as JSON Schema. A freeform tool's input is one required string. */
export function functionParameters(tool: Pick<AnyTool, "input">): JsonObject {
  if (!isFreeform(tool.input)) return toSchema(tool.input).json;
  const name = tool.input.label ?? "input";
  return {
    type: "object",
    properties: { [name]: { type: "string", description: "The raw text." } },
    required: [name],
    additionalProperties: false,
  };
}

/** A tool as a Chat Completions function. */
export interface OpenapiSchema {
  readonly type: "function";
  readonly function: { readonly name: string; readonly description: string; readonly parameters: JsonObject };
}

/** Options of `toToolSpecs`. */
export interface SpecOptions {
  /** Which tools, by name. Left out: all. */
  readonly only?: readonly string[];
  /** What descriptions may depend on. Left out: the engine's own situation, or one that promises nothing. */
  readonly situation?: Situation;
  /** False: freeform tools become functions with one string. */
  readonly custom?: boolean;
  /** False: provider-native tools are left out. */
  readonly native?: boolean;
  /** True: parameters that few models need are left out. */
  readonly short?: boolean;
  /** Which of a tool's other forms is used, by the tool's name. */
  readonly forms?: Readonly<Record<string, string>>;
  /** The target that schemas are made to fit, before any wire's own rules. */
  readonly normalize?: SchemaTarget;
  /**
   * The services that the host offers. A provider-native tool that needs one of them to run here has no
   * function form without it.
   */
  readonly services?: readonly string[];
  /**
   * Provider-native tools that a service of the host can run are described as functions, so that the
   * service runs them.
   */
  readonly preferServices?: boolean;
}

/** An engine, or one of its conversations, as a source of tools. */
export interface ToolSource {
  readonly registry: { list(): readonly AnyTool[] };
  situation(): Situation;
}

function toToolSpec(given: AnyTool, situation: Situation = nowhere, options: SpecOptions = {}): ToolSpec {
  const tool = inForm(given, options.forms ?? {});
  const description = describeTool(tool, situation);
  const unlisted = tool.unlisted?.(situation, options.short === true) ?? [];
  const asFunction = () => toFunction(tool, description, unlisted, options.normalize);
  if (tool.native && options.native !== false) {
    const { type, options: fields } = tool.native;
    const service = tool.metadata?.["needsService"];
    const isRunHere = typeof service !== "string" || (options.services ?? []).includes(service);
    if (options.preferServices === true && typeof service === "string" && isRunHere) return asFunction();
    return {
      kind: "native",
      type,
      name: tool.name,
      ...(fields ? { options: fields } : {}),
      ...(isRunHere ? { asFunction: asFunction() } : {}),
    };
  }
  return isFreeform(tool.input) && options.custom !== false ? toCustom(tool, tool.input, description) : asFunction();
}

/** The tool in the form that the profile wants. Calls of every form reach the same handler. */
function inForm(tool: AnyTool, wanted: Readonly<Record<string, string>>): AnyTool {
  const name = Object.hasOwn(wanted, tool.name) ? wanted[tool.name]! : undefined;
  if (name === undefined || tool.forms === undefined || !Object.hasOwn(tool.forms, name)) return tool;
  const { examples: _examples, ...rest } = tool;
  return { ...rest, ...tool.forms[name] };
}

function toFunction(
  tool: AnyTool,
  description: string,
  unlisted: readonly string[],
  target: SchemaTarget | undefined,
): FunctionSpec {
  const output = tool.output === undefined || isFreeform(tool.output) ? undefined : toSchema(tool.output).json;
  const parameters = withoutProperties(functionParameters(tool), unlisted);
  return {
    kind: "function",
    name: tool.name,
    description: isFreeform(tool.input) ? withGrammar(description, tool.input) : description,
    parameters: target === undefined ? parameters : normalizeSchema(parameters, target).schema,
    ...(output ? { outputSchema: output } : {}),
    ...(tool.xml ? { xml: tool.xml } : {}),
    ...(tool.origin ? { server: tool.origin.server } : {}),
    // An example has the tool's own input type, which is JSON, because it is what a model would send.
    ...(tool.examples ? { examples: tool.examples.map(({ input }) => input as Json) } : {}),
  };
}

function withoutProperties(schema: JsonObject, names: readonly string[]): JsonObject {
  const { properties } = schema;
  if (names.length === 0 || !isObject(properties)) return schema;
  const kept = Object.entries(properties).filter(([name]) => !names.includes(name));
  return { ...schema, properties: Object.fromEntries(kept) };
}

/** If the wire has no grammars, the model reads the grammar in the description. */
function withGrammar(description: string, { syntax, definition }: Freeform): string {
  return definition === undefined
    ? description
    : `${description}\n\nThe text follows this ${syntax === "lark" ? "Lark grammar" : "regular expression"}:\n${definition}`;
}

function toCustom(tool: AnyTool, { syntax, definition }: Freeform, description: string): CustomSpec {
  const format =
    syntax && definition !== undefined
      ? ({ type: "grammar", syntax, definition } as const)
      : ({ type: "text" } as const);
  return { kind: "custom", name: tool.name, description, format };
}

const specShape = optionsShape<SpecOptions>({
  only: "strings",
  situation: "any",
  custom: "boolean",
  native: "boolean",
  short: "boolean",
  forms: "table",
  normalize: "string",
  services: "strings",
  preferServices: "boolean",
});

/**
 * The tools of an engine, or a list of tools, as they are described to a model. They are sorted by
 * name, so that the same tools give the same bytes and prompt caches hit. Throws a TypeError for a
 * name in `only` that no tool has.
 */
export function toToolSpecs(from: ToolSource | readonly AnyTool[], options: SpecOptions = {}): readonly ToolSpec[] {
  checkOptions("toToolSpecs", options, specShape);
  const all = "registry" in from ? from.registry.list() : from;
  const situation = options.situation ?? ("registry" in from ? from.situation() : undefined);
  return chosen(all, options.only)
    .toSorted((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0))
    .map((tool) => toToolSpec(tool, situation, options));
}

function chosen(tools: readonly AnyTool[], only: readonly string[] | undefined): readonly AnyTool[] {
  if (only === undefined) return tools;
  const names = tools.map(({ name }) => name);
  const unknown = only.find((name) => !names.includes(name));
  if (unknown === undefined) return tools.filter(({ name }) => only.includes(name));
  const [guess] = nearest(unknown, names, 1);
  throw new TypeError(`there is no tool '${unknown}'${guess === undefined ? "" : `; did you mean '${guess}'?`}`);
}
