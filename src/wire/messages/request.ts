/**
 * A request in the Messages wire, both ways. Towards the API: alternating turns, results first in the
 * user's turn, and only thoughts that the API signed. From a client: everything it said, with what has
 * no neutral name kept beside it.
 */
import { defined, type Json, type JsonObject } from "../../base/json.ts";
import type { Extra, Item, MessageItem, ModelRequest, OtherItem, ResultItem } from "../../spec/model.ts";
import type { DecodeRequestOptions, EncodeOptions, EncodedRequest } from "../codec.ts";
import { type Sign, unpackCarriers } from "../envelope.ts";
import { RequestError } from "../failure.ts";
import { prepareHistory, type Turn } from "../history.ts";
import { idRules, legalCacheKey, legalId, sessionKey } from "../ids.ts";
import type { Spell } from "../names.ts";
import {
  array,
  boolean,
  echoed,
  extraFields,
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
import { decodeBlock, decodeContent, decodeSystem, encodeContent, requestBlocks } from "./blocks.ts";
import { settingsFor } from "../settings.ts";
import { wire } from "./stop.ts";
import { decodeChoice, decodeTools, encodeChoice, encodeTools, foundTools } from "./tools.ts";

/** The API requires a limit. This one is below what its present models allow. */
const defaultMaxTokens = 16_384;

export function encodeRequest(request: ModelRequest, options: EncodeOptions = {}): EncodedRequest {
  const { tools, book, dropped, isCalling } = encodeTools(request, options.target ?? "anthropic");
  const laterSystem = options.quirks?.laterSystem === true;
  const history = prepareHistory(
    { ...request, input: request.input.map(asBlock) },
    { wire, laterSystem, isSaid: () => true },
  );
  const deferred = new Set(tools.flatMap((tool) => (tool["defer_loading"] === true ? [string(tool["name"])] : [])));
  const messages = mergeTurns(history.turns.flatMap((turn) => encodeTurn(turn, book.spell, deferred)));
  const { thinking, output_config, metadata, system, ...more } = settingsFor(request.extra, wire);
  const config = defined({
    ...object(output_config),
    effort: request.reasoning?.effort,
    format: encodeFormat(request),
  });
  const isCached = request.cacheKey !== undefined && options.quirks?.noCacheKey !== true;
  const choice = tools.length === 0 ? undefined : encodeChoice(request, book, isCalling);
  const thinks = encodeThinking(request, thinking, messages, choice);
  const isThinking = thinking === undefined && thinks !== undefined;
  const body = defined({
    model: request.model,
    max_tokens: request.maxOutputTokens ?? defaultMaxTokens,
    system: encodeSystem(history.system, system, isCached),
    messages: isCached ? markLastUser(messages) : messages,
    tools: tools.length === 0 ? undefined : isCached ? markTools(tools) : tools,
    tool_choice: choice,
    // A model that thinks on a budget accepts neither.
    temperature: isThinking ? undefined : request.temperature,
    top_p: isThinking ? undefined : request.topP,
    stop_sequences: request.stop,
    thinking: thinks,
    output_config: Object.keys(config).length > 0 ? config : undefined,
    metadata:
      request.cacheKey === undefined ? metadata : { ...object(metadata), user_id: legalCacheKey(request.cacheKey) },
    stream: request.stream,
    ...more,
  });
  return { body: jsonObject(body), names: book.table, dropped };
}

/** The smallest budget for thoughts that this API accepts. */
const leastBudget = 1024;

/** A client of this API is passed on as it said; a budget from another wire is used if the request allows it. */
function encodeThinking(
  request: ModelRequest,
  own: Json | undefined,
  messages: readonly JsonObject[],
  choice: JsonObject | undefined,
): Json | undefined {
  const isLost = lacksThoughts(messages);
  if (own !== undefined) return isLost && object(own)["type"] === "enabled" ? undefined : own;
  const wanted = request.reasoning?.budgetTokens;
  if (wanted === undefined) return undefined;
  const isForced = choice?.["type"] === "any" || choice?.["type"] === "tool";
  const max = request.maxOutputTokens ?? defaultMaxTokens;
  // Something must be left for the answer.
  const budget = Math.min(Math.max(wanted, leastBudget), Math.floor(max * 0.8));
  if (isForced || budget < leastBudget || isLost) return undefined;
  return { type: "enabled", budget_tokens: budget };
}

/** True if the turn to be continued called tools and its thoughts are gone, because the API then refuses to think. */
function lacksThoughts(messages: readonly JsonObject[]): boolean {
  const isAnswering = objects(messages.at(-1)?.["content"]).some((block) => block["type"] === "tool_result");
  const first = objects(messages.findLast((message) => message["role"] === "assistant")?.["content"])[0];
  return isAnswering && first?.["type"] !== "thinking" && first?.["type"] !== "redacted_thinking";
}

/** The client's own blocks are sent, with their division and marks, as long as their text is still the same. */
function encodeSystem(words: string | undefined, blocks: Json | undefined, isCached: boolean): Json | undefined {
  if (words === undefined || (blocks !== undefined && decodeSystem(blocks) === words)) return blocks;
  return isCached ? markLast([{ type: "text", text: words }]) : words;
}

/** This API's own compaction is a block like the others. A summary of ours becomes a user's message. */
function asBlock(item: Item): Item {
  if (item.type !== "compaction" || (item.opaque ?? item.extra)?.wire !== wire) return item;
  const [raw] = requestBlocks(item, (name) => name);
  return raw === undefined ? item : ({ type: "other", wire, raw } satisfies OtherItem);
}

function encodeFormat(request: ModelRequest): JsonObject | undefined {
  return request.outputSchema === undefined ? undefined : { type: "json_schema", schema: request.outputSchema.schema };
}

interface Message {
  readonly role: string;
  readonly content: readonly JsonObject[];
}

function encodeTurn(turn: Turn, spell: Spell, deferred: ReadonlySet<string | undefined>): readonly Message[] {
  switch (turn.role) {
    case "system":
    case "user":
      return [{ role: turn.role, content: encodeContent(turn.message.content, turn.message.extra) }];
    case "assistant":
      return [
        { role: "assistant", content: turn.items.flatMap((item) => requestBlocks(item, spell)) },
        { role: "user", content: turn.results.map((result) => encodeResult(result, deferred)) },
      ];
    case "other":
      return [{ role: "user", content: [turn.item.raw] }];
  }
}

function encodeResult(result: ResultItem, deferred: ReadonlySet<string | undefined>): JsonObject {
  const { parts: _parts, ...more } = echoed(result.extra, wire);
  const found = result.kind === "tool_search" ? foundTools(result, deferred) : [];
  const content = found.length > 0 ? found : encodeContent(result.content, result.extra);
  const isText = content.length === 1 && content[0]!["type"] === "text" && Object.keys(content[0]!).length === 2;
  return defined({
    type: "tool_result",
    tool_use_id: legalId(result.callId, idRules.messages),
    content: content.length === 0 ? undefined : isText ? content[0]!["text"] : content,
    is_error: result.ok ? undefined : true,
    ...more,
  });
}

/** Joins consecutive messages of one speaker; in a user's message, results come first. */
function mergeTurns(messages: readonly Message[]): JsonObject[] {
  const merged: { role: string; content: JsonObject[] }[] = [];
  for (const message of messages) {
    if (message.content.length === 0) continue;
    const last = merged.at(-1);
    if (last?.role === message.role && message.role !== "system") last.content.push(...message.content);
    else merged.push({ role: message.role, content: [...message.content] });
  }
  return merged.map(jsonObject);
}

const breakpoint = { cache_control: { type: "ephemeral" } };

/** A tool that is loaded later may not be marked. */
function markTools(tools: readonly JsonObject[]): readonly JsonObject[] {
  const last = tools.findLastIndex((tool) => tool["defer_loading"] !== true);
  return [...markLast(tools.slice(0, last + 1)), ...tools.slice(last + 1)];
}

function markLast(list: readonly JsonObject[]): JsonObject[] {
  return list.map((entry, index) => (index === list.length - 1 ? { ...entry, ...breakpoint } : entry));
}

function markLastUser(messages: readonly JsonObject[]): JsonObject[] {
  const last = messages.findLastIndex((message) => message["role"] === "user");
  return messages.map((message, index) =>
    index === last ? { ...message, content: markLast(message["content"] as readonly JsonObject[]) } : message,
  ); // built above
}

const namedFields: ReadonlySet<string> = new Set(
  "model max_tokens messages system tools tool_choice temperature top_p stop_sequences thinking output_config metadata stream".split(
    " ",
  ),
);

export function decodeRequest(body: unknown, { sign }: DecodeRequestOptions = {}): ModelRequest {
  const raw = object(body);
  if (raw["thread"] !== undefined && raw["thread"] !== null) throw threadRefused();
  const config = object(raw["output_config"]);
  const thinking = object(raw["thinking"]);
  const format = object(config["format"]);
  const tools = decodeTools(raw["tools"]);
  const stop = array(raw["stop_sequences"]).filter((entry) => typeof entry === "string");
  return defined({
    model: string(raw["model"]) ?? "",
    instructions: decodeSystem(raw["system"]),
    input: unpackCarriers(objects(raw["messages"]).flatMap((message) => decodeMessage(message, sign))),
    tools,
    ...(tools.length === 0 ? {} : decodeChoice(raw["tool_choice"])),
    maxOutputTokens: number(raw["max_tokens"]),
    temperature: number(raw["temperature"]),
    topP: number(raw["top_p"]),
    stop: stop.length > 0 ? stop : undefined,
    reasoning: nonEmpty(defined({ effort: word(config["effort"]), budgetTokens: number(thinking["budget_tokens"]) })),
    outputSchema:
      format["type"] === "json_schema" ? { name: "output", schema: jsonObject(object(format["schema"])) } : undefined,
    cacheKey: sessionKey(word(object(raw["metadata"])["user_id"])) ?? (hasBreakpoint(raw) ? "default" : undefined),
    stream: boolean(raw["stream"]),
    extra: decodeExtra(raw),
  });
}

/**
 * A thread sends only what is new. The SDK's tool runner continues without one if it is refused in
 * exactly this form, and gives up at any other 400.
 */
function threadRefused(): RequestError {
  const message = "Threads are not supported here: send the whole conversation.";
  const details = { error_code: "thread_unsupported_request", unsupported: ["thread"] };
  return new RequestError(400, message, { type: "error", error: { type: "invalid_request_error", message, details } });
}

function decodeMessage(raw: Raw, sign: Sign | undefined): readonly Item[] {
  switch (raw["role"]) {
    case "assistant":
      return blocksOf(raw["content"]).map((block) => decodeBlock(block, undefined, undefined, sign));
    case "system":
      return [{ type: "message", role: "system", ...decodeContent(raw["content"]) }];
    default:
      return decodeUser(raw["content"]);
  }
}

/** Blocks with empty text are left out, because this API does not accept them. */
function blocksOf(content: unknown): readonly Raw[] {
  if (typeof content === "string") return content === "" ? [] : [{ type: "text", text: content }];
  return objects(content).filter((block) => block["type"] !== "text" || (string(block["text"]) ?? "") !== "");
}

function decodeUser(content: unknown): readonly Item[] {
  if (typeof content === "string") return userMessage(content);
  const blocks = objects(content);
  const results = blocks.filter((block) => block["type"] === "tool_result").map(decodeResult);
  return [...results, ...userMessage(blocks.filter((block) => block["type"] !== "tool_result"))];
}

function userMessage(content: unknown): readonly MessageItem[] {
  const decoded = decodeContent(content);
  return decoded.content.length === 0 && decoded.extra === undefined
    ? []
    : [{ type: "message", role: "user", ...decoded }];
}

const resultFields: ReadonlySet<string> = new Set("type tool_use_id content is_error cache_control".split(" "));

function decodeResult(raw: Raw): ResultItem {
  return {
    type: "result",
    callId: string(raw["tool_use_id"]) ?? "",
    kind: "function",
    ...decodeContent(raw["content"], extraFields(wire, raw, resultFields)),
    ok: raw["is_error"] !== true,
  };
}

function hasBreakpoint(raw: Raw): boolean {
  const lists = [raw["tools"], raw["system"], ...objects(raw["messages"]).map((message) => message["content"])];
  return (
    raw["cache_control"] !== undefined ||
    lists.some((list) => objects(list).some((entry) => entry["cache_control"] !== undefined))
  );
}

function decodeExtra(raw: Raw): Extra | undefined {
  let extra = extraFields(wire, raw, namedFields);
  const keep = (key: string, fields: Raw) => {
    if (Object.keys(fields).length > 0) extra = withFields(wire, extra, { [key]: fields });
  };
  if (array(raw["system"]).length > 1) extra = withFields(wire, extra, { system: raw["system"] });
  // The budget also has a neutral name. On this wire the field goes back as it came.
  keep("thinking", object(raw["thinking"]));
  const { effort: _effort, format: _format, ...config } = object(raw["output_config"]);
  keep("output_config", config);
  const { user_id: _user, ...metadata } = object(raw["metadata"]);
  keep("metadata", metadata);
  return extra;
}
