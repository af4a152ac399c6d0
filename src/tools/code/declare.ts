/**
 * Tools as TypeScript declarations made from their schemas, which a model reads before it writes a
 * script that calls them.
 */
import type { Json, JsonObject } from "../../index.ts";

export interface Declared {
  /** `server/tool`, or a plain name. */
  readonly name: string;
  readonly description: string;
  readonly parameters: JsonObject;
  readonly outputSchema?: JsonObject;
}

/** Types nested deeper than this become `unknown`. */
const maxDepth = 8;
const maxRemark = 200;

/** One `declare const tools` with a member for each tool. A server's tools are grouped under its name. */
export function toDeclarations(tools: readonly Declared[]): string {
  const own = tools.filter(({ name }) => !name.includes("/")).flatMap((tool) => member(tool, tool.name, "  "));
  const servers = new Map<string, string[]>();
  for (const tool of tools) {
    const slash = tool.name.indexOf("/");
    if (slash < 0) continue;
    const server = tool.name.slice(0, slash);
    const lines = servers.get(server) ?? [];
    lines.push(...member(tool, tool.name.slice(slash + 1), "    "));
    servers.set(server, lines);
  }
  const nested = [...servers].flatMap(([server, lines]) => [`  ${key(server)}: {`, ...lines, "  };"]);
  return ["declare const tools: {", ...own, ...nested, "};"].join("\n");
}

function member({ description, parameters, outputSchema }: Declared, name: string, indent: string): readonly string[] {
  const input = typeOf(parameters, parameters, 0);
  const isEmpty = input === "{}" || input === "Record<string, unknown>";
  const needsNone = isEmpty || !Array.isArray(parameters["required"]) || parameters["required"].length === 0;
  const output = outputSchema === undefined ? "string" : typeOf(outputSchema, outputSchema, 0);
  return [
    `${indent}/** ${remark(description, 2_000)} */`,
    `${indent}${key(name)}(input${needsNone ? "?" : ""}: ${input}): Promise<${output}>;`,
  ];
}

/** A JSON Schema as a type. Anything that cannot be expressed is `unknown`, and never a guess. */
function typeOf(schema: Json | undefined, root: JsonObject, depth: number): string {
  if (!isTable(schema) || depth > maxDepth) return schema === false ? "never" : "unknown";
  const inner = (one: Json | undefined) => typeOf(one, root, depth + 1);
  const { $ref: reference, const: only, enum: listed, anyOf, oneOf, allOf, type } = schema;
  if (typeof reference === "string") return inner(resolve(reference, root));
  if (only !== undefined) return JSON.stringify(only);
  if (Array.isArray(listed)) return union(listed.map((value) => JSON.stringify(value)));
  const choices = anyOf ?? oneOf;
  if (Array.isArray(choices)) return union(choices.map(inner));
  if (Array.isArray(allOf)) return allOf.map((one) => grouped(inner(one))).join(" & ") || "unknown";
  const types = Array.isArray(type) ? type : [type];
  return union(types.map((one) => plainType(one, schema, inner)));
}

function plainType(type: Json | undefined, schema: JsonObject, inner: (one: Json | undefined) => string): string {
  if (type === "integer") return "number";
  if (type === "string" || type === "number" || type === "boolean" || type === "null") return type;
  if (type === "array") return arrayType(schema, inner);
  return type === "object" || isTable(schema["properties"]) ? objectType(schema, inner) : "unknown";
}

function arrayType(schema: JsonObject, inner: (one: Json | undefined) => string): string {
  const { prefixItems, items } = schema;
  return Array.isArray(prefixItems) ? `[${prefixItems.map(inner).join(", ")}]` : `${grouped(inner(items))}[]`;
}

function objectType(schema: JsonObject, inner: (one: Json | undefined) => string): string {
  const { properties, required, additionalProperties: more } = schema;
  const needed = new Set(Array.isArray(required) ? required : []);
  const fields = Object.entries(isTable(properties) ? properties : {}).map(([name, one]) => {
    const words = isTable(one) && typeof one["description"] === "string" ? remark(one["description"], maxRemark) : "";
    return `${words === "" ? "" : `/** ${words} */ `}${key(name)}${needed.has(name) ? "" : "?"}: ${inner(one)}`;
  });
  if (fields.length > 0) return `{ ${fields.join("; ")} }`;
  return isTable(more) ? `Record<string, ${inner(more)}>` : more === false ? "{}" : "Record<string, unknown>";
}

function union(types: readonly string[]): string {
  const all = [...new Set(types)];
  return all.includes("unknown") || all.length === 0 ? "unknown" : all.join(" | ");
}

function grouped(type: string): string {
  return /[|&] /.test(type) && !type.startsWith("{") ? `(${type})` : type;
}

/** Follows a pointer within the schema itself. Undefined if it leads elsewhere. */
function resolve(reference: string, root: JsonObject): Json | undefined {
  if (!reference.startsWith("#/")) return reference === "#" ? root : undefined;
  let at: Json | undefined = root;
  for (const word of reference.slice(2).split("/")) {
    const name = word.replaceAll("~1", "/").replaceAll("~0", "~");
    at = isTable(at) && Object.hasOwn(at, name) ? at[name] : undefined;
  }
  return at;
}

/** Makes the text one line that cannot end the comment. */
function remark(text: string, most: number): string {
  const line = text.replaceAll(/\s+/g, " ").replaceAll("*/", "* /").trim();
  return line.length > most ? `${line.slice(0, most)}…` : line;
}

function key(name: string): string {
  return /^[A-Za-z_$][\w$]*$/.test(name) ? name : JSON.stringify(name);
}

function isTable(value: Json | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
