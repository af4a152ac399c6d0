/**
 * Secrets do not leave the machine: known values are replaced by placeholders in everything that is
 * sent to a model, and put back in the calls it makes, so that commands still work. The same value
 * always has the same placeholder, so that prompt caches hit.
 */
import { createHmac } from "node:crypto";
import { isObject } from "../base/json.ts";
import type { CallItem, ModelEvent, ModelRequest, ToolSpec } from "../spec/model.ts";

export interface Secrets {
  hide(request: ModelRequest): ModelRequest;
  /** Whether a body contains one, as it came or as it was read, because it may be escaped in more than one way. */
  holds(body: string, request: ModelRequest): boolean;
  reveal(event: ModelEvent): ModelEvent | undefined;
}

/** A shorter value would be found inside ordinary words. */
const minLength = 8;

export function createSecrets(values: readonly string[], key: string): Secrets | undefined {
  const known = [...new Set(values)]
    .filter((value) => value.length >= minLength)
    .toSorted((a, b) => b.length - a.length);
  if (known.length === 0) return undefined;
  const originals = new Map(known.map((value) => [placeholderFor(value, key), value]));
  // A value with quotes or line breaks also occurs as JSON writes it: in arguments, and in JSON files that are shown.
  const placeholders = new Map(
    [...originals].flatMap(([placeholder, value]) => [
      [value, placeholder],
      [JSON.stringify(value).slice(1, -1), placeholder],
    ]),
  );
  const pattern = new RegExp([...placeholders.keys()].map(escape).join("|"), "g");

  const hideText = (text: string) => text.replace(pattern, (value) => placeholders.get(value) ?? value);
  const hide = createHider(hideText);
  /** In the JSON of arguments a value is escaped as JSON requires. */
  const revealCall = (call: CallItem): CallItem => {
    const isJson = call.kind !== "custom";
    const put = (placeholder: string) => {
      const value = originals.get(placeholder) ?? placeholder;
      return isJson ? JSON.stringify(value).slice(1, -1) : value;
    };
    return { ...call, arguments: call.arguments.replaceAll(/\[secret:[0-9a-f]{12}\]/g, put) };
  };

  return {
    hide,
    holds: (body, request) => body.search(pattern) >= 0 || hide(request) !== request,
    reveal(event) {
      // A placeholder may be split over two deltas. The whole call contains it, and encoders wait for that anyway.
      if (event.type === "item.delta" && event.field === "arguments") return undefined;
      if (event.type !== "item.done" || event.item.type !== "call") return event;
      return { ...event, item: revealCall(event.item) };
    },
  };
}

/** What tools and calls are found by. It stays as it is. */
const identifying = new Set(["name", "namespace", "kind", "wire", "id", "itemId", "callId"]);

/**
 * Changes every text of a request, wherever it stands. What has no text to change stays the same object, because much
 * is derived from a list of tools and found again by it.
 */
function createHider(change: (text: string) => string): (request: ModelRequest) => ModelRequest {
  /** An item or a tool, without the names that others know it by. */
  const hideOwn = <Value extends object>(value: Value): Value =>
    mapFields(value, (inner, name) => (identifying.has(name) ? inner : mapTexts(inner, change)));
  const hideTool = (tool: ToolSpec): ToolSpec =>
    mapFields(tool, (inner, name) => {
      if (name === "tools" && Array.isArray(inner)) return mapList(inner, hideOwn);
      if (name === "asFunction" && isObject(inner)) return hideOwn(inner);
      return identifying.has(name) ? inner : mapTexts(inner, change);
    });
  const known = new WeakMap<readonly ToolSpec[], readonly ToolSpec[]>();
  const hideTools = (tools: readonly ToolSpec[]): readonly ToolSpec[] => {
    let hidden = known.get(tools);
    if (hidden === undefined) known.set(tools, (hidden = mapList(tools, hideTool)));
    return hidden;
  };
  return (request) =>
    mapFields(request, (value, name) => {
      if (name === "model" || name === "toolChoice") return value;
      if (name === "input") return mapList(request.input, hideOwn);
      if (name === "tools") return hideTools(request.tools);
      if (name === "loaded") return request.loaded && hideTools(request.loaded);
      return mapTexts(value, change);
    });
}

/** Every text in the value, also in names of fields. Pictures and other files are bytes and no text. */
function mapTexts(value: unknown, change: (text: string) => string): unknown {
  if (typeof value === "string") return change(value);
  if (Array.isArray(value)) return mapList(value, (inner) => mapTexts(inner, change));
  if (!isObject(value)) return value;
  const isFile = value["type"] === "image" || value["type"] === "audio" || value["type"] === "file";
  const mapped = mapFields(value, (inner, name) => {
    // A type or a role is a word of the API, and never one of the user's.
    if (name === "type" || name === "role" || (isFile && name === "data")) return inner;
    return mapTexts(inner, change);
  });
  const names = Object.keys(mapped);
  if (names.every((name) => change(name) === name)) return mapped;
  return Object.fromEntries(Object.entries(mapped).map(([name, inner]) => [change(name), inner]));
}

function mapList<Value>(list: readonly Value[], change: (value: Value) => Value): readonly Value[] {
  const mapped = list.map(change);
  return mapped.every((value, at) => value === list[at]) ? list : mapped;
}

/** Each field goes through `change`, which keeps its type. */
function mapFields<Value extends object>(value: Value, change: (inner: unknown, name: string) => unknown): Value {
  const fields = Object.entries(value).map(([name, inner]) => [name, inner, change(inner, name)] as const);
  if (fields.every(([, before, after]) => before === after)) return value;
  return Object.fromEntries(fields.map(([name, , after]) => [name, after])) as Value;
}

function placeholderFor(value: string, key: string): string {
  return `[secret:${createHmac("sha256", key).update(value).digest("hex").slice(0, 12)}]`;
}

function escape(text: string): string {
  return text.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`);
}

const secretName = /(?:^|_)(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)(?:$|_)/i;

/** The values of variables whose names say that they are secret, for `startGateway({ secrets })`. */
export function secretsOf(env: Readonly<Record<string, string | undefined>>): readonly string[] {
  return Object.entries(env).flatMap(([name, value]) => (value !== undefined && secretName.test(name) ? [value] : []));
}
