/** A Responses request, both ways, and the pairing of calls and outputs that this API enforces. */
import { text } from "../../base/content.ts";
import { defined, type JsonObject } from "../../base/json.ts";
import type { CallItem, Extra, Item, ModelRequest, ResultItem, ToolSpec } from "../../spec/model.ts";
import type { DecodeRequestOptions, EncodeOptions, EncodedRequest } from "../codec.ts";
import { type Sign, unpackCarriers } from "../envelope.ts";
import { noResult } from "../history.ts";
import { legalCacheKey, repeatedId } from "../ids.ts";
import type { Spell } from "../names.ts";
import {
  array,
  boolean,
  extraFields,
  json,
  jsonObject,
  nonEmpty,
  number,
  object,
  objects,
  type Raw,
  string,
  withFields,
  word,
} from "../raw.ts";
import { decodeItem, wire } from "./decode-item.ts";
import { effortOf, settingsFor } from "../settings.ts";
import { namesMet } from "../tools.ts";
import { encodeInputItem } from "./encode-item.ts";
import { decodeChoice, decodeTools, encodeChoice, encodeTools } from "./tools.ts";

/** Reasoning must be returned to us so that it can be sent again, because nothing is stored at the server. */
const include = ["reasoning.encrypted_content"];

export function encodeRequest(request: ModelRequest, options: EncodeOptions = {}): EncodedRequest {
  const met = namesMet(request.input);
  const tools = encodeTools(request.tools, met, options.target ?? "openai");
  const isRenamed = met.some(({ name, namespace }) => tools.spell(name, namespace) !== name);
  const { text, reasoning, ...more } = settingsFor(request.extra, wire);
  const held = { ...object(text), ...encodeFormat(request) };
  const thought = defined({
    ...object(reasoning),
    effort: effortOf(request.reasoning),
    summary: request.reasoning?.summary,
  });
  const hasTools = tools.tools.length > 0 || (request.loaded ?? []).length > 0;
  const keepsState = "previous_response_id" in more || "conversation" in more;
  const body = defined({
    model: request.model,
    instructions: request.instructions,
    input: encodeItems(pairCalls(request.input, keepsState), isRenamed ? tools.spell : undefined),
    tools: tools.tools.length > 0 ? tools.tools : undefined,
    tool_choice: hasTools ? encodeChoice(request.toolChoice, tools) : undefined,
    parallel_tool_calls: hasTools && options.quirks?.noParallelFlag !== true ? request.parallel : undefined,
    max_output_tokens: request.maxOutputTokens,
    temperature: request.temperature,
    top_p: request.topP,
    reasoning: Object.keys(thought).length > 0 ? jsonObject(thought) : undefined,
    text: Object.keys(held).length > 0 ? jsonObject(held) : undefined,
    prompt_cache_key: options.quirks?.noCacheKey === true ? undefined : legalCacheKey(request.cacheKey),
    store: false,
    include,
    stream: request.stream,
    ...more,
  });
  return { body: jsonObject(body), names: tools.names, dropped: tools.dropped };
}

/** Items do not change once they are in a history, so what an earlier request made of them is reused. */
const encoded = new WeakMap<Item, { readonly value: JsonObject | undefined }>();

function encodeOnce(item: Item): JsonObject | undefined {
  let known = encoded.get(item);
  if (known === undefined) encoded.set(item, (known = { value: encodeInputItem(item) }));
  return known.value;
}

function encodeItems(items: readonly Item[], spell: Spell | undefined): readonly JsonObject[] {
  const list: JsonObject[] = [];
  for (const item of items) {
    const one = encodeOnce(spell === undefined ? item : spelled(item, spell));
    if (one !== undefined) list.push(one);
  }
  return list;
}

function spelled(item: Item, spell: Spell): Item {
  if (item.type !== "call" || (item.kind !== "function" && item.kind !== "custom")) return item;
  const name = spell(item.name, item.namespace);
  return name === item.name ? item : { ...item, name };
}

function encodeFormat(request: ModelRequest): JsonObject {
  const output = request.outputSchema;
  if (output === undefined) return {};
  return { format: defined({ type: "json_schema", name: output.name, schema: output.schema, strict: output.strict }) };
}

const namedFields: ReadonlySet<string> = new Set(
  "model instructions input tools tool_choice parallel_tool_calls max_output_tokens temperature top_p reasoning text prompt_cache_key store include stream".split(
    " ",
  ),
);

export function decodeRequest(body: unknown, { sign }: DecodeRequestOptions = {}): ModelRequest {
  const raw = object(body);
  const input = decodeInput(raw["input"], sign);
  const reasoning = object(raw["reasoning"]);
  const format = object(object(raw["text"])["format"]);
  const isSchema = format["type"] === "json_schema";
  return defined({
    model: string(raw["model"]) ?? "",
    instructions: word(raw["instructions"]),
    input,
    tools: decodeTools(raw["tools"]),
    loaded: loadedTools(input),
    toolChoice: decodeChoice(raw["tool_choice"]),
    parallel: boolean(raw["parallel_tool_calls"]),
    maxOutputTokens: number(raw["max_output_tokens"]),
    temperature: number(raw["temperature"]),
    topP: number(raw["top_p"]),
    reasoning: nonEmpty(defined({ effort: word(reasoning["effort"]), summary: word(reasoning["summary"]) })),
    outputSchema: isSchema
      ? defined({
          name: string(format["name"]) ?? "output",
          schema: jsonObject(object(format["schema"])),
          strict: boolean(format["strict"]),
        })
      : undefined,
    cacheKey: word(raw["prompt_cache_key"]),
    stream: boolean(raw["stream"]),
    extra: decodeExtra(raw, isSchema),
  });
}

function decodeInput(input: unknown, sign: Sign | undefined): readonly Item[] {
  if (typeof input === "string")
    return input === "" ? [] : [{ type: "message", role: "user", content: [{ type: "text", text: input }] }];
  return unpackCarriers(objects(input).map((item) => decodeItem(item, sign)));
}

/** Tools that came as items. The items stay in place; this is for wires that have only one list. */
function loadedTools(input: readonly Item[]): readonly ToolSpec[] | undefined {
  const loaded = input.flatMap((item): readonly ToolSpec[] => {
    if (item.type === "other" && item.raw["type"] === "additional_tools") return decodeTools(item.raw["tools"]);
    if (item.type === "result" && item.kind === "tool_search") return decodeTools(object(item.structured)["tools"]);
    return [];
  });
  return loaded.length > 0 ? loaded : undefined;
}

function decodeExtra(raw: Raw, isSchema: boolean): Extra | undefined {
  let extra = extraFields(wire, raw, namedFields);
  const keep = (fields: Raw) => {
    extra = withFields(wire, extra, fields);
  };
  const { effort: _effort, summary: _summary, ...reasoning } = object(raw["reasoning"]);
  if (Object.keys(reasoning).length > 0) keep({ reasoning });
  const { format, ...text } = object(raw["text"]);
  const plain = format === undefined || isSchema || object(format)["type"] === "text";
  if (!plain || Object.keys(text).length > 0) keep({ text: plain ? text : { ...text, format } });
  if (raw["store"] === true) keep({ store: true });
  const wanted = array(raw["include"]);
  if (wanted.length > 0 && !(wanted.length === 1 && wanted[0] === include[0])) keep({ include: json(wanted) });
  if (raw["tool_choice"] !== undefined && raw["tool_choice"] !== null && decodeChoice(raw["tool_choice"]) === undefined)
    keep({ tool_choice: raw["tool_choice"] });
  return extra;
}

/**
 * `keepsState` means that the server holds earlier items, so an output whose call is not here is not
 * an orphan. Ids that appear again in a later turn (some servers count from zero each time) are made
 * different by a suffix.
 */
function pairCalls(items: readonly Item[], keepsState: boolean): readonly Item[] {
  if (isPaired(items)) return items;
  const isReferring = keepsState || items.some(isReference);
  const times = new Map<string, number>();
  const taken = new Set(items.flatMap((item) => (item.type === "call" ? [item.id] : [])));
  const waiting = new Map<string, string[]>();
  const kept: Item[] = [];
  for (const item of items) {
    if (item.type === "call") {
      const time = (times.get(item.id) ?? 0) + 1;
      times.set(item.id, time);
      const id = time === 1 ? item.id : repeatedId(item.id, time, taken);
      waiting.set(item.id, [...(waiting.get(item.id) ?? []), id]);
      kept.push(id === item.id ? item : { ...item, id });
    } else if (item.type === "result") {
      const callId = waiting.get(item.callId)?.shift();
      if (callId !== undefined) kept.push(callId === item.callId ? item : { ...item, callId });
      else if (isReferring) kept.push(item);
    } else {
      kept.push(item);
    }
  }
  const unanswered = new Set([...waiting.values()].flat());
  return kept.flatMap((item) => (item.type === "call" && unanswered.has(item.id) ? [item, aborted(item)] : [item]));
}

/** Whether each call has an id of its own and one result after it. This is so for nearly every history. */
function isPaired(items: readonly Item[]): boolean {
  const ids = new Set<string>();
  const waiting = new Set<string>();
  for (const item of items) {
    if (item.type === "call") {
      if (ids.has(item.id)) return false;
      ids.add(item.id);
      waiting.add(item.id);
    } else if (item.type === "result" && !waiting.delete(item.callId)) return false;
  }
  return waiting.size === 0;
}

function isReference(item: Item): boolean {
  return item.type === "other" && item.raw["type"] === "item_reference";
}

function aborted(call: CallItem): ResultItem {
  return { type: "result", callId: call.id, kind: call.kind, content: [text(noResult)], ok: false };
}
