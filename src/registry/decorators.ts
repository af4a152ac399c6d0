/**
 * Tools as methods of a class, with standard decorators: `@openapi` says what a function
 * call looks like, `@xml` how the same method is written as XML. They chain; one method, two forms.
 */
import type { JsonObject } from "../base/json.ts";
import type { InputSchema } from "../spec/infer.ts";
import type { AnyTool, ToolContext, ToolOutput, XmlMapping, XmlParameter } from "../spec/tool.ts";

/** What a decorated method may be: it takes the input, and then the context that every handler gets. */
export type ToolMethod = (input: never, ctx: ToolContext) => ToolOutput | Promise<ToolOutput>;

/** A tool without its handler, which is the method. The name is the method's name unless one is given. */
export interface OpenapiOptions extends Partial<Omit<AnyTool, "run" | "input" | "xml" | "description">> {
  /** What the model is told about the tool. */
  readonly description: string;
  /** Any schema that `defineTool` takes. */
  readonly input?: InputSchema;
  /** The short form: each parameter with its JSON Schema, or only with its description. */
  readonly parameters?: Readonly<Record<string, JsonObject | string>>;
  /** Used with `parameters`. Left out: all of them are required. */
  readonly required?: readonly string[];
}

/** Options of the decorator `xml`. */
export interface XmlOptions {
  /** Left out: the method's name. */
  readonly tag?: string;
  /** Another name for `tag`. */
  readonly name?: string;
  /** The same as `name`. */
  readonly tag_name?: string;
  /** Parameters that are attributes of the tag. */
  readonly attributes?: readonly string[];
  /** Parameters that are elements inside it. */
  readonly elements?: readonly string[];
  /** The parameter that is the tag's own text. */
  readonly content?: string;
  /** The long form, for what the short forms cannot say. */
  readonly parameters?: readonly XmlParameter[];
  /** The same as `parameters`, in another spelling. */
  readonly mappings?: readonly XmlMappingRow[];
  /** A call as the model should write it. */
  readonly example?: string;
}

/** Where one parameter stands in a tool's XML. */
export interface XmlMappingRow {
  readonly param_name: string;
  readonly node_type?: XmlParameter["node"];
  readonly path?: string;
  readonly required?: boolean;
}

/** What the decorators left on a method. */
export interface MethodForms {
  readonly openapi?: OpenapiOptions;
  readonly xml?: XmlMapping;
}

const formsOf = new WeakMap<object, MethodForms>();

/**
 * Decorator: the method is a tool with this JSON Schema. Parameters that `@xml` names may be described right
 * beside the description: `{ description: "…", path: "the file" }`.
 */
export function openapi(
  options: OpenapiOptions | ({ readonly description: string } & Readonly<Record<string, string>>),
) {
  return <Method extends ToolMethod>(method: Method, context: ClassMethodDecoratorContext): Method =>
    addForm(method, context, { openapi: options });
}

/** Decorator: the method is a tool that is called by this XML. */
export function xml(options: XmlOptions = {}) {
  return <Method extends ToolMethod>(method: Method, context: ClassMethodDecoratorContext): Method =>
    addForm(method, context, { xml: toMapping(options, String(context.name)) });
}

/** The forms a method was given; undefined for one without decorators. */
export function methodForms(method: unknown): MethodForms | undefined {
  return typeof method === "function" ? formsOf.get(method) : undefined;
}

function addForm<Method extends ToolMethod>(
  method: Method,
  context: ClassMethodDecoratorContext,
  form: MethodForms,
): Method {
  if (context.static || context.private)
    throw new TypeError(`${String(context.name)}: a tool is a public method of an instance`);
  formsOf.set(method, { ...formsOf.get(method), ...form });
  return method;
}

function toMapping(
  { tag, name: called, tag_name: tagName, attributes = [], elements = [], content, ...more }: XmlOptions,
  name: string,
): XmlMapping {
  const { parameters = [], mappings = [], example } = more;
  return {
    tag: tag ?? tagName ?? called ?? name,
    parameters: [
      ...attributes.map((parameter): XmlParameter => ({ name: parameter, node: "attribute", path: "." })),
      ...elements.map((parameter): XmlParameter => ({ name: parameter, node: "element", path: parameter })),
      ...(content === undefined ? [] : [{ name: content, node: "content", path: "." } as const]),
      ...parameters,
      ...mappings.map(({ param_name: parameter, node_type: node = "element", path, required }): XmlParameter => ({
        name: parameter,
        node,
        path: path ?? (node === "element" ? parameter : "."),
        ...(required === undefined ? {} : { required }),
      })),
    ],
    ...(example === undefined ? {} : { example }),
  };
}
