/**
 * The check stage, from Bound to Checked: it reads the arguments, checks them against the schema that
 * the tool's author wrote, and asks the tool what the call will touch. A text that is not complete
 * JSON is reported to the model and never completed.
 */
import { CallError } from "../base/error.ts";
import { extend } from "../base/extend.ts";
import { isObject, typeName, type Json } from "../base/json.ts";
import { checkShape } from "../base/shape.ts";
import { accessShape, type Access } from "../spec/access.ts";
import type { Bound, Checked } from "../spec/call.ts";
import { coerce } from "../schema/coerce.ts";
import type { Issue } from "../schema/explain.ts";
import { isFreeform } from "../spec/freeform.ts";
import { fillDefaults } from "./defaults.ts";
import { describeJsonError, locateJsonError } from "./json-error.ts";
import { restore } from "./restore.ts";
import { standardOf, toSchema, type Schema } from "../schema/schema.ts";
import { signature } from "./signature.ts";
import { readText } from "./text-input.ts";
import type { AccessContext, AnyTool } from "../spec/tool.ts";

/** Whose `default` values are filled in: those of tools that run here, everybody's, or nobody's. */
export type FillDefaults = "own" | "all" | "none";

export async function check(bound: Bound, at: AccessContext, defaults: FillDefaults = "own"): Promise<Checked> {
  const notes: string[] = [];
  const { tool } = bound;
  const input = isFreeform(tool.input) ? readText(bound, tool.input, notes) : await readInput(bound, notes, defaults);
  const access = withOrigin(tool, await askAccess(tool, input, at));
  return extend(bound, { input, access, mutates: askMutates(tool, input, access), notes });
}

async function readInput(bound: Bound, notes: string[], defaults: FillDefaults): Promise<Json> {
  // A server's schema comes from outside, so it is interpreted and never compiled to code.
  const schema = toSchema(bound.tool.input, { compile: bound.tool.origin === undefined });
  const given = parseArguments(bound);
  // Some servers write `null` for a tool that takes nothing. It means the same as an empty text.
  const parsed = given === null && schema.json["type"] === "object" ? {} : given;
  const { depth, hasNull, poisoned } = inspect(parsed);
  if (depth > deepestInput)
    throw invalid(bound, schema, `The arguments of ${bound.tool.name} nest deeper than ${deepestInput} levels.`);
  for (const object of poisoned) {
    delete (object as Record<string, unknown>)["__proto__"];
    notes.push("a '__proto__' key was left out");
  }
  const typed = bound.untyped ? coerce(parsed, schema.json, notes) : parsed;
  const restored = restore(typed, schema.json, hasNull, notes);
  noteUnknownKeys(restored, schema, notes);
  const filled = fillsIn(bound.tool, defaults) ? fillDefaults(restored, schema.json, notes) : restored;
  const result = await schema.validate(filled);
  if (!result.ok) throw invalidArguments(bound, schema, result.issues);
  return result.value as Json; // A library's transform may return more than JSON; the handler's own type describes it.
}

/** A schema library fills in its own defaults. */
function fillsIn({ input, origin }: AnyTool, defaults: FillDefaults): boolean {
  if (defaults === "none" || standardOf(input) !== undefined) return false;
  return defaults === "all" || origin === undefined;
}

function parseArguments(bound: Bound): unknown {
  const text = bound.arguments;
  if (text.trim() === "") return {};
  try {
    return JSON.parse(text);
  } catch (cause) {
    const error = locateJsonError(text);
    const where = error ? describeJsonError(text, error) : "it cannot be read";
    throw new CallError("invalid_input", `The arguments of ${bound.tool.name} are not valid JSON: ${where}.`, {
      hint: "Nothing was run. Send the call again with the complete, valid JSON.",
      data: error ? { position: error.position, expected: error.expected } : undefined,
      cause,
    });
  }
}

/** An open schema lets unknown keys pass. A note for the journal says that they were there. */
function noteUnknownKeys(value: unknown, { json }: Schema, notes: string[]): void {
  if (
    !isObject(value) ||
    !isObject(json["properties"]) ||
    json["additionalProperties"] !== undefined ||
    json["patternProperties"] !== undefined
  )
    return;
  const properties = json["properties"];
  for (const key of Object.keys(value)) {
    if (!Object.hasOwn(properties, key)) notes.push(`unknown key '${key.slice(0, 80)}': the schema does not name it`);
  }
}

function invalidArguments(bound: Bound, schema: Schema, issues: readonly Issue[]): CallError {
  const lines = issues.map(({ path, message }) => (path === "" ? `the arguments: ${message}` : `${path}: ${message}`));
  const list = lines.length === 1 ? ` ${lines[0]}.` : `\n${lines.map((line) => `- ${line}`).join("\n")}`;
  return invalid(bound, schema, `Invalid arguments for ${bound.tool.name}:${list}`, { issues });
}

function invalid(bound: Bound, schema: Schema, message: string, data?: unknown): CallError {
  return new CallError("invalid_input", message, {
    hint: `Nothing was run. Call it as ${bound.tool.name}(${signature(schema.json)}).`,
    data,
  });
}

async function askAccess(tool: AnyTool, input: Json, at: AccessContext): Promise<Access> {
  if (typeof tool.access !== "function") return tool.access ?? {};
  // The input passed the tool's own schema, so it has the type that `access` expects.
  const ask = tool.access as (input: Json, at: AccessContext) => Access | Promise<Access>;
  try {
    const access: Access = await ask(input, at);
    const problem = checkShape(access, accessShape, ["access"]);
    if (problem === undefined) return access;
    throw new TypeError(problem.message);
  } catch (cause) {
    throw toolFault(tool, "say what the call would touch", cause);
  }
}

/** A remote tool acts on its server, whatever else it states. */
function withOrigin({ origin }: AnyTool, access: Access): Access {
  return origin === undefined ? access : { ...access, servers: [origin, ...(access.servers ?? [])] };
}

function askMutates(tool: AnyTool, input: Json, access: Access): boolean {
  const touches = [access.write, access.commands, access.network].some((list) => (list?.length ?? 0) > 0);
  if (typeof tool.mutates !== "function") return tool.mutates ?? (touches || access.escalation !== undefined);
  try {
    const mutates: unknown = (tool.mutates as (input: Json) => boolean)(input);
    if (typeof mutates === "boolean") return mutates;
    throw new TypeError(`mutates gave ${typeName(mutates)}, and not true or false`);
  } catch (cause) {
    throw toolFault(tool, "say whether the call changes something", cause);
  }
}

/** A tool that cannot say what it would touch is not run, because nobody could decide about the call. */
function toolFault(tool: AnyTool, what: string, cause: unknown): CallError {
  if (CallError.is(cause)) return cause;
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new CallError("failed", `${tool.name} could not ${what}: ${reason}`, { cause, hint: "Nothing was run." });
}

interface Inspection {
  readonly depth: number;
  readonly hasNull: boolean;
  /** Objects with a key `__proto__` of their own. JSON allows it, but most code does not expect it. */
  readonly poisoned: readonly object[];
}

/** No real argument nests deeper than this. Recursive code, such as the JSON writer, breaks at some thousands. */
const deepestInput = 1000;

/** One look over the parsed arguments before any recursive code touches them. It goes level by level, without recursion. */
function inspect(value: unknown): Inspection {
  let depth = 0;
  let hasNull = value === null;
  const poisoned: object[] = [];
  let level: object[] = typeof value === "object" && value !== null ? [value] : [];
  while (level.length > 0 && depth <= deepestInput) {
    depth++;
    const below: object[] = [];
    for (const node of level) {
      if (!Array.isArray(node) && Object.hasOwn(node, "__proto__")) poisoned.push(node);
      for (const child of Object.values(node)) {
        if (typeof child !== "object") continue;
        if (child === null) hasNull = true;
        else below.push(child as object);
      }
    }
    level = below;
  }
  return { depth, hasNull, poisoned };
}
