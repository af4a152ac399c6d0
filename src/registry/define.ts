/** Declares a tool, and finds everything that is wrong with a declaration before the tool is ever called. */
import { isObject, type JsonObject } from "../base/json.ts";
import { checkShape, type Shape } from "../base/shape.ts";
import { distance, nearest } from "../base/text.ts";
import { accessShape } from "../spec/access.ts";
import { findFaults } from "../schema/fault.ts";
import { isFreeform } from "../spec/freeform.ts";
import type { InputSchema, JsonSchemaLiteral } from "../spec/infer.ts";
import { nameFault } from "../spec/name.ts";
import { isPair, standardOf, toSchema } from "../schema/schema.ts";
import type { AnyTool, Tool, ToolContext, ToolOutput } from "../spec/tool.ts";

/**
 * Declares a tool. Returns its argument; the handler's input type is inferred from `input`. A
 * declaration that could never work is a TypeError here, instead of a failed call later.
 */
export function defineTool<const S extends InputSchema>(tool: Tool<S>): Tool<S> {
  checkDeclaration(tool);
  return tool;
}

/** A tool as a plain object: `inputSchema` and `handler(args, ctx)`. */
export interface ToolObject {
  readonly name: string;
  readonly description: string;
  readonly inputSchema?: JsonSchemaLiteral;
  readonly handler: (
    args: never,
    ctx: ToolContext & { readonly logger: ToolContext["log"] },
  ) => ToolOutput | Promise<ToolOutput>;
  readonly metadata?: JsonObject;
}

/** Makes a tool from an object with `inputSchema` and `handler`. Every other field of a tool may be given as well. */
export function fromObject(
  object: ToolObject & Partial<Omit<AnyTool, "name" | "description" | "input" | "run" | "metadata">>,
): AnyTool {
  if (typeof object.handler !== "function")
    throw new TypeError(`tool '${String(object.name)}': handler is not a function`);
  const { inputSchema, handler, ...rest } = object;
  return checkDeclaration({
    ...toolFields(rest, object.name),
    input: inputSchema ?? { type: "object", properties: {} },
    // `this` stays the object, as its author expects; `ctx.logger` is another name for `ctx.log`.
    run: (input: never, ctx: ToolContext) => handler.call(object, input, withLogger(ctx)),
  });
}

/** The object may hold more fields, for its handler's `this`. A name that is almost a tool's field was meant as one. */
function toolFields<Rest extends { readonly name: string; readonly description: string }>(
  rest: Rest,
  name: string,
): Rest {
  const known = Object.keys(toolShape.fields);
  const own = Object.keys(rest).filter((key) => !isToolField(key));
  for (const key of own) {
    const meant = nearest(key, known, 1).find((field) => distance(key, field) <= 2);
    if (meant !== undefined)
      throw new TypeError(`tool '${name}': there is no field '${key}'; did you mean '${meant}'?`);
  }
  // Only fields that a tool does not have were left out, so the type still holds.
  return Object.fromEntries(Object.entries(rest).filter(([key]) => !own.includes(key))) as Rest;
}

export function isToolField(key: string): boolean {
  return Object.hasOwn(toolShape.fields, key);
}

/** Inherits from `ctx`, so that its capabilities keep working. */
function withLogger(ctx: ToolContext): ToolContext & { readonly logger: ToolContext["log"] } {
  return Object.create(ctx, { logger: { value: ctx.log, enumerable: true } });
}

const toolShape = {
  fields: {
    name: "string",
    description: { either: ["string", "function"], words: "text, or a function that returns it" },
    input: "any",
    unlisted: "function",
    forms: { each: { fields: { description: "any", input: "any" }, required: ["input"], noun: "field" } },
    offered: { oneOf: ["always", "by-profile"] },
    elevation: "string",
    cache: { fields: { ttlMs: { above: 0 }, key: "function" }, noun: "field" },
    output: "any",
    access: { either: ["function", accessShape], words: "what a call touches, or a function that says so" },
    parallel: "boolean",
    mutates: { either: ["boolean", "function"], words: "true, false or a function" },
    repeatable: "boolean",
    rehearsable: "boolean",
    timeoutMs: { above: 0 },
    xml: "table",
    examples: { list: { fields: { input: "any", note: "string" }, required: ["input"], noun: "field" } },
    native: { fields: { type: "string", options: "table" }, required: ["type"], noun: "field" },
    aliases: "strings",
    group: "string",
    standsFor: "function",
    origin: { fields: { server: "string", name: "string" }, required: ["server", "name"], noun: "field" },
    metadata: "table",
    run: "function",
  } satisfies Record<keyof AnyTool, Shape>,
  noun: "field",
} as const;

/** Returns the tool, or throws a TypeError with one sentence. Used wherever a tool enters, typed or not. */
export function checkDeclaration<T extends AnyTool>(tool: T): T {
  if (!isObject(tool)) throw new TypeError("a tool is an object with name, description, input and run");
  const foreign = foreignTool(tool);
  if (foreign !== undefined) throw new TypeError(foreign);
  const fault = nameFault(tool.name);
  if (fault) throw new TypeError(`tool ${JSON.stringify(tool.name) ?? "without a name"}: ${fault}`);
  const wrong = (what: string) => new TypeError(`tool '${tool.name}': ${what}`);
  if (typeof tool.description !== "string" && typeof tool.description !== "function")
    throw wrong("description must be text, or a function that returns it");
  if (typeof tool.run !== "function") throw wrong("run is not a function");
  const problem = checkShape(tool, toolShape, []);
  if (problem) throw wrong(problem.message);
  for (const key of ["input", "output"] as const) {
    const reason = tool[key] === undefined && key === "output" ? undefined : schemaFault(tool[key], tool.origin);
    if (reason) throw wrong(`${key}: ${reason}`);
  }
  return tool;
}

/** Recognises tools of other libraries by fields that ours do not have, and names the function that converts them. */
function foreignTool(tool: Record<string, unknown>): string | undefined {
  if (typeof tool["run"] === "function") return undefined;
  const use = (library: string, how: string) => `this is a tool of ${library}: use ${how} of 'callgate/from'`;
  const has = (key: string, type: string) => typeof tool[key] === type;
  if (has("execute", "function")) return use("the AI SDK", "fromAiSdk(name, tool)");
  if (has("invoke", "function"))
    return has("parameters", "object")
      ? use("OpenAI Agents", "fromAgents(tool)")
      : use("LangChain", "fromLangChain(tool)");
  if (has("handler", "function")) return "a tool with 'inputSchema' and 'handler' is made with fromObject(tool)";
  if (has("inputSchema", "object")) return use("the AI SDK", "fromAiSdk(name, tool)");
  if (has("parameters", "object") || has("function", "object"))
    return use("OpenAI's APIs, without a handler", "fromOpenAi(tool, run)");
  return undefined;
}

function schemaFault(input: unknown, origin: AnyTool["origin"]): string | undefined {
  if (isFreeform(input)) return undefined;
  if (standardOf(input)) {
    try {
      toSchema(input as InputSchema);
      return undefined;
    } catch (error) {
      if (error instanceof TypeError) return error.message;
      throw error;
    }
  }
  if (isObject(input) && isObject(input["jsonSchema"]) && "validate" in input)
    return "this is a schema of the AI SDK: pass its 'jsonSchema', or the whole tool to fromAiSdk of 'callgate/from'";
  const json = isPair(input) ? input.json : input;
  if (typeof json === "function" || looksLikeLibrary(json)) {
    return "this schema library does not follow Standard Schema; pass { validate: schema, json: itsJsonSchema } instead";
  }
  if (!isObject(json)) return "must be a Standard Schema, a JSON Schema object or freeform()";
  // Users cannot mend a server's schema, so what is wrong in it is ignored when arguments are checked.
  if (origin !== undefined) return undefined;
  if (sound.has(json)) return undefined;
  const [fault] = findFaults(json as JsonObject);
  if (fault !== undefined) return `${fault.what} (at ${fault.at.join("/")})`;
  sound.add(json);
  return undefined;
}

/** Schemas without a fault: a tool is looked at when it is defined, and again by every engine that gets it. */
const sound = new WeakSet<object>();

/** Recognises old versions of schema libraries: their objects have methods, and JSON has none. */
function looksLikeLibrary(value: unknown): boolean {
  return (
    isObject(value) && ["parse", "safeParse", "_parse", "_run", "~run"].some((key) => typeof value[key] === "function")
  );
}
