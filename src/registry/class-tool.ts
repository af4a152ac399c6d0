/** A class with decorated methods to tools: one shared instance, each method a tool, callable natively and as XML. */
import type { JsonObject } from "../base/json.ts";
import { methodForms, type MethodForms, type OpenapiOptions, type ToolMethod } from "./decorators.ts";
import { checkDeclaration } from "./define.ts";
import type { AnyTool, ToolContext, XmlMapping } from "../spec/tool.ts";
import { functionParameters, type OpenapiSchema } from "./tool-spec.ts";

/** A class whose decorated methods are tools. */
export type ToolClass<With> = new (options: With) => object;

/** How a class becomes tools. */
export interface RegisterOptions<With> {
  /** These methods only. */
  readonly only?: readonly string[];
  /** Handed to the constructor. */
  readonly with?: With;
}

export function classTools<With>(toolClass: ToolClass<With>, options: RegisterOptions<With> = {}): readonly AnyTool[] {
  // A constructor without parameters is called with one more than it takes, which harms nobody.
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

/** Inherited ones too; a subclass that overrides a method without decorating it takes the tool away. */
function methodsOf(start: unknown): ReadonlyMap<string, Decorated> {
  const seen = new Set<string>();
  const found = new Map<string, Decorated>();
  for (let proto = start; proto && proto !== Object.prototype; proto = Object.getPrototypeOf(proto)) {
    for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(proto))) {
      const forms = methodForms(value);
      if (!seen.has(name) && forms) found.set(name, { method: value as ToolMethod, forms });
      seen.add(name);
    }
  }
  return found;
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

/** What a function call of the method looks like. */
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

/** A method with `@xml` alone still has parameters: all of them text. */
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

/** One of the forms a method was given by its decorators. */
export type ToolSchema =
  | { readonly type: "openapi"; readonly data: OpenapiSchema["function"] }
  | { readonly type: "xml"; readonly data: XmlMapping };

/**
 * What decorators said: of one method a list, of an instance or a class the lists of all its decorated methods, by
 * the method's name.
 */
export function toolSchemas(of: ToolMethod): readonly ToolSchema[];
export function toolSchemas(of: object): Readonly<Record<string, readonly ToolSchema[]>>;
export function toolSchemas(of: object): readonly ToolSchema[] | Readonly<Record<string, readonly ToolSchema[]>> {
  const forms = methodForms(of);
  // A function with forms is a method; its own name is the tool's unless they say otherwise.
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
