/** A neutral request as a Chat Completions body that strict servers and chat templates accept. */
import { partsToText, text, type Part } from "../../base/content.ts";
import { defined, type Json, type JsonObject } from "../../base/json.ts";
import type { CallItem, ModelRequest, NativeSpec, ToolChoice } from "../../spec/model.ts";
import { argumentsText } from "../arguments.ts";
import type { EncodedRequest, EncodeOptions, Quirks } from "../codec.ts";
import { prepareHistory, type SaidItem, type Turn } from "../history.ts";
import { legalCacheKey, legalId } from "../ids.ts";
import type { NameBook } from "../names.ts";
import { array, echoed, json } from "../raw.ts";
import { effortOf, settingsFor } from "../settings.ts";
import { choiceNames, type LoweredTools, lowerTools, oncePerLowered, splitOwn, type WireTool } from "../tools.ts";
import { encodeContent, splitResult } from "./parts.ts";

export function encodeRequest(request: ModelRequest, options: EncodeOptions = {}): EncodedRequest {
  const quirks = options.quirks ?? {};
  const target = options.target ?? "openai";
  const { own, rest } = splitOwn(request, encodeNative);
  const lowered = lowerTools(rest, {
    target,
    history: request.input,
    ...(target === "openai" || target === "openai-strict" ? { maxTools: 128 } : {}),
  });
  const body: JsonObject = {
    model: request.model,
    messages: encodeMessages(request, lowered.book, quirks),
    ...encodeTools(request, lowered, own, options),
    ...encodeSettings(request, quirks),
    ...ownSettings(request, quirks),
  };
  return { body, names: lowered.book.table, dropped: lowered.dropped };
}

function encodeSettings(request: ModelRequest, quirks: Quirks): JsonObject {
  const schema = request.outputSchema;
  const newer = quirks.maxTokensField === "max_completion_tokens";
  const stops = request.stop;
  return defined({
    max_tokens: newer ? undefined : request.maxOutputTokens,
    max_completion_tokens: newer ? request.maxOutputTokens : undefined,
    temperature: request.temperature,
    top_p: request.topP,
    stop: stops === undefined || stops.length === 0 ? undefined : stops,
    reasoning_effort: effortOf(request.reasoning),
    response_format: schema && encodeFormat(schema),
    prompt_cache_key: quirks.noCacheKey === true ? undefined : legalCacheKey(request.cacheKey),
    stream: request.stream,
    stream_options: request.stream === true && quirks.noStreamOptions !== true ? { include_usage: true } : undefined,
  });
}

/** Fields of OpenAI's own platform. Clients send them everywhere, and other servers refuse unknown fields. */
const platformFields =
  /^(?:store|metadata|service_tier|safety_identifier|verbosity|prediction|modalities|audio|web_search_options|prompt_cache_retention)$/;

function ownSettings(request: ModelRequest, quirks: Quirks): JsonObject {
  const fields = settingsFor(request.extra, "chat");
  if (quirks.noPlatformFields !== true) return fields;
  return Object.fromEntries(Object.entries(fields).filter(([name]) => !platformFields.test(name)));
}

/** A schema that accepts any object is the older JSON mode, which more servers know. */
function encodeFormat(schema: NonNullable<ModelRequest["outputSchema"]>): JsonObject {
  const isAnyObject = Object.keys(schema.schema).length === 1 && schema.schema["type"] === "object";
  return isAnyObject ? { type: "json_object" } : { type: "json_schema", json_schema: defined({ ...schema }) };
}

/** Without tools there is no `tools`, no choice and no parallel flag, because servers refuse each of them alone. */
function encodeTools(
  request: ModelRequest,
  { tools: all, book }: LoweredTools,
  own: readonly JsonObject[],
  options: EncodeOptions,
): JsonObject {
  const quirks = options.quirks ?? {};
  const mayAll = typeof request.toolChoice !== "object" && request.toolChoice !== "none";
  const tools = mayAll ? all : all.filter((tool) => mayCall(tool.name, request.toolChoice, book, quirks));
  if (tools.length + own.length === 0) return {};
  const isOpenAI = (options.target ?? "openai").startsWith("openai");
  const encoded = encodeOnce(tools, `${isOpenAI} ${quirks.customTools === true}`, (tool) =>
    encodeTool(tool, isOpenAI, quirks),
  );
  const choice = quirks.noToolChoice === true ? undefined : request.toolChoice;
  return defined({
    tools: own.length === 0 ? encoded : [...encoded, ...own],
    tool_choice: choice === undefined ? undefined : encodeChoice(choice, tools, book, quirks),
    parallel_tool_calls: quirks.noParallelFlag === true ? undefined : request.parallel,
  });
}

const encodeOnce = oncePerLowered();

/** A tool of some Chat server's own, sent by a client that knows that server. */
function encodeNative(spec: NativeSpec): JsonObject | undefined {
  return spec.wire === "chat" ? { type: spec.type, ...spec.options } : undefined;
}

/** If a server cannot be told which tools may be called, it gets only those. */
function mayCall(name: string, choice: ToolChoice | undefined, book: NameBook, quirks: Quirks): boolean {
  if (choice === "none") return quirks.noToolChoice !== true;
  if (typeof choice !== "object") return true;
  const isSaid = "allowed" in choice ? quirks.allowedTools === true : quirks.noToolChoice !== true;
  return isSaid || choiceNames(choice, book)?.has(name) === true;
}

/** Only OpenAI knows `strict`; others refuse it. */
function encodeTool(tool: WireTool, isOpenAI: boolean, quirks: Quirks): JsonObject {
  const { spec, name } = tool;
  if (spec.kind === "custom" && quirks.customTools === true) {
    const { format } = spec;
    const nested =
      format?.type === "grammar"
        ? { type: "grammar", grammar: { syntax: format.syntax, definition: format.definition } }
        : format;
    return { type: "custom", custom: defined({ name, description: spec.description, format: nested }) };
  }
  const { description, parameters } = tool;
  const strict = isOpenAI ? tool.strict : undefined;
  return { type: "function", function: defined({ name, description, parameters, strict }) };
}

function encodeChoice(choice: ToolChoice, tools: readonly WireTool[], book: NameBook, quirks: Quirks): Json {
  if (typeof choice === "string") return choice;
  const refer = (name: string): JsonObject => {
    const custom = quirks.customTools === true && tools.find((tool) => tool.name === name)?.spec.kind === "custom";
    return custom ? { type: "custom", custom: { name } } : { type: "function", function: { name } };
  };
  if ("allowed" in choice) {
    if (quirks.allowedTools !== true) return choice.mode;
    const names = [...(choiceNames(choice, book) ?? [])];
    return { type: "allowed_tools", allowed_tools: { mode: choice.mode, tools: names.map(refer) } };
  }
  return refer(book.spell(choice.name, choice.namespace));
}

interface Speech {
  readonly book: NameBook;
  readonly quirks: Quirks;
}

function encodeMessages(request: ModelRequest, book: NameBook, quirks: Quirks): readonly JsonObject[] {
  const { system, turns } = prepareHistory(request, { wire: "chat", laterSystem: quirks.laterSystem === true });
  const speech = { book, quirks };
  return [
    ...(system === undefined ? [] : [{ role: "system", content: system }]),
    ...turns.flatMap((turn) => encodeTurn(turn, speech)),
  ];
}

function encodeTurn(turn: Turn, speech: Speech): readonly JsonObject[] {
  switch (turn.role) {
    case "system":
      return [{ role: turn.message.role, content: encodeContent(turn.message.content) }];
    case "user": {
      const content = turn.message.content.filter((part) => part.type !== "text" || part.text !== "");
      if (content.length === 0) return [];
      return [{ role: "user", content: encodeContent(content), ...echoed(turn.message.extra, "chat") }];
    }
    case "other":
      return [turn.item.raw];
    case "assistant":
      return [...encodeSaid(turn.items, speech), ...encodeResults(turn, speech)];
  }
}

function encodeSaid(items: readonly SaidItem[], speech: Speech): readonly JsonObject[] {
  const { quirks } = speech;
  const calls = items.filter((item) => item.type === "call").map((call) => encodeCall(call, speech));
  const messages = items.filter((item) => item.type === "message");
  // One string, because templates accept nothing else here, and this wire has no place for pictures made by a model.
  const words = partsToText(
    messages.flatMap((message) => message.content.filter((part) => part.type !== "text" || part.text !== "")),
  );
  const refusal = messages.find((message) => message.refusal !== undefined)?.refusal;
  const content = words === "" ? emptyContent(calls.length > 0, quirks) : words;
  // Several servers refuse an empty assistant message.
  if (calls.length === 0 && words === "" && refusal === undefined) return [];
  return [
    defined({
      role: "assistant",
      content,
      refusal,
      ...encodeReasoning(items, calls.length > 0, quirks),
      tool_calls: calls.length === 0 ? undefined : calls,
      ...Object.assign({}, ...messages.map((message) => echoed(message.extra, "chat"))),
    }),
  ];
}

function emptyContent(hasCalls: boolean, quirks: Quirks): string | null {
  return hasCalls && quirks.emptyContent !== true ? null : "";
}

/**
 * Servers of thinking models expect the thoughts to be sent back with the calls, and an empty string if there were
 * none.
 */
function encodeReasoning(items: readonly SaidItem[], hasCalls: boolean, quirks: Quirks): JsonObject {
  const thoughts = items.filter((item) => item.type === "reasoning");
  const echoes = thoughts.map((item) => echoed(item.extra, "chat"));
  const lists = echoes.flatMap((fields) => array(fields["reasoning_details"]).map(json));
  const details: JsonObject = Object.assign({}, ...echoes, lists.length === 0 ? {} : { reasoning_details: lists });
  if (quirks.echoReasoning === undefined) return details;
  const isOnlyOwn = quirks.onlyOwnReasoning === true;
  // A thought with another provider's state does not belong to this server.
  const known = thoughts.filter((item) => item.text !== undefined && !(isOnlyOwn && item.opaque !== undefined));
  if (known.length === 0 && (isOnlyOwn || !hasCalls)) return details;
  return { [quirks.echoReasoning]: known.map((item) => item.text).join(""), ...details };
}

function encodeCall(call: CallItem, { book, quirks }: Speech): JsonObject {
  const id = wireId(call.id, quirks);
  const name = book.spell(call.name, call.namespace);
  if (call.kind === "custom" && quirks.customTools === true) {
    return { id, type: "custom", custom: { name, input: call.arguments }, ...callExtra(call) };
  }
  return { id, type: "function", function: { name, arguments: argumentsText(call) }, ...callExtra(call) };
}

/** Google's Chat endpoint has its own field for the signature that Google's other API puts on a call. */
function callExtra(call: CallItem): JsonObject {
  const signature = echoed(call.extra, "gemini")["thoughtSignature"];
  return signature === undefined
    ? echoed(call.extra, "chat")
    : { extra_content: { google: { thought_signature: signature } } };
}

/** OpenAI refuses ids over 40 characters on this wire, and no server minds shorter ones. */
function wireId(id: string, quirks: Quirks): string {
  return legalId(
    id,
    quirks.idLength === undefined ? { max: 40, anyCharacter: true } : { max: quirks.idLength, exact: true },
  );
}

/** Marks a failed result in its text: this wire has no flag for it. */
export const errorTag = "Error: ";

function encodeResults(
  { items, results }: Extract<Turn, { role: "assistant" }>,
  { book, quirks }: Speech,
): readonly JsonObject[] {
  const media: Part[] = [];
  const calls = items.filter((item) => item.type === "call");
  const messages = results.map((result) => {
    const split = splitResult(result.content);
    if (split.media.length > 0)
      media.push(text(`[from the result of ${result.name ?? "the call"} ${result.callId}]`), ...split.media);
    const content = result.ok || split.text.startsWith("Error") ? split.text : errorTag + split.text;
    const call = quirks.resultNames === true ? calls.find(({ id }) => id === result.callId) : undefined;
    const name = call === undefined ? undefined : book.spell(call.name, call.namespace);
    return defined({ role: "tool", tool_call_id: wireId(result.callId, quirks), name, content });
  });
  return media.length === 0 ? messages : [...messages, { role: "user", content: encodeContent(media) }];
}
