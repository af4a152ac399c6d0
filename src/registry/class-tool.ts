/**
 * Turns a class with decorated methods into tools: one shared instance, and one tool per method, which
 * can be called natively and as XML.
 */
import type { JsonObject } from "../base/json.ts";
import { methodForms, type MethodForms, type OpenapiOptions, type ToolMethod } from "./decorators.ts";
import { checkDeclaration, isToolField } from "./define.ts";
import type { AnyTool, ToolContext, XmlMapping } from "../spec/tool.ts";
import { functionParameters, type OpenapiSchema } from "./tool-spec.ts";

/** A class whose decorated methods are tools. */
export type ToolClass<With> = new (options: With) => object;

/** How a class becomes tools. */
export interface RegisterOptions<With> {
  /** Take only these methods. */
  readonly only?: readonly string[];
  /** The argument of the constructor. */
  readonly with?: With;
}

export function classTools<With>(toolClass: ToolClass<With>, options: RegisterOptions<With> = {}): readonly AnyTool[] {
  // A constructor without parameters ignores the argument.
  const instance = new toolClass(options.with as With);
  const found = methodsOf(Object.getPrototypeOf(instance));
  const unknown = (options.only ?? []).filter((name) => !found.has(name));
  if (unknown.length > 0)
    throw new TypeError(`${toolClass.name} has no decorated method ${unknown.map((name) => `'${name}'`).join(", ")}`);
  if (found.size === 0) throw new TypeError(`${toolClass.name} has no method with @openapi or @xml`);
  const chosen = [...found].filter(([name]) => options.only?.includes(name) ?? true);
  return chosen.map(([name, { method, forms }]) => toTool(instance, name, method, forms));
}

interface Decorated {
  readonly method: ToolMethod;
  readonly forms: MethodForms;
}

/** Includes inherited methods. A subclass that overrides a method without decorating it removes the tool. */
function methodsOf(start: unknown): ReadonlyMap<string, Decorated> {
  const seen = new Set<string>();
  const found = new Map<string, Decorated>();
  for (let proto = start; proto && proto !== Object.prototype; proto = Object.getPrototypeOf(proto)) {
    for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(proto))) {
      const forms = formsOf(value);
      if (!seen.has(name) && forms) found.set(name, { method: value as ToolMethod, forms });
      seen.add(name);
    }
  }
  return found;
}

/** The forms of a method, with the parameters that are described beside the tool's own description in their place. */
function formsOf(method: unknown): MethodForms | undefined {
  const forms = methodForms(method);
  if (forms?.openapi === undefined || forms.openapi.parameters !== undefined || forms.openapi.input !== undefined)
    return forms;
  const named = new Set((forms.xml?.parameters ?? []).map(({ name }) => name));
  const given = Object.entries(forms.openapi).filter(([key]) => named.has(key) && !isToolField(key));
  const described = new Map(given.flatMap(([key, value]) => (typeof value === "string" ? [[key, value]] : [])));
  if (described.size === 0) return forms;
  const { description, ...rest } = forms.openapi;
  const fields = Object.fromEntries(Object.entries(rest).filter(([key]) => !described.has(key)));
  const parameters = Object.fromEntries([...named].map((name) => [name, described.get(name) ?? ""]));
  return { ...forms, openapi: { ...fields, description, parameters } };
}

function toTool(instance: object, method: string, run: ToolMethod, forms: MethodForms): AnyTool {
  const { parameters: _parameters, required: _required, input, ...rest }: Partial<OpenapiOptions> = forms.openapi ?? {};
  const { name, description, parameters } = toDeclaration(method, forms);
  return checkDeclaration({
    ...rest,
    name,
    description: rest.description ?? description,
    input: input ?? parameters,
    ...(forms.xml ? { xml: forms.xml } : {}),
    run: (value: never, ctx: ToolContext) => run.call(instance, value, ctx),
  });
}

/** The declaration of a method as a function that a model can call. */
function toDeclaration(method: string, forms: MethodForms): OpenapiSchema["function"] {
  const { parameters, required, input, name = method, description = "" }: Partial<OpenapiOptions> = forms.openapi ?? {};
  return {
    name,
    description,
    parameters:
      input === undefined
        ? parametersSchema(parameters ?? xmlParameters(forms), required ?? requiredByXml(forms, parameters))
        : functionParameters({ input }),
  };
}

/** A method that has only `@xml` still has parameters, and all of them are text. */
function xmlParameters(forms: MethodForms): Readonly<Record<string, string>> {
  return Object.fromEntries((forms.xml?.parameters ?? []).map(({ name }) => [name, ""]));
}

function requiredByXml(forms: MethodForms, parameters: OpenapiOptions["parameters"]): readonly string[] {
  const optional = new Set(
    (forms.xml?.parameters ?? []).filter((parameter) => parameter.required === false).map(({ name }) => name),
  );
  return Object.keys(parameters ?? xmlParameters(forms)).filter((name) => !optional.has(name));
}

function parametersSchema(
  parameters: Readonly<Record<string, JsonObject | string>>,
  required: readonly string[],
): JsonObject {
  const properties = Object.fromEntries(
    Object.entries(parameters).map(([name, schema]) => [
      name,
      typeof schema === "string" ? { type: "string", ...(schema === "" ? {} : { description: schema }) } : schema,
    ]),
  );
  return { type: "object", properties, required, additionalProperties: false };
}

/** One of the forms that decorators gave to a method. */
export type ToolSchema =
  | { readonly type: "openapi"; readonly data: OpenapiSchema["function"] }
  | { readonly type: "xml"; readonly data: XmlMapping };

/**
 * What decorators said: for a method, a list of its forms; for an instance or a class, these lists for
 * all decorated methods, by the method's name.
 */
export function toolSchemas(of: ToolMethod): readonly ToolSchema[];
export function toolSchemas(of: object): Readonly<Record<string, readonly ToolSchema[]>>;
export function toolSchemas(of: object): readonly ToolSchema[] | Readonly<Record<string, readonly ToolSchema[]>> {
  const forms = formsOf(of);
  // A function with forms is a method. Its own name is the tool's name unless the forms say otherwise.
  if (forms !== undefined) return schemasOf((of as ToolMethod).name, forms);
  const proto: unknown = typeof of === "function" ? of.prototype : Object.getPrototypeOf(of);
  const found = [...methodsOf(proto)].map(([name, decorated]) => [name, schemasOf(name, decorated.forms)] as const);
  if (found.length === 0) throw new TypeError("there is no method with @openapi or @xml");
  return Object.fromEntries(found);
}

function schemasOf(method: string, forms: MethodForms): readonly ToolSchema[] {
  const { openapi, xml } = forms;
  const { name, description, parameters } = toDeclaration(method, forms);
  return [
    ...(openapi === undefined ? [] : [{ type: "openapi", data: { name, description, parameters } } as const]),
    ...(xml === undefined ? [] : [{ type: "xml", data: xml } as const]),
  ];
}
