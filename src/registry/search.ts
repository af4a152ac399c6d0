/**
 * For so many tools that a model cannot be told about all of them. Instead it gets a search, and calls
 * what it found by name. The list of tools in the request stays the same, byte for byte, however many
 * servers come and go.
 */
import { isObject, parseJson, type JsonObject } from "../base/json.ts";
import { CallError } from "../base/error.ts";
import { estimateTokens } from "../base/tokens.ts";
import { looseKey } from "../spec/name.ts";
import type { FunctionSpec, Item, ToolSpec } from "../spec/model.ts";
import type { AnyTool } from "../spec/tool.ts";
import { result } from "../spec/result.ts";
import { defineTool } from "./define.ts";
import type { Registry } from "./registry.ts";
import { describeTool, functionParameters } from "./tool-spec.ts";

const searchName = "tool_search";
const callName = "call_tool";

/** How many tools a search returns unless it asks for more or fewer. */
const defaultFound = 5;
const mostFound = 20;

/** Adds `tool_search` and `call_tool` to a registry. They find and call whatever is in it at the time. */
export function addToolSearch(registry: Registry): Registry {
  let index: { readonly tools: readonly AnyTool[]; readonly search: Search } | undefined;
  const search: Search = (query, limit) => {
    const tools = registry.list();
    if (index?.tools !== tools) index = { tools, search: createSearch(tools.filter(({ name }) => !isOurs(name))) };
    return index.search(query, limit);
  };
  return registry.add(searchTool(registry, search), callTool);
}

function isOurs(name: string): boolean {
  return name === searchName || name === callName;
}

function searchTool(registry: Registry, search: Search): AnyTool {
  return defineTool({
    name: searchName,
    description:
      `Finds tools of connected services that are not listed here. Write 2 to 5 keywords, the service's name among ` +
      `them ("github create issue"), not a sentence. Call a found tool with ${callName}.`,
    input: {
      type: "object",
      properties: {
        query: { type: "string", description: "2 to 5 keywords, or the name of a tool." },
        limit: { type: "integer", minimum: 1, maximum: mostFound },
      },
      required: ["query"],
      additionalProperties: false,
    },
    parallel: true,
    run({ query, limit = defaultFound }) {
      const found = search(query, limit);
      if (found.length === 0) return `Nothing found for ${JSON.stringify(query)}. ${describeServers(registry.list())}`;
      const told = found.map((tool) => ({
        name: tool.name,
        description: describeTool(tool),
        parameters: functionParameters(tool),
      }));
      const spellings = registry.spellings();
      return result({
        content: told.map((tool) => JSON.stringify(tool)).join("\n"),
        // For APIs that load the tools that were found, with names they accept.
        structured: {
          tools: told.map((tool) => ({
            type: "function",
            strict: false,
            ...tool,
            name: spellings.get(tool.name) ?? tool.name,
          })),
        },
      });
    },
  });
}

/** The servers with the number of their tools, which is enough to write a better query. */
function describeServers(tools: readonly AnyTool[]): string {
  const counts = new Map<string, number>();
  for (const { origin } of tools) if (origin) counts.set(origin.server, (counts.get(origin.server) ?? 0) + 1);
  const list = [...counts].toSorted().map(([server, count]) => `${server} (${count} tools)`);
  return list.length === 0 ? "No services are connected." : `There are tools of: ${list.join(", ")}.`;
}

/**
 * Stands for the tool it names. The line is given that tool's call, so that rules, approvals and the
 * journal speak of the tool itself.
 */
const callTool: AnyTool = defineTool({
  name: callName,
  description: `Calls a tool that ${searchName} found.`,
  input: {
    type: "object",
    properties: {
      name: { type: "string", description: "The tool's name, as it was found." },
      arguments: { type: "object", description: "Its arguments, as its parameters say." },
    },
    required: ["name"],
    additionalProperties: false,
  },
  standsFor,
  run() {
    throw new CallError("invalid_input", `${callName} takes the name of another tool and its arguments.`);
  },
});

/** The call that is meant. Undefined if that cannot be read; the check stage then says what is wrong. */
function standsFor(text: string): ReturnType<NonNullable<AnyTool["standsFor"]>> {
  const read = parseJson(text);
  if (!read.ok || !isObject(read.value)) return undefined;
  const { name, arguments: given = {} } = read.value;
  if (typeof name !== "string" || isOurs(name)) return undefined;
  // Some models write the arguments as a JSON text inside the JSON text.
  return { name, arguments: typeof given === "string" ? given : JSON.stringify(given) };
}

type Search = (query: string, limit: number) => readonly AnyTool[];

/** Okapi BM25 over names and descriptions. The name counts three times, and an exact name comes first. */
export function createSearch(tools: readonly AnyTool[]): Search {
  const docs = tools.map((tool) => {
    const words = [...Array(3).fill(tool.name), describeTool(tool)].flatMap(toWords);
    const counts = new Map<string, number>();
    for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1);
    return { tool, counts, length: words.length };
  });
  const mean = docs.reduce((sum, { length }) => sum + length, 0) / Math.max(1, docs.length);
  const having = new Map<string, number>();
  for (const { counts } of docs) for (const word of counts.keys()) having.set(word, (having.get(word) ?? 0) + 1);
  const weight = (word: string) => {
    const count = having.get(word) ?? 0;
    return Math.log(1 + (docs.length - count + 0.5) / (count + 0.5));
  };
  return (query, limit) => {
    const words = new Set(toWords(query));
    const exact = looseKey(query);
    return docs
      .map(({ tool, counts, length }) => {
        let score = looseKey(tool.name) === exact ? Infinity : 0;
        for (const word of words) {
          const often = counts.get(word) ?? 0;
          if (often > 0) score += (weight(word) * often * 2.2) / (often + 1.2 * (0.25 + (0.75 * length) / mean));
        }
        return { tool, score };
      })
      .filter(({ score }) => score > 0)
      .toSorted((a, b) => b.score - a.score || (a.tool.name < b.tool.name ? -1 : 1))
      .slice(0, limit)
      .map(({ tool }) => tool);
  };
}

/** Splits at camelCase and at anything that is not a letter or a digit, in lower case and without a plural ending. */
function toWords(text: string): readonly string[] {
  const parts =
    text
      .replaceAll(/(\p{Ll}|\p{N})(\p{Lu})/gu, "$1 $2")
      .toLowerCase()
      .match(/[\p{L}\p{N}]+/gu) ?? [];
  return parts.map((word) => (word.length > 3 ? word.replace(/(?<=[^s])s$/, "").replace(/ie$/, "y") : word));
}

/** When tools are found by a search instead of being listed. */
export interface DeferOptions {
  /** How many tokens the model can take. */
  readonly window?: number;
  /** If the servers' tools would take more than this share of the window, they are found by search. */
  readonly share?: number;
  /**
   * How many tools the API accepts. If there are more, the servers' tools are found by search, however
   * small they are.
   */
  readonly maxTools?: number;
  /** Servers and tools that are listed in any case. */
  readonly always?: readonly string[];
  /**
   * How a found tool is called. `call_tool`: by a second tool that takes its name, on every API. `loaded`: under its own
   * name, by APIs that load what a search found (OpenAI's Responses, Anthropic's Messages). Left out: `call_tool`.
   */
  readonly form?: "call_tool" | "loaded";
}

/** The window that is assumed if nobody says how large the model's is. */
const usualWindow = 128_000;

/**
 * The search as a tool that the API itself knows. The API loads what it finds, so no second tool is
 * needed to call it.
 */
function asLoading(spec: ToolSpec): readonly ToolSpec[] {
  if (spec.name === callName) return [];
  if (spec.name !== searchName || spec.kind !== "function") return [spec];
  const description = spec.description.replace(` Call a found tool with ${callName}.`, "");
  const options = { execution: "client", description, parameters: spec.parameters };
  return [{ kind: "native", type: "tool_search", name: searchName, options, asFunction: { ...spec, description } }];
}

/** The tools that searches in a conversation have found, for an API that loads them. */
export function loadedTools(items: readonly Item[], offered: readonly ToolSpec[]): readonly ToolSpec[] {
  if (!offered.some((spec) => spec.kind === "native" && spec.type === "tool_search")) return [];
  const found = new Map<string, FunctionSpec>();
  for (const item of items) {
    if (item.type !== "result" || item.kind !== "tool_search" || !isObject(item.structured)) continue;
    const { tools } = item.structured;
    for (const tool of Array.isArray(tools) ? tools : []) {
      if (!isObject(tool) || typeof tool["name"] !== "string" || !isObject(tool["parameters"])) continue;
      const { name, parameters } = tool;
      const description = typeof tool["description"] === "string" ? tool["description"] : "";
      // It was valid JSON when it was written to the history.
      found.set(name, { kind: "function", name, description, parameters: parameters as JsonObject, deferred: true });
    }
  }
  return [...found.values()];
}

/**
 * The tools that a model is told about. If the tools of servers would take more than their share, they are
 * left to the search; if they fit, the search is left out. Once left to the search, the list stays as it is.
 */
export function deferTools(
  list: () => readonly ToolSpec[],
  { window = usualWindow, share = 0.1, maxTools = Infinity, always = [], form = "call_tool" }: DeferOptions = {},
): () => readonly ToolSpec[] {
  let settled: readonly ToolSpec[] | undefined;
  let last: { readonly from: readonly ToolSpec[]; readonly specs: readonly ToolSpec[] } | undefined;
  const isRemote = (spec: ToolSpec) =>
    spec.kind === "function" &&
    spec.server !== undefined &&
    !always.includes(spec.server) &&
    !always.includes(spec.name);
  return () => {
    if (settled !== undefined) return settled;
    const from = list();
    if (last?.from === from) return last.specs;
    const remote = from.filter(isRemote);
    const tokens = remote.reduce((sum, spec) => sum + estimateTokens(JSON.stringify(spec)), 0);
    const ours = from.filter(({ name }) => isOurs(name)).length;
    const canSearch = from.some(({ name }) => name === searchName);
    if (canSearch && (tokens > window * share || from.length - ours > maxTools)) {
      const kept = from.filter((spec) => !isRemote(spec));
      return (settled = form === "loaded" ? kept.flatMap(asLoading) : kept);
    }
    last = { from, specs: canSearch ? from.filter(({ name }) => !isOurs(name)) : from };
    return last.specs;
  };
}
