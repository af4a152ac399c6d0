/** The prompt that teaches a model a dialect: the form, the tools, a worked call for each, and the rules that matter. */
import { defined, isObject, type Json, type JsonObject } from "../../base/json.ts";
import type { Dialect } from "../dialect.ts";
import { toDialect } from "../dialects.ts";
import { createToolTable, customKey, type TextTool, type ToolLike } from "../tools.ts";
import { encodeCalls } from "./call.ts";
import { encodeResults } from "./result.ts";

/** Options of `teach`. */
export interface TeachOptions {
  /** At least one call is wanted: any, or the one of this name. */
  readonly required?: boolean | string;
  /** False: the model is told to write one call at a time. */
  readonly parallel?: boolean;
  /** The tools are offered as the API has them too: the model uses whichever form it likes. */
  readonly native?: boolean;
}

const sample: TextTool = {
  name: "example_tool",
  plainName: "example_tool",
  description: "",
  parameters: {
    type: "object",
    properties: { title: { type: "string" }, lines: { type: "string" }, count: { type: "integer" } },
  },
  examples: [],
  custom: false,
};

/** The text of a system prompt that tells a model which tools there are and how to write a call. */
export function teach(dialect: string | Dialect, tools: readonly ToolLike[], options: TeachOptions = {}): string {
  const spoken = toDialect(dialect);
  const list = createToolTable(tools).list.toSorted((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
  const example = { title: "first value", lines: "a value may\nspan several lines", count: 3 };
  return [
    "# Tools",
    "",
    options.native === true
      ? "You can call tools in two ways; use whichever you like. One is your own tool calls. The other is text in exactly this form (`example_tool` stands for any tool):"
      : "You can call tools. A call is text in exactly this form (`example_tool` stands for any tool):",
    "",
    writeExample(spoken, sample, example),
    "",
    ...(options.native === true
      ? ["Results come back to you as the results of your own tool calls do.", ""]
      : [
          "Its result will come back to you in this form:",
          "",
          encodeResults(spoken, [{ name: "example_tool", id: "call_0", text: "what the tool gave back", ok: true }]),
          "",
        ]),
    ...rules(spoken, options).map((rule) => `- ${rule}`),
    "",
    "The tools:",
    "",
    ...list.map((tool) => describe(spoken, tool)),
  ].join("\n");
}

function rules(dialect: Dialect, options: TeachOptions): readonly string[] {
  const raw = dialect.blocks[0]?.bodies[0]?.kind;
  const literal = raw === "tagged" || raw === "pairs" || raw === "codeblock" || dialect.tags !== undefined;
  return [
    ...(literal && dialect.tags?.entities !== true
      ? [
          "Write text values as they are: no escaping, no quotes around them, no CDATA. Write numbers, true/false, lists and objects as JSON.",
        ]
      : []),
    ...(dialect.trust === "taught"
      ? ["Never put a call in a code fence: what stands in one is taken as an example and is not run."]
      : []),
    options.parallel === false ? "Make one call at a time." : "Several calls may follow each other in one answer.",
    "After your last call, stop and wait. Never write a result yourself.",
    "Give every required parameter. Use only the tools listed here.",
    ...(options.required === true ? ["This answer must contain at least one call."] : []),
    ...(typeof options.required === "string" ? [`This answer must call ${options.required}.`] : []),
  ];
}

function describe(dialect: Dialect, tool: TextTool): string {
  const schema = tool.custom
    ? tool.grammar === undefined
      ? ""
      : `Its text must match this grammar:\n${tool.grammar}\n`
    : `Parameters: ${JSON.stringify(tool.parameters ?? { type: "object" })}\n`;
  return `## ${tool.name}\n${tool.description === "" ? "" : `${tool.description}\n`}${schema}Example:\n${exampleOf(dialect, tool)}\n`;
}

function exampleOf(dialect: Dialect, tool: TextTool): string {
  if (dialect.tags !== undefined && tool.xml?.example !== undefined) return tool.xml.example;
  const [own] = tool.examples;
  return writeExample(
    dialect,
    tool,
    isObject(own)
      ? own
      : tool.custom
        ? { [customKey]: typeof own === "string" ? own : "the text" }
        : exampleInput(tool),
  );
}

function writeExample(dialect: Dialect, tool: TextTool, input: JsonObject): string {
  const { name, parameters, xml, plainName, namespace } = tool;
  const call = { name: plainName, ...defined({ namespace }), arguments: JSON.stringify(input) };
  return encodeCalls(dialect, [call], [{ name, parameters, xml }]);
}

/** Values for the required parameters (all, if none is required), made from the schema alone. */
export function exampleInput(tool: Pick<TextTool, "parameters">): JsonObject {
  const value = exampleValue(tool.parameters ?? {}, 0);
  return isObject(value) ? value : {};
}

function exampleValue(schema: unknown, depth: number): Json {
  if (!isObject(schema) || depth > 6) return "value";
  for (const given of [schema["const"], schema["default"], first(schema["examples"]), first(schema["enum"])]) {
    if (given !== undefined) return given as Json; // A schema is JSON, and so is what stands in it.
  }
  const branch = first(schema["anyOf"]) ?? first(schema["oneOf"]) ?? first(schema["allOf"]);
  const type = Array.isArray(schema["type"]) ? schema["type"][0] : schema["type"];
  if (type === undefined && branch !== undefined) return exampleValue(branch, depth + 1);
  if (type === "object" || isObject(schema["properties"])) return exampleObject(schema, depth);
  if (type === "array") return [exampleValue(schema["items"], depth + 1)];
  if (type === "integer" || type === "number") return typeof schema["minimum"] === "number" ? schema["minimum"] : 1;
  if (type === "boolean") return true;
  return type === "null" ? null : "value";
}

function exampleObject(schema: Record<string, unknown>, depth: number): JsonObject {
  const properties = isObject(schema["properties"]) ? schema["properties"] : {};
  const required = Array.isArray(schema["required"])
    ? schema["required"].filter((name) => typeof name === "string" && Object.hasOwn(properties, name))
    : [];
  const names: readonly string[] = required.length > 0 ? required : Object.keys(properties);
  return Object.fromEntries(names.map((name) => [name, exampleValue(properties[name], depth + 1)]));
}

function first(list: unknown): unknown {
  return Array.isArray(list) ? list[0] : undefined;
}
