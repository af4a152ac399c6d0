/** A class with decorated methods to tools: one shared instance, each method a tool, callable natively and as XML. */
import type { JsonObject } from "../base/json.ts";
import { methodForms, type MethodForms, type OpenapiOptions, type ToolMethod } from "./decorators.ts";
import { checkDeclaration } from "./define.ts";
import type { AnyTool, ToolContext } from "../spec/tool.ts";

export type ToolClass<With> = new (options: With) => object;

export interface RegisterOptions<With> {
  /** These methods only. */
  readonly only?: readonly string[];
  /** Handed to the constructor. */
  readonly with?: With;
}

export function classTools<With>(toolClass: ToolClass<With>, options: RegisterOptions<With> = {}): readonly AnyTool[] {
  // A constructor without parameters is called with one more than it takes, which harms nobody.
  const instance = new toolClass(options.with as With);
  const found = decoratedMethods(instance);
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
function decoratedMethods(instance: object): ReadonlyMap<string, Decorated> {
  const seen = new Set<string>();
  const found = new Map<string, Decorated>();
  for (
    let proto: unknown = Object.getPrototypeOf(instance);
    proto && proto !== Object.prototype;
    proto = Object.getPrototypeOf(proto)
  ) {
    for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(proto))) {
      const forms = methodForms(value);
      if (!seen.has(name) && forms) found.set(name, { method: value as ToolMethod, forms });
      seen.add(name);
    }
  }
  return found;
}

function toTool(instance: object, method: string, run: ToolMethod, forms: MethodForms): AnyTool {
  const { parameters, required, input, ...rest }: Partial<OpenapiOptions> = forms.openapi ?? {};
  return checkDeclaration({
    ...rest,
    name: rest.name ?? method,
    description: rest.description ?? "",
    input: input ?? parametersSchema(parameters ?? xmlParameters(forms), required ?? requiredByXml(forms, parameters)),
    ...(forms.xml ? { xml: forms.xml } : {}),
    run: (value: never, ctx: ToolContext) => run.call(instance, value, ctx),
  });
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
