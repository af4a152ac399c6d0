/** From any schema that a tool may have to the two things the line needs: JSON Schema to show, and a validator. */
import { isObject, type JsonObject } from "../base/json.ts";
import { toPath } from "./explain.ts";
import { isFreeform } from "../spec/freeform.ts";
import type { InputSchema } from "../spec/infer.ts";
import type { StandardValidator } from "../spec/standard.ts";
import { createValidator, type Validate, type Validation, type ValidateOptions } from "./validate.ts";

export interface Schema {
  /** As its author wrote it. Values are checked against it, and targets are derived from it. */
  readonly json: JsonObject;
  readonly validate: Validate;
}

/** Whether a schema may be compiled depends on the caller, so both forms of one schema may be needed. */
const interpreted = new WeakMap<object, Schema>();
const compiled = new WeakMap<object, Schema>();

/** The same value for the same schema object, and one validator for schemas with the same text. */
export function toSchema(input: InputSchema, options: ValidateOptions = {}): Schema {
  const known = options.compile === true ? compiled : interpreted;
  const cached = known.get(input);
  if (cached) return cached;
  const schema = createSchema(input, options);
  known.set(input, schema);
  return schema;
}

function createSchema(input: InputSchema, options: ValidateOptions): Schema {
  if (isFreeform(input)) return { json: { type: "string" }, validate: acceptText };
  const standard = standardOf(input);
  if (standard) return { json: toJson(standard), validate: (value) => validateStandard(standard, value) };
  if (isPair(input)) {
    const own = standardOf(input.validate);
    if (own) return { json: input.json, validate: (value) => validateStandard(own, value) };
  }
  const json = input as JsonObject; // What is none of the above is a JSON Schema: the type leaves nothing else.
  return { json, validate: validatorByText(json, options) };
}

function acceptText(value: unknown): Validation {
  return typeof value === "string"
    ? { ok: true, value }
    : { ok: false, issues: [{ path: "", message: "must be text" }] };
}

type Standard = StandardValidator & { readonly jsonSchema?: { readonly input?: unknown } };

/** Libraries put the standard on objects or, like ArkType, on functions. */
export function standardOf(input: unknown): Standard | undefined {
  if ((typeof input !== "object" && typeof input !== "function") || input === null || !("~standard" in input))
    return undefined;
  const standard = input["~standard"];
  return isObject(standard) && typeof standard["validate"] === "function"
    ? (standard as unknown as Standard)
    : undefined;
}

export function isPair(input: unknown): input is { readonly validate: unknown; readonly json: JsonObject } {
  return isObject(input) && isObject(input["json"]) && standardOf(input["validate"]) !== undefined;
}

/** Throws a TypeError if the library cannot write the schema as JSON. */
function toJson(standard: Standard): JsonObject {
  const convert = standard.jsonSchema?.input;
  if (typeof convert !== "function") {
    throw new TypeError(
      `this ${standard.vendor} schema cannot be written as JSON Schema; pass { validate: schema, json: itsJsonSchema } instead`,
    );
  }
  try {
    return (convert as (options: { target: string }) => JsonObject)({ target: "draft-2020-12" });
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new TypeError(
      `this ${standard.vendor} schema cannot be written as JSON Schema (${reason}); pass { validate: schema, json: itsJsonSchema } instead`,
      { cause },
    );
  }
}

async function validateStandard(standard: Standard, value: unknown): Promise<Validation> {
  const result = await standard.validate(value);
  if (!result.issues) return { ok: true, value: result.value };
  return {
    ok: false,
    issues: result.issues
      .slice(0, 8)
      .map((issue) => ({ path: toPath((issue.path ?? []).map(segmentKey)), message: issue.message })),
  };
}

function segmentKey(segment: PropertyKey | { readonly key: PropertyKey }): PropertyKey {
  return typeof segment === "object" ? segment.key : segment;
}

/**
 * Validators by schema text, with the least used dropped first, because MCP servers list the same
 * tools again and again.
 */
const byText = new Map<string, Validate>();
const keptValidators = 100;
const longestKey = 64_000;

function validatorByText(json: JsonObject, options: ValidateOptions): Validate {
  const key = textKey(json, options);
  if (key === undefined) return createValidator(json, options);
  const known = byText.get(key);
  if (known) byText.delete(key);
  const validate = known ?? createValidator(json, options);
  byText.set(key, validate);
  if (byText.size > keptValidators) byText.delete(byText.keys().next().value!);
  return validate;
}

/** Undefined for a schema that is too big or too deep to be a key. */
function textKey(json: JsonObject, options: ValidateOptions): string | undefined {
  try {
    const text = JSON.stringify(json);
    return text.length > longestKey ? undefined : `${options.compile === true ? "c" : "i"}${text}`;
  } catch {
    return undefined; // Deeper than the stack: such a schema is simply not cached.
  }
}
