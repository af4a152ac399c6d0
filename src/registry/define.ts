/** Declaring a tool, and everything that is wrong with a declaration before it is ever called. */
import { isObject, type JsonObject } from "../base/json.ts";
import { findFaults } from "../schema/fault.ts";
import { isFreeform } from "../spec/freeform.ts";
import type { InputSchema, JsonSchemaLiteral } from "../spec/infer.ts";
import { nameFault } from "../spec/name.ts";
import { isPair, standardOf, toSchema } from "../schema/schema.ts";
import type { AnyTool, Tool, ToolContext, ToolOutput } from "../spec/tool.ts";

/**
 * Declares a tool. Returns its argument; the handler's input type is inferred from `input`.
 * A declaration that could never work is a TypeError here, not a failed call later.
 */
export function defineTool<const S extends InputSchema>(tool: Tool<S>): Tool<S> {
  checkDeclaration(tool);
  return tool;
}

/** The object form of seed 002: `inputSchema` and `handler(args, ctx)`. */
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

/** A tool from the object form; every other field of a tool may stand beside it. */
export function fromObject(
  object: ToolObject & Partial<Omit<AnyTool, "name" | "description" | "input" | "run" | "metadata">>,
): AnyTool {
  if (typeof object.handler !== "function")
    throw new TypeError(`tool '${String(object.name)}': handler is not a function`);
  const { inputSchema, handler, ...rest } = object;
  return checkDeclaration({
    ...rest,
    input: inputSchema ?? { type: "object", properties: {} },
    // `this` stays the object, as its author wrote it; `ctx.logger` is the seed's name for `ctx.log`.
    run: (input: never, ctx: ToolContext) => handler.call(object, input, withLogger(ctx)),
  });
}

/** Inherits, so that the capabilities of `ctx` stay what they are. */
function withLogger(ctx: ToolContext): ToolContext & { readonly logger: ToolContext["log"] } {
  return Object.create(ctx, { logger: { value: ctx.log, enumerable: true } });
}

/** Throws TypeError with one sentence; returns the tool. Used wherever a tool enters, typed or not. */
export function checkDeclaration<T extends AnyTool>(tool: T): T {
  if (!isObject(tool)) throw new TypeError("a tool is an object with name, description, input and run");
  const fault = nameFault(tool.name);
  if (fault) throw new TypeError(`tool ${JSON.stringify(tool.name) ?? "without a name"}: ${fault}`);
  const wrong = (what: string) => new TypeError(`tool '${tool.name}': ${what}`);
  if (typeof tool.description !== "string" && typeof tool.description !== "function")
    throw wrong("description must be text, or a function that returns it");
  if (typeof tool.run !== "function") throw wrong("run is not a function");
  const { origin } = tool;
  if (origin !== undefined && !(typeof origin?.server === "string" && typeof origin.name === "string"))
    throw wrong("origin is { server, name }, the MCP server it runs on and its name there; leave it out otherwise");
  if (tool.timeoutMs !== undefined && !(tool.timeoutMs > 0)) throw wrong("timeoutMs must be more than 0");
  for (const key of ["input", "output"] as const) {
    const reason = tool[key] === undefined && key === "output" ? undefined : schemaFault(tool[key], tool.origin);
    if (reason) throw wrong(`${key}: ${reason}`);
  }
  return tool;
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
  const json = isPair(input) ? input.json : input;
  if (typeof json === "function" || looksLikeLibrary(json)) {
    return "this schema library does not follow Standard Schema; pass { validate: schema, json: itsJsonSchema } instead";
  }
  if (!isObject(json)) return "must be a Standard Schema, a JSON Schema object or freeform()";
  // A server's schema is not its user's to mend: what is wrong in it is left out when arguments are checked.
  if (origin !== undefined) return undefined;
  const [fault] = findFaults(json as JsonObject);
  return fault && `${fault.what} (at ${fault.at.join("/")})`;
}

/** Old versions of schema libraries: objects with methods, where JSON has none. */
function looksLikeLibrary(value: unknown): boolean {
  return (
    isObject(value) && ["parse", "safeParse", "_parse", "_run", "~run"].some((key) => typeof value[key] === "function")
  );
}
