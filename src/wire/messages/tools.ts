/** Tools and the choice among them in the Messages wire, both ways. */
import { defined, type JsonObject } from "../../base/json.ts";
import type { FunctionSpec, ModelRequest, NativeSpec, ResultItem, ToolChoice, ToolSpec } from "../../spec/model.ts";
import type { SchemaTarget } from "../../schema/normalize.ts";
import type { NameBook } from "../names.ts";
import { echoed, extraFields, jsonObject, object, objects, type Raw, string, word } from "../raw.ts";
import { choiceNames, type Dropped, lowerTools, splitOwn } from "../tools.ts";
import { wire } from "./stop.ts";

export interface EncodedTools {
  readonly tools: readonly JsonObject[];
  readonly book: NameBook;
  readonly dropped: readonly Dropped[];
  /** False: the tools are declared only because the history has calls of them. */
  readonly isCalling: boolean;
}

/** Provider-side tools that this API has under a name of its own. */
const serverTools: ReadonlyMap<string, string> = new Map([["web_search", "web_search_20250305"]]);

export function encodeTools(request: ModelRequest, target: SchemaTarget): EncodedTools {
  const { own, rest } = splitOwn(request, encodeTyped);
  const lowered = lowerTools(rest, { target, history: request.input });
  const chosen =
    typeof request.toolChoice === "object" && "allowed" in request.toolChoice
      ? choiceNames(request.toolChoice, lowered.book)
      : undefined;
  const tools = lowered.tools
    .filter((tool) => chosen === undefined || chosen.has(tool.name))
    .map((tool) =>
      defined({
        name: tool.name,
        description: tool.description,
        input_schema: tool.parameters,
        strict: tool.strict === true ? true : undefined,
        defer_loading: tool.spec.kind === "function" && tool.spec.deferred === true ? true : undefined,
        ...echoed(tool.spec.extra, wire),
      }),
    );
  const { book, dropped } = lowered;
  // Tools that a search found come last, because they are not part of the beginning that is cached.
  const isLate = (tool: JsonObject) => Number(tool["defer_loading"] === true);
  const offered = [...tools.map(jsonObject), ...own].toSorted(
    (a, b) => isLate(a) - isLate(b) || (String(a["name"]) < String(b["name"]) ? -1 : 1),
  );
  const isCalling = offered.length > 0;
  return { tools: isCalling ? offered : calledTools(request, book), book, dropped, isCalling };
}

/** This API requires every tool of the history to be declared, even if none may be called any more. */
function calledTools(request: ModelRequest, book: NameBook): readonly JsonObject[] {
  const called = request.input.flatMap((item) => (item.type === "call" ? [book.spell(item.name, item.namespace)] : []));
  return [...new Set(called)].toSorted().map((name) => ({
    name,
    description: notAvailable,
    input_schema: { type: "object", properties: {} },
  }));
}

/** Describes a tool that is listed only because of the history. */
const notAvailable = "Called earlier in this conversation; not available any more.";

function encodeTyped(spec: NativeSpec): JsonObject | undefined {
  if (spec.wire === wire) return { type: spec.type, name: spec.name, ...spec.options };
  const type = serverTools.get(spec.type);
  if (type === undefined) return undefined;
  const domains = object(object(spec.options)["filters"])["allowed_domains"];
  const location = object(spec.options)["user_location"];
  return jsonObject(defined({ type, name: spec.type, allowed_domains: domains, user_location: location ?? undefined }));
}

const functionFields: ReadonlySet<string> = new Set(
  "type name description input_schema strict cache_control".split(" "),
);

export function decodeTools(value: unknown): readonly ToolSpec[] {
  return objects(value)
    .filter((raw) => raw["description"] !== notAvailable)
    .map((raw) =>
      raw["type"] === undefined || raw["type"] === null || raw["type"] === "custom"
        ? decodeFunction(raw)
        : decodeTyped(raw),
    );
}

function decodeFunction(raw: Raw): FunctionSpec {
  const schema = object(raw["input_schema"]);
  return defined({
    kind: "function" as const,
    name: string(raw["name"]) ?? "",
    description: string(raw["description"]) ?? "",
    parameters: Object.keys(schema).length > 0 ? jsonObject(schema) : { type: "object", properties: {} },
    strict: raw["strict"] === true ? true : undefined,
    extra: extraFields(wire, raw, functionFields),
  });
}

function decodeTyped(raw: Raw): NativeSpec {
  const { type, name, cache_control: _cache, ...options } = raw;
  return defined({
    kind: "native" as const,
    type: string(type) ?? "",
    name: word(name) ?? string(type) ?? "",
    wire,
    options: Object.keys(options).length > 0 ? jsonObject(options) : undefined,
  });
}

/** The choice and "one call at a time" are one field here. */
export function encodeChoice(request: ModelRequest, book: NameBook, isCalling: boolean): JsonObject | undefined {
  if (!isCalling) return { type: "none" };
  const base = encodeBase(request.toolChoice, book);
  if (request.parallel === undefined || base?.["type"] === "none") return base;
  return { ...(base ?? { type: "auto" }), disable_parallel_tool_use: !request.parallel };
}

function encodeBase(choice: ToolChoice | undefined, book: NameBook): JsonObject | undefined {
  if (choice === undefined) return undefined;
  if (choice === "required") return { type: "any" };
  if (typeof choice === "string") return { type: choice };
  if ("allowed" in choice) return { type: choice.mode === "required" ? "any" : "auto" };
  return { type: "tool", name: book.spell(choice.name, choice.namespace) };
}

export function decodeChoice(raw: unknown): { readonly toolChoice?: ToolChoice; readonly parallel?: boolean } {
  const choice = object(raw);
  const flag = choice["disable_parallel_tool_use"];
  return defined({ toolChoice: decodeBase(choice), parallel: typeof flag === "boolean" ? !flag : undefined });
}

function decodeBase(choice: Raw): ToolChoice | undefined {
  switch (choice["type"]) {
    case "auto":
    case "none":
      return choice["type"];
    case "any":
      return "required";
    case "tool":
      return { name: string(choice["name"]) ?? "" };
    default:
      return undefined;
  }
}

/** What a search found, as references to tools that are declared for it. */
export function foundTools(
  { structured }: ResultItem,
  deferred: ReadonlySet<string | undefined>,
): readonly JsonObject[] {
  const names = objects(object(structured)["tools"]).map((tool) => string(tool["name"]));
  return names.flatMap((name) =>
    name !== undefined && deferred.has(name) ? [{ type: "tool_reference", tool_name: name }] : [],
  );
}
