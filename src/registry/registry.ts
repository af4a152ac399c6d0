/**
 * Tools by name. `registry/` knows which tools there are and what each model sees of them. It never
 * runs one and knows no wire.
 */
import { CallError } from "../base/error.ts";
import { extend } from "../base/extend.ts";
import { cutStart, nearest } from "../base/text.ts";
import type { ServerUse } from "../spec/access.ts";
import type { Asked, Bound } from "../spec/call.ts";
import { checkDeclaration } from "./define.ts";
import { commonRules, isNamedAfter, looseKey, spellNames } from "../spec/name.ts";
import type { Binder } from "../spec/stages.ts";
import type { AnyTool } from "../spec/tool.ts";
import { describeTool, functionParameters, type OpenapiSchema } from "./tool-spec.ts";
import { classTools, type ToolClass, type RegisterOptions } from "./class-tool.ts";

/** The tools of an engine, by name. Tools may come and go while it runs. */
export interface Registry extends Binder {
  bind(asked: Asked): Bound;
  bind(asked: Asked, signal: AbortSignal): Bound | Promise<Bound>;
  /**
   * Adds all of the tools, or none if one is wrong. Throws a TypeError for a bad declaration or a name
   * that is already taken.
   */
  add(...tools: readonly AnyTool[]): Registry;
  /** Adds the decorated methods of a class, on one shared instance. */
  register<With>(toolClass: ToolClass<With>, options?: RegisterOptions<With>): Registry;
  /** True if there was such a tool. */
  remove(name: string): boolean;
  /** Exchanges all tools of one server or group at once, as MCP's list_changed requires. */
  replace(belongs: (tool: AnyTool) => boolean, tools: readonly AnyTool[]): Registry;
  /**
   * Announces that tools of this group will arrive. A call of one of them waits until they are there, or
   * fails if the promise rejects.
   */
  expect(group: string, arrival: Promise<unknown>): void;
  /** Finds a tool under any spelling that a model may use. Undefined if none fits, or more than one. */
  find(name: string, namespace?: string): AnyTool | undefined;
  /** Finds a tool by its XML tag, or else like `find`. */
  findByTag(tag: string): AnyTool | undefined;
  /** All tools, always in name order. */
  list(): readonly AnyTool[];
  groups(): ReadonlyMap<string, readonly string[]>;
  /**
   * Each tool's name in the form that every provider accepts (`^[A-Za-z0-9_-]{1,64}$`). No two are
   * alike, and `find` knows all of them.
   */
  spellings(): ReadonlyMap<string, string>;
  /**
   * Every tool as a Chat Completions function, with a name that every provider accepts and the schema as
   * its author wrote it.
   */
  openapiSchemas(): readonly OpenapiSchema[];
  /** The examples of the tools that have an XML form. */
  xmlExamples(): readonly string[];
  /** Called after each change. Returns a function that ends the subscription. */
  onChange(listener: () => void): () => void;
}

/** How many names the message about an unknown tool lists. */
const listedNames = 40;

/** A registry of your own, for hosts that add and remove tools themselves. */
export function createRegistry(tools: readonly AnyTool[] = []): Registry {
  let byName = new Map<string, AnyTool>();
  let index: NameIndex | undefined;
  let sorted: readonly AnyTool[] | undefined;
  const listeners = new Set<() => void>();
  const expected = new Map<string, Promise<unknown>>();

  function commit(next: Map<string, AnyTool>): Registry {
    byName = next;
    index = undefined;
    sorted = undefined;
    for (const listener of listeners) listener();
    return registry;
  }

  const list = () => (sorted ??= [...byName.values()].toSorted((a, b) => (a.name < b.name ? -1 : 1)));
  const find = (name: string, namespace?: string) =>
    byName.get(name) ?? (index ??= createIndex(list())).find(name, namespace);

  const bindNow = (asked: Asked): Bound => {
    const tool = find(asked.name, asked.namespace);
    if (!tool) throw unknownTool(asked, list());
    return extend(asked, { tool });
  };
  function bind(asked: Asked): Bound;
  function bind(asked: Asked, signal: AbortSignal): Bound | Promise<Bound>;
  function bind(asked: Asked, signal?: AbortSignal): Bound | Promise<Bound> {
    if (signal === undefined || expected.size === 0 || find(asked.name, asked.namespace)) return bindNow(asked);
    const arrival = findGroup(expected, asked);
    return arrival === undefined ? bindNow(asked) : unlessAborted(arrival, signal).then(() => bindNow(asked));
  }

  const registry: Registry = {
    add: (...added) => commit(withTools(byName, added)),
    register: (toolClass, options) => commit(withTools(byName, classTools(toolClass, options))),
    remove(name) {
      const next = new Map(byName);
      const found = next.delete(name);
      if (found) commit(next);
      return found;
    },
    replace: (belongs, added) => commit(withTools(new Map([...byName].filter(([, tool]) => !belongs(tool))), added)),
    expect(group, arrival) {
      expected.set(group, arrival);
      const over = () => void (expected.get(group) === arrival && expected.delete(group));
      arrival.then(over, over);
    },
    find,
    findByTag: (tag) => (index ??= createIndex(list())).findByTag(tag) ?? find(tag),
    list,
    groups: () => groupNames(list()),
    spellings: () => (index ??= createIndex(list())).spellings,
    openapiSchemas: () => list().map((tool) => toOpenapi(tool, registry.spellings().get(tool.name)!)),
    xmlExamples: () => list().flatMap((tool) => tool.xml?.example ?? []),
    onChange(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    bind,
  };
  return registry.add(...tools);
}

function unlessAborted(waited: Promise<unknown>, signal: AbortSignal): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const stop = () => reject(new CallError("aborted", "The call was interrupted while its tool was on its way."));
    signal.addEventListener("abort", stop, { once: true });
    if (signal.aborted) stop();
    void waited.then(resolve, reject).finally(() => signal.removeEventListener("abort", stop));
  });
}

/** The group with which the call's name begins, in any spelling of `group/tool`. */
function findGroup<Value>(groups: ReadonlyMap<string, Value>, { name, namespace }: Asked): Value | undefined {
  const whole = namespace === undefined ? name : `${namespace}/${name}`;
  const fitting = [...groups.keys()].filter((group) => isNamedAfter(group, whole));
  const [longest] = fitting.toSorted((a, b) => b.length - a.length);
  return longest === undefined ? undefined : groups.get(longest);
}

function toOpenapi(tool: AnyTool, name: string): OpenapiSchema {
  const description = describeTool(tool);
  return { type: "function", function: { name, description, parameters: functionParameters(tool) } };
}

function withTools(current: ReadonlyMap<string, AnyTool>, added: readonly AnyTool[]): Map<string, AnyTool> {
  const next = new Map(current);
  const aliases = new Map(
    [...current.values()].flatMap((tool) => (tool.aliases ?? []).map((alias) => [alias, tool.name])),
  );
  for (const tool of added) {
    checkDeclaration(tool);
    if (next.has(tool.name)) throw new TypeError(`there are two tools named '${tool.name}'`);
    next.set(tool.name, tool);
    for (const alias of tool.aliases ?? []) {
      const other = aliases.get(alias);
      if (other !== undefined && other !== tool.name)
        throw new TypeError(`'${alias}' is an alias of both '${other}' and '${tool.name}'`);
      aliases.set(alias, tool.name);
    }
  }
  return next;
}

interface NameIndex {
  readonly spellings: ReadonlyMap<string, string>;
  find(name: string, namespace: string | undefined): AnyTool | undefined;
  findByTag(tag: string): AnyTool | undefined;
}

/** Goes from the exact spellings to the loosest. A looser spelling counts only if a single tool matches it. */
function createIndex(tools: readonly AnyTool[]): NameIndex {
  const wire = spellNames(
    tools.map((tool) => tool.name),
    commonRules,
  );
  const exact = new Map<string, AnyTool>();
  const loose = new Map<string, AnyTool | undefined>();
  const bare = new Map<string, AnyTool | undefined>();
  const tags = new Map<string, AnyTool>();
  const claim = (table: Map<string, AnyTool | undefined>, key: string, tool: AnyTool) => {
    table.set(key, !table.has(key) || table.get(key) === tool ? tool : undefined);
  };
  for (const tool of tools) {
    const { origin } = tool;
    const spellings = [wire.get(tool.name)!, ...(tool.aliases ?? [])];
    for (const spelling of spellings) if (!exact.has(spelling)) exact.set(spelling, tool);
    for (const key of [tool.name, ...spellings]) claim(loose, looseKey(key), tool);
    if (origin) {
      const whole = `${origin.server}/${origin.name}`;
      for (const key of [whole, `mcp/${whole}`]) claim(loose, looseKey(key), tool);
      // If a model leaves the server out, the call is understood only if a single server has such a tool.
      claim(bare, looseKey(origin.name), tool);
    }
    if (tool.xml?.tag !== undefined && !tags.has(tool.xml.tag)) tags.set(tool.xml.tag, tool);
  }
  const lookUp = (name: string) => {
    const key = looseKey(name);
    const found = exact.get(name) ?? tags.get(name);
    if (found) return found;
    const near = loose.has(key) ? loose.get(key) : bare.get(key);
    return near && isOfOtherServer(near, name) ? undefined : near;
  };
  return {
    spellings: wire,
    find(name, namespace) {
      if (namespace === undefined) return lookUp(name);
      const plain = namespace.replace(/^mcp__?/, "");
      const own =
        tools.find((tool) => tool.name === `${plain}/${name}` || isFrom(tool.origin, plain, name)) ??
        lookUp(`${namespace}__${name}`);
      const found = own ?? lookUp(name);
      return found && plain !== namespace && isOfOtherServer(found, `${plain}/${name}`) ? undefined : found;
    },
    findByTag: (tag) => tags.get(tag),
  };
}

function isFrom(origin: ServerUse | undefined, server: string, name: string): boolean {
  return origin?.server === server && origin.name === name;
}

/**
 * A call that names a server never goes to another one, however alike their names are, and even if the
 * first one is down.
 */
function isOfOtherServer(tool: AnyTool, asked: string): boolean {
  const named = /^([^/]+)\//.exec(asked)?.[1] ?? /^mcp__(.+?)__./.exec(asked)?.[1];
  const owner = tool.origin?.server ?? /^([^/]+)\//.exec(tool.name)?.[1];
  if (named === undefined || owner === undefined) return false;
  const key = looseKey(named).replace(/^mcp_/, "");
  return key !== looseKey(owner).replace(/^mcp_/, "");
}

function groupNames(tools: readonly AnyTool[]): ReadonlyMap<string, readonly string[]> {
  const groups = new Map<string, string[]>();
  for (const { name, group, origin } of tools) {
    const key = group ?? origin?.server ?? "";
    const names = groups.get(key);
    if (names) names.push(name);
    else groups.set(key, [name]);
  }
  return new Map([...groups].toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

function unknownTool(asked: Asked, tools: readonly AnyTool[]): CallError {
  const whole = asked.namespace === undefined ? asked.name : `${asked.namespace}/${asked.name}`;
  const name = cutStart(whole, 200); // a real name is short, but a model may write anything in its place
  const names = tools.map((tool) => tool.name);
  const near = nearest(name, names, listedNames);
  const ordered = [...near, ...names.filter((other) => !near.includes(other))];
  const shown = ordered.slice(0, listedNames).join(", ");
  const more = ordered.length > listedNames ? `, and ${ordered.length - listedNames} more` : "";
  const available = ordered.length === 0 ? "There are no tools." : `Available tools: ${shown}${more}.`;
  return new CallError("unknown_tool", `Unknown tool: ${JSON.stringify(name)}. ${available}`, {
    hint: near[0] === undefined ? "Use one of the available tools." : `Did you mean ${near[0]}?`,
    data: { name, nearest: near.slice(0, 5) },
  });
}
