/** A client's Messages request as a neutral one. */
import { defined } from "../../base/json.ts";
import type { Extra, Item, MessageItem, ModelRequest, ResultItem } from "../../spec/model.ts";
import {
  array,
  boolean,
  extraFields,
  jsonObject,
  number,
  object,
  objects,
  type Raw,
  string,
  withFields,
  word,
} from "../raw.ts";
import { type Sign, unpackCarriers } from "../envelope.ts";
import type { DecodeRequestOptions } from "../codec.ts";
import { RequestError } from "../failure.ts";
import { sessionKey } from "../ids.ts";
import { decodeBlock } from "./decode-block.ts";
import { wire } from "./ending.ts";
import { decodeContent, decodeSystem } from "./parts.ts";
import { decodeChoice, decodeTools } from "./tools.ts";

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
 * A thread sends only what is new and trusts the server to know the rest. The SDK's tool runner goes on
 * without one when it is told so in exactly this form, and gives up at any other 400.
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

/** Empty text is no content. */
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
  // The budget has a neutral name as well; on this wire the field goes back as it came.
  keep("thinking", object(raw["thinking"]));
  const { effort: _effort, format: _format, ...config } = object(raw["output_config"]);
  keep("output_config", config);
  const { user_id: _user, ...metadata } = object(raw["metadata"]);
  keep("metadata", metadata);
  return extra;
}

function nonEmpty<T extends object>(value: T): T | undefined {
  return Object.keys(value).length > 0 ? value : undefined;
}
