/**
 * Tools in the Responses wire, the only one that accepts every kind: functions, freeform tools with
 * their grammar, namespaces and the provider's own. They are sorted by name, and each is lowered by
 * itself.
 */
import { defined, type JsonObject } from "../../base/json.ts";
import { normalizeSchema, type SchemaTarget } from "../../schema/normalize.ts";
import type {
  CallItem,
  CustomSpec,
  FunctionSpec,
  NamespaceSpec,
  NativeSpec,
  ToolChoice,
  ToolSpec,
} from "../../spec/model.ts";
import type { NameTable, NamedTool } from "../codec.ts";
import { createNameBook, type NameBook, type Named } from "../names.ts";
import { echoed, extraFields, jsonObject, object, objects, type Raw, string, word } from "../raw.ts";
import { type Dropped, oncePerTools } from "../tools.ts";
import { wire } from "./decode-item.ts";

export interface EncodedTools {
  readonly tools: readonly JsonObject[];
  readonly names: ReadonlyMap<string, NamedTool>;
  readonly dropped: readonly Dropped[];
  /** The wire's spelling of a tool, whether declared or only found in the history. */
  spell(name: string, namespace?: string): string;
}

type Member = FunctionSpec | CustomSpec;

const once = oncePerTools<EncodedTools>();

export function encodeTools(specs: readonly ToolSpec[], met: readonly Named[], target: SchemaTarget): EncodedTools {
  return once(specs, met, target, () => createEncoded(specs, met, target));
}

function createEncoded(specs: readonly ToolSpec[], met: readonly Named[], target: SchemaTarget): EncodedTools {
  const dropped: Dropped[] = [];
  const names = new Map<string, NamedTool>();
  const books = new Map<string | undefined, NameBook>();
  const bookOf = (namespace: string | undefined, members: readonly Member[]) => {
    const history = met.filter((call) => call.namespace === namespace).map(({ name }) => ({ name }));
    const book = createNameBook(
      members.map(({ name, kind }) => ({ name, kind })),
      history,
    );
    books.set(namespace, book);
    for (const [spelling, tool] of book.table) names.set(nameKey(spelling, namespace), defined({ ...tool, namespace }));
    return book;
  };
  const own = bookOf(
    undefined,
    specs.filter((spec) => spec.kind === "function" || spec.kind === "custom"),
  );
  const lower = (spec: Member, book: NameBook) => encodeMember(spec, book.spell(spec.name), target, dropped);
  const tools = firstOfEach(specs, dropped).flatMap((spec): readonly JsonObject[] => {
    switch (spec.kind) {
      case "function":
      case "custom":
        return lower(spec, own);
      case "namespace":
        return [
          encodeNamespace(
            spec,
            spec.tools.flatMap((member) => lower(member, books.get(spec.name) ?? bookOf(spec.name, spec.tools))),
          ),
        ];
      case "native":
        return encodeNative(spec, (member) => lower(member, own), dropped);
    }
  });
  return {
    tools: tools.toSorted((a, b) => compare(sortKey(a), sortKey(b))),
    names,
    dropped,
    spell: (name, namespace) => (books.get(namespace) ?? bookOf(namespace, [])).spell(name),
  };
}

function firstOfEach(specs: readonly ToolSpec[], dropped: Dropped[]): readonly ToolSpec[] {
  const seen = new Set<string>();
  return specs.filter((spec) => {
    const key = `${spec.kind === "namespace" || spec.kind === "native" ? spec.kind : "tool"} ${spec.name}`;
    if (seen.has(key)) dropped.push({ name: spec.name, reason: "another tool has the same name" });
    return !seen.has(key) && seen.add(key);
  });
}

/** A provider's own tool has no name but its type. */
const sortKey = (tool: JsonObject) =>
  `${string(tool["name"]) ?? string(tool["type"]) ?? ""}\0${string(tool["type"]) ?? ""}`;
const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);

function encodeMember(spec: Member, name: string, target: SchemaTarget, dropped: Dropped[]): readonly JsonObject[] {
  const more = echoed(spec.extra, wire);
  if (spec.kind === "custom") {
    return [defined({ type: "custom", name, description: spec.description, format: spec.format, ...more })];
  }
  try {
    // This API reads a missing `strict` as true, so it is always sent.
    const strict = spec.strict ?? false;
    const parameters = normalizeSchema(
      spec.parameters,
      strict && target === "openai" ? "openai-strict" : target,
    ).schema;
    return [
      defined({
        type: "function",
        name,
        description: spec.description,
        parameters,
        strict,
        output_schema: spec.outputSchema,
        ...more,
      }),
    ];
  } catch (error) {
    // If something is wrong with one tool's schema, only that tool is left out.
    dropped.push({ name: spec.name, reason: error instanceof Error ? error.message : String(error) });
    return [];
  }
}

function encodeNamespace(spec: NamespaceSpec, tools: readonly JsonObject[]): JsonObject {
  return { type: "namespace", name: spec.name, description: spec.description, tools, ...echoed(spec.extra, wire) };
}

function encodeNative(
  spec: NativeSpec,
  lower: (member: FunctionSpec) => readonly JsonObject[],
  dropped: Dropped[],
): readonly JsonObject[] {
  if (spec.wire === undefined || spec.wire === wire) return [{ type: spec.type, ...spec.options }];
  if (spec.wire === "messages" && /^web_search(_\d+)?$/.test(spec.type)) return [encodeSearch(spec)];
  if (spec.asFunction !== undefined) return lower(spec.asFunction);
  dropped.push({ name: spec.name, reason: `${spec.type} belongs to another API and has no function form` });
  return [];
}

/** Both APIs have their own web search, but put the domains in different places. */
function encodeSearch({ options = {} }: NativeSpec): JsonObject {
  const { allowed_domains: domains, user_location: location } = options;
  return defined({
    type: "web_search",
    filters: domains === undefined ? undefined : { allowed_domains: domains },
    user_location: location,
  });
}

const functionFields: ReadonlySet<string> = new Set("type name description parameters strict output_schema".split(" "));
const customFields: ReadonlySet<string> = new Set("type name description format".split(" "));
const namespaceFields: ReadonlySet<string> = new Set("type name description tools".split(" "));

export function decodeTools(value: unknown): readonly ToolSpec[] {
  return objects(value).flatMap((raw): readonly ToolSpec[] => {
    if (raw["type"] === "namespace") return [decodeNamespace(raw)];
    const member = decodeMember(raw);
    if (member !== undefined) return [member];
    const { type, ...options } = raw;
    return [
      defined({
        kind: "native" as const,
        type: string(type) ?? "",
        name: word(raw["name"]) ?? string(type) ?? "",
        wire,
        options: Object.keys(options).length > 0 ? jsonObject(options) : undefined,
      }),
    ];
  });
}

function decodeNamespace(raw: Raw): NamespaceSpec {
  return defined({
    kind: "namespace" as const,
    name: string(raw["name"]) ?? "",
    description: string(raw["description"]) ?? "",
    tools: objects(raw["tools"]).flatMap((member) => decodeMember(member) ?? []),
    extra: extraFields(wire, raw, namespaceFields),
  });
}

function decodeMember(raw: Raw): Member | undefined {
  const common = { name: string(raw["name"]) ?? "", description: string(raw["description"]) ?? "" };
  if (raw["type"] === "custom") {
    return defined({
      kind: "custom" as const,
      ...common,
      format: decodeFormat(object(raw["format"])),
      extra: extraFields(wire, raw, customFields),
    });
  }
  if (raw["type"] !== "function") return undefined;
  const schema = object(raw["parameters"]);
  const output = object(raw["output_schema"]);
  return defined({
    kind: "function" as const,
    ...common,
    parameters: Object.keys(schema).length > 0 ? jsonObject(schema) : { type: "object", properties: {} },
    strict: raw["strict"] === true ? true : undefined,
    outputSchema: Object.keys(output).length > 0 ? jsonObject(output) : undefined,
    extra: extraFields(wire, raw, functionFields),
  });
}

function decodeFormat(raw: Raw): CustomSpec["format"] {
  if (raw["type"] === "text") return { type: "text" };
  // The Chat API nests the same object one level deeper, and some clients send that form here.
  const grammar = raw["grammar"] === undefined ? raw : object(raw["grammar"]);
  const definition = string(grammar["definition"]);
  if (raw["type"] !== "grammar" || definition === undefined) return undefined;
  return { type: "grammar", syntax: grammar["syntax"] === "regex" ? "regex" : "lark", definition };
}

const nativeKinds = ["local_shell", "shell", "apply_patch", "tool_search"] as const;

export function encodeChoice(choice: ToolChoice | undefined, tools: EncodedTools): string | JsonObject | undefined {
  if (choice === undefined || typeof choice === "string") return choice;
  if ("allowed" in choice) {
    const listed = choice.allowed.map((name) => ({
      type: tools.names.get(tools.spell(name))?.kind ?? "function",
      name: tools.spell(name),
    }));
    return { type: "allowed_tools", mode: choice.mode, tools: listed };
  }
  const native = nativeKinds.find((kind) => kind === choice.kind);
  if (native !== undefined) return { type: native };
  const isProvided = !tools.names.has(choice.name) && tools.tools.some((tool) => tool["type"] === choice.name);
  if (isProvided) return { type: choice.name };
  return defined({
    type: choice.kind ?? "function",
    name: tools.spell(choice.name, choice.namespace),
    namespace: choice.namespace,
  });
}

/** Undefined also for choices that only this API knows. Those are passed on as they are. */
export function decodeChoice(raw: unknown): ToolChoice | undefined {
  if (raw === "auto" || raw === "none" || raw === "required") return raw;
  const choice = object(raw);
  const type = string(choice["type"]);
  const native = nativeKinds.find((kind) => kind === type);
  if (native !== undefined) return { name: native, kind: native };
  if (type === "allowed_tools") {
    const allowed = objects(choice["tools"]).flatMap((tool) => word(tool["name"]) ?? word(tool["type"]) ?? []);
    return { allowed, mode: choice["mode"] === "required" ? "required" : "auto" };
  }
  const name = word(choice["name"]) ?? word(object(choice["function"])["name"]);
  if (name === undefined || (type !== "function" && type !== "custom")) return undefined;
  return defined({ name, kind: type, namespace: word(choice["namespace"]) } as const);
}

/** One key for a name inside a namespace. Names on this wire contain neither a dot nor a slash. */
export function nameKey(name: string, namespace: string | undefined): string {
  return namespace === undefined ? name : `${namespace}.${name}`;
}

/** The call under its neutral name, where the table knows the spelling. */
export function renamed(call: CallItem, names: NameTable | undefined): CallItem {
  const tool = names?.get(nameKey(call.name, call.namespace));
  if (tool === undefined) return call;
  const { namespace: _namespace, ...rest } = call;
  return { ...rest, name: tool.name, ...(tool.namespace === undefined ? {} : { namespace: tool.namespace }) };
}
