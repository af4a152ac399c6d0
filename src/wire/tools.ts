/**
 * Tools for wires that have only functions. Every tool is lowered by itself: one that a target cannot
 * express is left out and named with the reason, and never affects another. The list is sorted by
 * name, so that the same tools give the same bytes and prompt caches hit.
 */
import type { JsonObject } from "../base/json.ts";
import { normalizeSchema, type SchemaTarget } from "../schema/normalize.ts";
import type {
  CallKind,
  CustomSpec,
  FunctionSpec,
  Item,
  ModelRequest,
  NativeSpec,
  ToolChoice,
  ToolSpec,
} from "../spec/model.ts";
import type { NamedTool } from "./codec.ts";
import { freeformDescription, freeformSchema } from "./freeform.ts";
import { createNameBook, type NameBook, type Named } from "./names.ts";

export interface WireTool {
  /** The tool's name as this wire spells it. */
  readonly name: string;
  readonly description: string;
  readonly parameters: JsonObject;
  readonly strict?: boolean;
  /** What it was lowered from. */
  readonly spec: FunctionSpec | CustomSpec;
  readonly tool: NamedTool;
}

export interface Dropped {
  readonly name: string;
  readonly reason: string;
}

export interface LoweredTools {
  readonly tools: readonly WireTool[];
  readonly book: NameBook;
  readonly dropped: readonly Dropped[];
}

export interface LowerOptions {
  readonly target: SchemaTarget;
  /** The request's history, because calls of tools that are no longer declared keep their spelling too. */
  readonly history?: readonly Item[];
  readonly maxTools?: number;
}

interface Flat {
  readonly spec: FunctionSpec | CustomSpec;
  readonly tool: NamedTool;
}

/** Everything a request declares. It is the request's own array if there is nothing else. */
function toolsOf({ tools, loaded = [] }: Pick<ModelRequest, "tools" | "loaded">): readonly ToolSpec[] {
  return loaded.length === 0 ? tools : [...tools, ...loaded];
}

const once = oncePerTools<LoweredTools>();

export function lowerTools(specs: readonly ToolSpec[], options: LowerOptions): LoweredTools {
  const met = namesMet(options.history ?? []);
  return once(specs, met, `${options.target} ${options.maxTools}`, () => createLowered(specs, met, options));
}

function createLowered(specs: readonly ToolSpec[], met: readonly Named[], options: LowerOptions): LoweredTools {
  const dropped: Dropped[] = [];
  const flat = unique(flatten(specs, dropped), dropped);
  const book = createNameBook(
    flat.map(({ tool }) => tool),
    met,
  );
  const tools = flat
    .flatMap((entry) => lower(entry, book, options.target, dropped))
    .toSorted((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
  const max = options.maxTools ?? Infinity;
  if (tools.length <= max) return { tools, book, dropped };
  const kept = new Set(tools.toSorted((a, b) => Number(isRemote(a)) - Number(isRemote(b))).slice(0, max));
  for (const tool of tools) {
    if (!kept.has(tool)) dropped.push({ name: tool.tool.name, reason: `this wire takes at most ${max} tools` });
  }
  return { tools: tools.filter((tool) => kept.has(tool)), book, dropped };
}

/** Servers may bring hundreds of tools, which must never push out those that run here. */
function isRemote({ spec }: WireTool): boolean {
  return spec.kind === "function" && spec.server !== undefined;
}

/** The tools for which this wire has its own type, written by `encode`, and those that have to be lowered. */
export function splitOwn(
  request: ModelRequest,
  encode: (spec: NativeSpec) => JsonObject | undefined,
): { readonly own: readonly JsonObject[]; readonly rest: readonly ToolSpec[] } {
  const own: JsonObject[] = [];
  const specs = toolsOf(request);
  const rest = specs.filter((spec) => {
    const encoded = spec.kind === "native" ? encode(spec) : undefined;
    if (encoded !== undefined) own.push(encoded);
    return encoded === undefined;
  });
  // The same list stays the same array, so that what was made for it is found again.
  return { own, rest: own.length === 0 ? specs : rest };
}

function flatten(specs: readonly ToolSpec[], dropped: Dropped[]): readonly Flat[] {
  return specs.flatMap((spec): readonly Flat[] => {
    switch (spec.kind) {
      case "function":
      case "custom":
        return [{ spec, tool: { name: spec.name, kind: spec.kind } }];
      case "namespace":
        return spec.tools.map((member) => ({
          spec: member,
          tool: { name: member.name, namespace: spec.name, kind: member.kind },
        }));
      case "native": {
        if (spec.asFunction !== undefined) {
          return [{ spec: spec.asFunction, tool: { name: spec.name, kind: nativeKind(spec.type) } }];
        }
        dropped.push({ name: spec.name, reason: `${spec.type} has no function form` });
        return [];
      }
    }
  });
}

const kindsByType: ReadonlyMap<string, CallKind> = new Map(
  (["local_shell", "shell", "apply_patch", "tool_search"] as const).map((kind) => [kind, kind]),
);

function nativeKind(type: string): CallKind {
  return kindsByType.get(type) ?? "function";
}

function unique(flat: readonly Flat[], dropped: Dropped[]): readonly Flat[] {
  const first = new Map<string, Flat>();
  for (const entry of flat) {
    const key = `${entry.tool.namespace ?? ""}\0${entry.tool.name}`;
    if (first.has(key)) dropped.push({ name: entry.tool.name, reason: "another tool has the same name" });
    else first.set(key, entry);
  }
  return [...first.values()];
}

function lower({ spec, tool }: Flat, book: NameBook, target: SchemaTarget, dropped: Dropped[]): readonly WireTool[] {
  const name = book.spell(tool.name, tool.namespace);
  if (spec.kind === "custom") {
    return [{ name, description: freeformDescription(spec), parameters: freeformSchema, spec, tool }];
  }
  try {
    const parameters = normalizeSchema(spec.parameters, loweringTarget(target, spec.strict)).schema;
    const strict = spec.strict === undefined ? {} : { strict: spec.strict };
    return [{ name, description: spec.description, parameters, ...strict, spec, tool }];
  } catch (error) {
    // If something is wrong with one tool's schema, only that tool is left out.
    dropped.push({ name: tool.name, reason: error instanceof Error ? error.message : String(error) });
    return [];
  }
}

function loweringTarget(target: SchemaTarget, strict: boolean | undefined): SchemaTarget {
  return target === "openai" && strict === true ? "openai-strict" : target;
}

/** The tools that were called in a history, each once. */
export function namesMet(items: readonly Item[]): readonly Named[] {
  const met = new Map<string, Named>();
  for (const item of items) {
    if (item.type !== "call") continue;
    const identity = item.namespace === undefined ? item.name : identityOf(item.name, item.namespace);
    if (!met.has(identity)) met.set(identity, item);
  }
  return [...met.values()];
}

/**
 * Keeps what a wire writes for a lowered list. The same list gives the same object, so its bytes need not be made
 * again.
 */
export function oncePerLowered() {
  const known = new WeakMap<readonly WireTool[], { readonly how: string; readonly list: readonly JsonObject[] }>();
  return (tools: readonly WireTool[], how: string, encode: (tool: WireTool) => JsonObject): readonly JsonObject[] => {
    const before = known.get(tools);
    if (before?.how === how) return before.list;
    const list = tools.map(encode);
    known.set(tools, { how, list });
    return list;
  };
}

/** The tools that a choice leaves, for wires and servers that cannot express the choice. */
export function choiceNames(choice: ToolChoice | undefined, book: NameBook): ReadonlySet<string> | undefined {
  if (typeof choice !== "object") return undefined;
  if ("allowed" in choice) return new Set(choice.allowed.map((name) => book.spell(name)));
  return new Set([book.spell(choice.name, choice.namespace)]);
}

/**
 * What is made from one list of tools: for each provider's rules, and for the few names that only its
 * history knows.
 */
interface MadeOfTools<Made> {
  readonly declared: ReadonlySet<string>;
  readonly made: Map<string, Made>;
}

/** How many forms of one list are kept, because conversations that share it may use several providers. */
const maxForms = 16;

/**
 * What is made from a list of tools is kept with it, because requests send the same list again and
 * again. Names found in the history count only if the list does not declare them, so that all
 * conversations with the same tools share it.
 */
export function oncePerTools<Made>() {
  const known = new WeakMap<readonly ToolSpec[], MadeOfTools<Made>>();
  return (specs: readonly ToolSpec[], met: readonly Named[], how: string, make: () => Made): Made => {
    let entry = known.get(specs);
    if (entry === undefined) known.set(specs, (entry = { declared: new Set(declaredNames(specs)), made: new Map() }));
    const { declared, made } = entry;
    const strangers = new Set<string>();
    for (const call of met) {
      const name = identityOf(call.name, call.namespace);
      if (!declared.has(name)) strangers.add(name);
    }
    const key = [how, ...strangers].join("\n");
    let form = made.get(key);
    if (form === undefined) {
      if (made.size >= maxForms) made.clear();
      made.set(key, (form = make()));
    }
    return form;
  };
}

function declaredNames(specs: readonly ToolSpec[]): readonly string[] {
  return specs.flatMap((spec) => {
    if (spec.kind === "namespace") return spec.tools.map(({ name }) => identityOf(name, spec.name));
    return spec.kind === "native" ? [] : [identityOf(spec.name)];
  });
}

function identityOf(name: string, namespace = ""): string {
  return `${namespace}\0${name}`;
}
