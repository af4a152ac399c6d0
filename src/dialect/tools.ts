/** The tools as a dialect sees them: looked up by name or by tag, however they were declared. */
import { defined, isObject, type Json, type JsonObject } from "../base/json.ts";
import type { CustomSpec, FunctionSpec, ToolSpec } from "../spec/model.ts";
import type { XmlMapping, XmlParameter } from "../spec/tool.ts";

export interface TextTool {
  /** The tool's name as it is written in the text. */
  readonly name: string;
  /** The name without its namespace, if `name` has one. */
  readonly plainName: string;
  readonly namespace?: string;
  readonly description: string;
  readonly parameters: JsonObject | undefined;
  readonly xml?: XmlMapping;
  readonly examples: readonly Json[];
  readonly custom: boolean;
  readonly grammar?: string;
}

/** What may be given as a tool: a declaration of any kind, or a bare name. */
export type ToolLike =
  | ToolSpec
  | string
  | {
      readonly name: string;
      readonly description?: string;
      readonly parameters?: unknown;
      readonly xml?: unknown;
      readonly examples?: readonly unknown[];
    };

export interface ToolTable {
  readonly list: readonly TextTool[];
  /** False: nobody said which tools there are, so any name is accepted. */
  readonly declared: boolean;
  find(name: string): TextTool | undefined;
  byTag(tag: string): TextTool | undefined;
}

/** The one parameter of a tool that takes plain text. */
export const customKey = "input";
const customSchema: JsonObject = {
  type: "object",
  properties: { [customKey]: { type: "string", description: "The raw text, exactly as the tool takes it." } },
  required: [customKey],
};

export function createToolTable(tools: readonly ToolLike[]): ToolTable {
  const list = tools.flatMap(toTextTools).filter((tool) => tool.name !== "");
  const names = new Map<string, TextTool>();
  const tags = new Map<string, TextTool>();
  for (const tool of list) {
    names.set(tool.name, tool);
    tags.set(tool.xml?.tag ?? tool.name, tool);
  }
  // A tag is also found by the tool's own name, unless another tool has that tag.
  for (const tool of list) if (!tags.has(tool.name)) tags.set(tool.name, tool);
  return {
    list,
    declared: list.length > 0,
    find: (name) => names.get(name) ?? list.find((tool) => tool.xml?.tag === name),
    byTag: (tag) => tags.get(tag),
  };
}

function toTextTools(tool: ToolLike): readonly TextTool[] {
  if (typeof tool === "string") return [plain({ name: tool })];
  if (!("kind" in tool)) return [plain(tool)];
  switch (tool.kind) {
    case "function":
      return [plain(tool)];
    case "custom":
      return [custom(tool)];
    case "namespace":
      return tool.tools.map((inner) => {
        const made = inner.kind === "custom" ? custom(inner) : plain(inner);
        return { ...made, name: `${tool.name}.${made.name}`, plainName: made.name, namespace: tool.name };
      });
    case "native":
      return tool.asFunction === undefined ? [] : [plain(tool.asFunction)];
  }
}

function plain(tool: FunctionSpec | Exclude<ToolLike, string | ToolSpec>): TextTool {
  const name = typeof tool.name === "string" ? tool.name : "";
  const xml = "xml" in tool ? toMapping(tool.xml) : undefined;
  const examples = "examples" in tool && Array.isArray(tool.examples) ? tool.examples.map(exampleInput) : [];
  return {
    name,
    plainName: name,
    description: tool.description ?? "",
    parameters: schemaOf(tool.parameters),
    ...defined({ xml }),
    examples,
    custom: false,
  };
}

/** A schema from outside is JSON, and only objects are schemas. The AI SDK wraps its own once more. */
function schemaOf(parameters: unknown): JsonObject | undefined {
  if (!isObject(parameters)) return undefined;
  const { jsonSchema } = parameters;
  return (isObject(jsonSchema) ? jsonSchema : parameters) as JsonObject;
}

/** An example is `{ input, note }` (as tools declare it) or the input itself. */
function exampleInput(example: unknown): Json {
  const input = isObject(example) && Object.hasOwn(example, "input") ? example["input"] : example;
  return input as Json; // Declared as JSON by the tool's own input type.
}

function custom(spec: CustomSpec): TextTool {
  return {
    name: spec.name,
    plainName: spec.name,
    description: spec.description,
    parameters: customSchema,
    examples: [],
    custom: true,
    ...(spec.format?.type === "grammar" ? { grammar: spec.format.definition } : {}),
  };
}

/** Takes `parameters`, and the other spelling (`mappings` with `param_name` and `node_type`). */
function toMapping(xml: unknown): XmlMapping | undefined {
  if (!isObject(xml)) return undefined;
  const tag = [xml["tag"], xml["tag_name"], xml["name"]].find((name) => typeof name === "string");
  const rows = [xml["parameters"], xml["mappings"]].find((list) => Array.isArray(list)) ?? [];
  const parameters = [
    ...rows.filter(isObject).map(toParameter),
    ...namesOf(xml["attributes"], "attribute"),
    ...namesOf(xml["elements"], "element"),
  ];
  return {
    ...(typeof tag === "string" ? { tag } : {}),
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(typeof xml["example"] === "string" ? { example: xml["example"] } : {}),
  };
}

function namesOf(list: unknown, node: "attribute" | "element"): readonly XmlParameter[] {
  return Array.isArray(list) ? list.filter((name) => typeof name === "string").map((name) => ({ name, node })) : [];
}

function toParameter(row: Record<string, unknown>): XmlParameter {
  const node = row["node"] ?? row["node_type"];
  const path = row["path"];
  return {
    name: String(row["name"] ?? row["param_name"] ?? ""),
    node: node === "attribute" || node === "content" || node === "text" ? node : "element",
    ...(typeof path === "string" ? { path } : {}),
    ...(row["required"] === false ? { required: false } : {}),
  };
}

/** The text a plain-text tool was given, from the JSON its dialect wrapped it in. */
export function unwrapCustom(args: string): string | undefined {
  let value: unknown;
  try {
    value = JSON.parse(args);
  } catch {
    return undefined; // Cut or broken: the call must not run.
  }
  if (!isObject(value)) return undefined;
  const texts = Object.values(value);
  const found = Object.hasOwn(value, customKey) ? value[customKey] : texts.length === 1 ? texts[0] : undefined;
  return typeof found === "string" ? found : undefined;
}
