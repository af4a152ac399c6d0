/**
 * Servers with a raw completion endpoint. The model's own template is rendered here, and the text goes
 * to `/completions`. In such a prompt a marker is a token no matter who wrote it, so the template's
 * markers are broken in strings from outside.
 */
import { checkOptions, optionsShape } from "../base/shape.ts";
import { defined, isObject, type Json, type JsonObject } from "../base/json.ts";
import type { Dialect } from "../dialect/dialect.ts";
import { neutralize } from "../dialect/write/neutral.ts";
import { renderTemplate, type SpecialTokens, type TemplateProfile } from "../template/index.ts";
import { chat } from "../wire/chat/index.ts";
import type { Codec, EncodedRequest, Frame } from "../wire/codec.ts";

/** Options of `createCompletionsCodec`. */
export interface CompletionOptions {
  /** The model's chat template, in Jinja. */
  readonly template: string;
  /** What the template does with arguments and system messages, and its markers (`inferFromTemplate`). */
  readonly profile: Pick<TemplateProfile, "arguments" | "system" | "markers" | "end">;
  /** How the model writes calls. */
  readonly dialect: string | Dialect;
  /** The tokenizer's special tokens, which templates name. */
  readonly tokens?: SpecialTokens;
  /** The date that a template may print. */
  readonly now?: () => Date;
}

const completionsCodecShape = optionsShape<CompletionOptions>(
  { template: "string", profile: "table", dialect: "any", tokens: "table", now: "function" },
  "template",
  "profile",
  "dialect",
);

/** A codec for raw completion endpoints. The prompt is rendered here with the model's own chat template. */
export function createCompletionsCodec(options: CompletionOptions): Codec {
  checkOptions("createCompletionsCodec", options, completionsCodecShape);
  return {
    ...chat,
    path: () => "/completions",
    encodeRequest(request, how): EncodedRequest {
      const encoded = chat.encodeRequest(request, how);
      const { messages, tools, stop, max_tokens, max_completion_tokens, temperature, top_p, seed } = encoded.body;
      const prompt = renderPrompt(options, messages, tools, thinkingOf(request.reasoning?.effort));
      const stops = [
        ...(Array.isArray(stop) ? stop : []),
        ...(options.profile.end === null ? [] : [options.profile.end]),
      ];
      const body = {
        model: encoded.body["model"] ?? "",
        prompt,
        stream: true,
        ...defined({ max_tokens: max_tokens ?? max_completion_tokens, temperature, top_p, seed }),
        ...(stops.length === 0 ? {} : { stop: stops }),
      };
      return { ...encoded, body };
    },
    createDecoder(how) {
      const decoder = chat.createDecoder(how);
      return { push: (frame) => decoder.push(toChatFrame(frame)), end: decoder.end };
    },
    decodeAnswer: (body, how) => chat.decodeAnswer(toChatBody(body, "message"), how),
  };
}

function thinkingOf(effort: string | undefined): JsonObject {
  if (effort === undefined) return {};
  const on = effort !== "none";
  return { enable_thinking: on, thinking: on, reasoning_effort: effort };
}

function renderPrompt(
  options: CompletionOptions,
  messages: Json | undefined,
  tools: Json | undefined,
  more: JsonObject,
): string {
  const list = Array.isArray(messages) ? messages.filter(isObject) : [];
  const safe = list.map((message) => toTemplateMessage(message, options));
  const offered = Array.isArray(tools) ? tools.filter(isObject) : [];
  const now = options.now?.() ?? new Date();
  return renderTemplate(options.template, {
    messages: options.profile.system ? safe : withoutSystem(safe),
    ...(offered.length > 0 ? { tools: offered } : {}),
    // FireFunction's name for the same.
    functions: offered.length > 0 ? JSON.stringify(offered.map((tool) => tool["function"] ?? {})) : "",
    datetime: now.toISOString().slice(0, 10),
    add_generation_prompt: true,
    bos_token: options.tokens?.bos ?? "",
    eos_token: options.tokens?.eos ?? "",
    ...more,
    now,
  });
}

type Message = Record<string, unknown>;

/**
 * Arguments in the form that the template wants, content that is never null, and broken markers in
 * text from outside.
 */
function toTemplateMessage(message: Message, options: CompletionOptions): Message {
  const { content, tool_calls, ...rest } = message;
  const words = textOf(content);
  const outside = message["role"] === "tool" || message["role"] === "user";
  const text = outside ? neutralize(words, options.dialect, [], options.profile.markers) : words;
  const calls = Array.isArray(tool_calls) ? tool_calls.filter(isObject) : [];
  return {
    ...rest,
    content: text,
    ...(calls.length === 0 ? {} : { tool_calls: calls.map((call) => toTemplateCall(call, options)) }),
  };
}

function toTemplateCall(call: Message, { profile }: CompletionOptions): Message {
  const { function: named } = call;
  if (!isObject(named) || profile.arguments === "text" || typeof named["arguments"] !== "string") return call;
  try {
    return { ...call, function: { ...named, arguments: JSON.parse(named["arguments"]) as unknown } };
  } catch {
    return call; // A call that was never complete is shown as it was written.
  }
}

function textOf(content: unknown): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content
    .filter(isObject)
    .map((part) => (typeof part["text"] === "string" ? part["text"] : ""))
    .join("\n");
}

/** For a template without a system role, the instructions go before the first question. */
function withoutSystem(messages: readonly Message[]): readonly Message[] {
  const told = messages
    .filter(({ role }) => role === "system" || role === "developer")
    .map(({ content }) => String(content));
  const rest = messages.filter(({ role }) => role !== "system" && role !== "developer");
  const first = rest.findIndex(({ role }) => role === "user");
  if (told.length === 0 || first < 0) return rest;
  return rest.map((message, index) =>
    index === first ? { ...message, content: [...told, String(message["content"])].join("\n\n") } : message,
  );
}

/** `{choices: [{text}]}` is Chat's `{choices: [{delta: {content}}]}`. */
function toChatFrame(frame: Frame): Frame {
  if (!frame.data.startsWith("{")) return frame;
  try {
    return { ...frame, data: JSON.stringify(toChatBody(JSON.parse(frame.data), "delta")) };
  } catch {
    return frame; // Chat's own decoder says what is wrong with it.
  }
}

function toChatBody(body: unknown, field: "delta" | "message"): unknown {
  if (!isObject(body) || !Array.isArray(body["choices"])) return body;
  const choices = body["choices"].filter(isObject).map(({ text, ...choice }) => ({
    ...choice,
    [field]: { role: "assistant", content: typeof text === "string" ? text : "" },
  }));
  return { ...body, choices };
}
