/**
 * A client's Chat Completions body as a neutral request. Unknown fields are kept, so that nothing a
 * client asks for is silently lost.
 */
import { partsToText, text, type Part } from "../../base/content.ts";
import { defined, isObject } from "../../base/json.ts";
import type {
  CallItem,
  CallKind,
  FunctionSpec,
  CustomSpec,
  Item,
  ModelRequest,
  ReasoningItem,
  ResultItem,
  ToolChoice,
  ToolSpec,
} from "../../spec/model.ts";
import { readArgumentsText, writeArguments } from "../arguments.ts";
import type { DecodeRequestOptions } from "../codec.ts";
import { openTurn, type Sign } from "../envelope.ts";
import { inventId } from "../ids.ts";
import {
  array,
  boolean,
  count,
  extraFields,
  jsonObject,
  number,
  object,
  objects,
  string,
  word,
  type Raw,
} from "../raw.ts";
import { errorTag } from "./encode-request.ts";
import { decodeContent } from "./parts.ts";

const knownFields = new Set([
  "model",
  "messages",
  "tools",
  "functions",
  "tool_choice",
  "function_call",
  "parallel_tool_calls",
  "stream",
  "stream_options",
  "max_tokens",
  "max_completion_tokens",
  "temperature",
  "top_p",
  "stop",
  "reasoning_effort",
  "response_format",
  "prompt_cache_key",
]);

export function decodeRequest(body: unknown, { sign }: DecodeRequestOptions = {}): ModelRequest {
  const raw = object(body);
  const { instructions, input } = decodeMessages(objects(raw["messages"]), sign);
  return {
    model: string(raw["model"]) ?? "",
    ...defined({ instructions }),
    input,
    tools: [...objects(raw["tools"]).flatMap(decodeTool), ...objects(raw["functions"]).map(decodeFunction)],
    ...decodeSettings(raw),
    ...defined({ extra: extraFields("chat", raw, knownFields) }),
  };
}

function decodeSettings(raw: Raw): Omit<ModelRequest, "model" | "input" | "tools" | "instructions" | "extra"> {
  const stop =
    typeof raw["stop"] === "string" ? [raw["stop"]] : array(raw["stop"]).filter((word) => typeof word === "string");
  const effort = word(raw["reasoning_effort"]);
  return defined({
    toolChoice: decodeChoice(raw["tool_choice"] ?? raw["function_call"]),
    parallel: boolean(raw["parallel_tool_calls"]),
    maxOutputTokens: count(raw["max_completion_tokens"]) ?? count(raw["max_tokens"]),
    temperature: number(raw["temperature"]),
    topP: number(raw["top_p"]),
    stop: stop.length === 0 ? undefined : stop,
    reasoning: effort === undefined ? undefined : { effort },
    outputSchema: decodeFormat(object(raw["response_format"])),
    cacheKey: word(raw["prompt_cache_key"]),
    stream: boolean(raw["stream"]),
  });
}

function decodeFormat(format: Raw): ModelRequest["outputSchema"] {
  if (format["type"] === "json_object") return { name: "answer", schema: { type: "object" } };
  const schema = object(format["json_schema"]);
  if (format["type"] !== "json_schema" || !isObject(schema["schema"])) return undefined;
  return {
    name: word(schema["name"]) ?? "answer",
    schema: jsonObject(schema["schema"]),
    ...defined({ strict: boolean(schema["strict"]) }),
  };
}

function decodeChoice(choice: unknown): ToolChoice | undefined {
  if (choice === "auto" || choice === "none" || choice === "required") return choice;
  if (!isObject(choice)) return undefined;
  const allowed = choice["allowed_tools"];
  if (isObject(allowed)) {
    const names = objects(allowed["tools"]).flatMap((tool) => referredName(tool) ?? []);
    return { allowed: names, mode: allowed["mode"] === "required" ? "required" : "auto" };
  }
  const name = referredName(choice) ?? word(choice["name"]);
  if (name === undefined) return undefined;
  return choice["type"] === "custom" ? { name, kind: "custom" } : { name };
}

function referredName(tool: Raw): string | undefined {
  return word(object(tool["function"])["name"]) ?? word(object(tool["custom"])["name"]);
}

function decodeTool(tool: Raw): readonly ToolSpec[] {
  if (isObject(tool["custom"])) return [decodeCustom(tool["custom"])];
  if (isObject(tool["function"])) return [decodeFunction(tool["function"])];
  const type = word(tool["type"]);
  if (type === undefined) return [];
  const { type: _type, ...options } = tool;
  return [{ kind: "native", type, name: word(tool["name"]) ?? type, wire: "chat", options: jsonObject(options) }];
}

function decodeFunction(tool: Raw): FunctionSpec {
  return {
    kind: "function",
    name: word(tool["name"]) ?? "",
    description: string(tool["description"]) ?? "",
    parameters: isObject(tool["parameters"]) ? jsonObject(tool["parameters"]) : { type: "object", properties: {} },
    ...defined({ strict: boolean(tool["strict"]) }),
  };
}

function decodeCustom(tool: Raw): CustomSpec {
  const format = object(tool["format"]);
  const grammar = object(format["grammar"]);
  const base = {
    kind: "custom",
    name: word(tool["name"]) ?? "",
    description: string(tool["description"]) ?? "",
  } as const;
  if (format["type"] === "grammar") {
    const syntax = grammar["syntax"] === "regex" ? "regex" : "lark";
    return { ...base, format: { type: "grammar", syntax, definition: string(grammar["definition"]) ?? "" } };
  }
  return format["type"] === "text" ? { ...base, format: { type: "text" } } : base;
}

/** The first system message becomes the instructions. Later ones keep their place. */
function decodeMessages(
  messages: readonly Raw[],
  sign: Sign | undefined,
): { readonly instructions?: string; readonly input: readonly Item[] } {
  const [first, ...rest] = messages;
  const words = first?.["role"] === "system" ? decodeContent(first["content"]) : [];
  const isInstructions = words.length > 0 && words.every((part) => part.type === "text");
  const calls = new Map<string, CallItem>();
  const input = (isInstructions ? rest : messages).flatMap((message, at) =>
    openTurn(decodeMessage(message, at, calls), stateOf, sign),
  );
  return isInstructions ? { instructions: partsToText(words), input } : { input };
}

/** The field in which clients of Google's Chat endpoint give back what they were given. */
function stateOf(call: CallItem): string | undefined {
  const content = object(call.extra?.wire === "chat" ? call.extra.fields["extra_content"] : undefined);
  return word(object(content["google"])["thought_signature"]);
}

function decodeMessage(message: Raw, at: number, calls: Map<string, CallItem>): readonly Item[] {
  const role = message["role"];
  switch (role) {
    case "system":
    case "developer":
    case "user":
      return [
        { type: "message", role, content: decodeContent(message["content"]), ...defined({ extra: nameOf(message) }) },
      ];
    case "assistant":
      return decodeAssistant(message, at, calls);
    case "tool":
      return [decodeResult(message, word(message["tool_call_id"]) ?? "", calls)];
    case "function": {
      const name = word(message["name"]);
      const call = [...calls.values()].findLast((known) => known.name === name);
      return [decodeResult(message, call?.id ?? "", calls)];
    }
    default:
      return [{ type: "other", wire: "chat", raw: jsonObject(message) }];
  }
}

function nameOf(message: Raw): { wire: string; fields: { name: string } } | undefined {
  const name = word(message["name"]);
  return name === undefined ? undefined : { wire: "chat", fields: { name } };
}

function decodeAssistant(message: Raw, at: number, calls: Map<string, CallItem>): readonly Item[] {
  const content = decodeContent(message["content"]);
  const refusal = word(message["refusal"]);
  const items: Item[] = [...decodeReasoning(message)];
  if (content.length > 0 || refusal !== undefined) {
    items.push({ type: "message", role: "assistant", content, ...defined({ refusal, extra: nameOf(message) }) });
  }
  const listed = objects(message["tool_calls"]);
  const legacy = message["function_call"];
  const all = listed.length === 0 && isObject(legacy) ? [{ function: legacy }] : listed;
  for (const [place, raw] of all.entries()) {
    const call = decodeCall(raw, inventId("history", at * 1000 + place));
    calls.set(call.id, call);
    items.push(call);
  }
  return items;
}

function decodeReasoning(message: Raw): readonly ReasoningItem[] {
  const words = string(message["reasoning_content"]) ?? string(message["reasoning"]);
  const details = message["reasoning_details"];
  const extra = Array.isArray(details)
    ? { wire: "chat", fields: jsonObject({ reasoning_details: details }) }
    : undefined;
  return words === undefined && extra === undefined ? [] : [{ type: "reasoning", ...defined({ text: words, extra }) }];
}

const callFields = new Set(["id", "type", "index", "function", "custom"]);

function decodeCall(raw: Raw, invented: string): CallItem {
  const extra = defined({ extra: extraFields("chat", raw, callFields) });
  const id = word(raw["id"]) ?? invented;
  if (isObject(raw["custom"])) {
    const { name, input } = raw["custom"];
    return {
      type: "call",
      kind: "custom",
      id,
      name: word(name) ?? "",
      arguments: string(input) ?? "",
      complete: true,
      ...extra,
    };
  }
  const body = object(raw["function"]);
  const words = writeArguments(body["arguments"]);
  return { type: "call", kind: "function", id, name: word(body["name"]) ?? "", ...readArgumentsText(words), ...extra };
}

function decodeResult(message: Raw, callId: string, calls: ReadonlyMap<string, CallItem>): ResultItem {
  const call = calls.get(callId);
  const kind: CallKind = call?.kind ?? "function";
  const content = decodeContent(message["content"]);
  const [first, ...rest] = content;
  const failed = first?.type === "text" && first.text.startsWith(errorTag);
  const untagged: readonly Part[] = failed ? [text(first.text.slice(errorTag.length)), ...rest] : content;
  return {
    type: "result",
    callId,
    kind,
    ...defined({ name: call?.name ?? word(message["name"]) }),
    content: untagged,
    ok: !failed,
  };
}
