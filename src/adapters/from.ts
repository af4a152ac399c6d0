/** Entry of `callgate/from`: tools written for other libraries, as tools of ours. */
import type { Part } from "../base/content.ts";
import { CallError } from "../base/error.ts";
import { isObject, type Json, type JsonObject } from "../base/json.ts";
import { checkDeclaration } from "../registry/define.ts";
import { result } from "../spec/result.ts";
import type { AnyTool, ToolContext, ToolOutput, ToolProgress } from "../spec/tool.ts";

/**
 * What a tool of the other library cannot say. What it may change is unknown unless you say so here, and
 * then every call is asked about and runs alone. `{ mutates: false }` says that the tool only reads, and
 * `access` says what it touches.
 */
export type FromOptions = Partial<Omit<AnyTool, "name" | "description" | "input" | "run">> & {
  /** Replaces the tool's own name. */
  readonly name?: string;
  /**
   * For a tool that asks for approval in its own library. Here rules ask, so confirm that one does (`{
   * tool, decision: "ask" }` in `gate.rules`). Otherwise the tool is not accepted.
   */
  readonly needsApproval?: "by rule";
};

/** A tool of the AI SDK: `tool()` or `dynamicTool()`, with `execute`. */
export interface AiSdkToolLike {
  readonly description?: string | undefined;
  readonly inputSchema: unknown;
  readonly execute?: unknown;
  readonly needsApproval?: unknown;
  readonly toModelOutput?: unknown;
}

/** An AI SDK tool as one of ours. Its name is the key it has in the AI SDK's `tools`. */
export function fromAiSdk(name: string, tool: AiSdkToolLike, options: FromOptions = {}): AnyTool {
  const { execute, toModelOutput } = tool;
  if (typeof execute !== "function")
    throw new TypeError(`fromAiSdk: '${name}' has no execute: it runs in the page or at the provider`);
  return declare("fromAiSdk", { name, description: tool.description ?? "", input: tool.inputSchema, tool }, options, {
    async run(input, ctx) {
      const how = { toolCallId: ctx.callId, messages: [], abortSignal: ctx.signal, experimental_context: undefined };
      const output = await lastOf(execute.call(tool, input, how) as unknown, ctx);
      if (typeof toModelOutput !== "function") return toOutput(output);
      const told = (await toModelOutput.call(tool, { toolCallId: ctx.callId, input, output })) as unknown;
      return readModelOutput(told);
    },
  });
}

/** A tool of LangChain: `tool()`, `DynamicStructuredTool`, a toolkit's. */
export interface LangChainToolLike {
  readonly name: string;
  readonly description: string;
  readonly schema: unknown;
  readonly invoke: (call: never, config?: never) => Promise<unknown>;
}

/** A LangChain tool as one of ours. */
export function fromLangChain(tool: LangChainToolLike, options: FromOptions = {}): AnyTool {
  const { name, description, schema } = tool;
  // The parameter's type is `never`, so that tools with any type of input are accepted.
  const invoke = tool.invoke.bind(tool) as (call: unknown, config: unknown) => Promise<unknown>;
  return declare("fromLangChain", { name, description, input: schema, tool }, options, {
    async run(input, ctx) {
      const call = { type: "tool_call", id: ctx.callId, name, args: input };
      const message = await invoke(call, { signal: ctx.signal });
      if (!isObject(message) || !("content" in message)) return toOutput(message);
      return result({ content: readBlocks(message["content"]), ok: message["status"] !== "error" });
    },
  });
}

/** A function tool of the OpenAI Agents SDK. */
export interface AgentsToolLike {
  readonly name: string;
  readonly description: string;
  readonly parameters: unknown;
  readonly needsApproval?: unknown;
  readonly invoke: (context: never, input: string, details?: never) => Promise<unknown>;
}

/** Options of `fromAgents`. */
export interface FromAgentsOptions extends FromOptions {
  /** A `RunContext`, for tools that read it. */
  readonly context?: unknown;
}

/** A function tool of the OpenAI Agents SDK as one of ours. */
export function fromAgents(tool: AgentsToolLike, options: FromAgentsOptions = {}): AnyTool {
  const { context = { context: {} }, ...rest } = options;
  const { name, description, parameters } = tool;
  // The parameter's type is `never`, so that tools with any type of context are accepted.
  const invoke = tool.invoke.bind(tool) as (context: unknown, input: string, details: unknown) => Promise<unknown>;
  return declare("fromAgents", { name, description, input: parameters, tool }, rest, {
    async run(input, ctx) {
      const details = { toolCall: { callId: ctx.callId, name, type: "function_call" }, signal: ctx.signal };
      const output = await invoke(context, JSON.stringify(input), details);
      return Array.isArray(output) ? readBlocks(output) : toOutput(output);
    },
  });
}

/** A function as OpenAI's APIs spell it, in the form of Chat Completions or of Responses. */
export type OpenAiFunction =
  | { readonly type: "function"; readonly function: OpenAiFields }
  | ({ readonly type: "function" } & OpenAiFields);
interface OpenAiFields {
  readonly name: string;
  readonly description?: string | null | undefined;
  readonly parameters?: unknown;
}

/** A function in OpenAI's JSON form, with the handler that it needs here, as one of our tools. */
export function fromOpenAi(
  json: OpenAiFunction,
  run: (input: JsonObject, ctx: ToolContext) => ToolOutput | Promise<ToolOutput>,
  options: FromOptions = {},
): AnyTool {
  const { name, description, parameters } = "function" in json ? json.function : json;
  const input = parameters ?? { type: "object", properties: {} };
  return declare("fromOpenAi", { name, description: description ?? "", input, tool: json }, options, { run });
}

interface Foreign {
  readonly name: string;
  readonly description: string;
  readonly input: unknown;
  readonly tool: object;
}

function declare(
  from: string,
  { name, description, input, tool }: Foreign,
  { needsApproval, ...options }: FromOptions,
  { run }: { run(input: JsonObject, ctx: ToolContext): ToolOutput | Promise<ToolOutput> },
): AnyTool {
  const asks = "needsApproval" in tool ? tool.needsApproval : undefined;
  const byRule = needsApproval === "by rule";
  const rule = `Add the rule { tool: "${options.name ?? name}", decision: "ask" } to gate.rules, and say so with { needsApproval: "by rule" }.`;
  // A value that is neither a question nor a no counts as a yes.
  const always = Boolean(asks) && typeof asks !== "function";
  if (always && !byRule) throw new TypeError(`${from}: '${name}' asks for approval. ${rule}`);
  return checkDeclaration({
    mutates: true,
    ...options,
    name: options.name ?? name,
    description,
    input: readSchema(from, name, input) as AnyTool["input"], // the engine checks the schema
    async run(given: never, ctx: ToolContext) {
      if (
        typeof asks === "function" &&
        !byRule &&
        Boolean(await wantsApproval(from, asks as () => unknown, given, ctx))
      )
        throw new CallError("needs_approval", `${name} asks for approval of this call. It was not run.`, {
          hint: rule,
        });
      return run(given, ctx);
    },
  });
}

/** Calls the tool's question about approval with the arguments in the order of its library. */
function wantsApproval(
  from: string,
  asks: (...args: never[]) => unknown,
  input: unknown,
  { callId }: ToolContext,
): unknown {
  const ask = asks as (...args: unknown[]) => unknown; // its author chose the types
  return from === "fromAgents"
    ? ask({ context: {} }, input, callId)
    : ask(input, { toolCallId: callId, messages: [], experimental_context: undefined });
}

/** Zod, other Standard Schemas and JSON Schemas are taken as they are. The AI SDK's wrappers are opened. */
function readSchema(from: string, name: string, given: unknown): unknown {
  const schema = typeof given === "function" && !("~standard" in given) ? (given as () => unknown)() : given;
  if (!isObject(schema) || "~standard" in schema || !("jsonSchema" in schema)) return schema;
  const json = schema["jsonSchema"];
  if (isObject(json) && typeof json["then"] === "function")
    throw new TypeError(`${from}: the schema of '${name}' is still being made; await it and pass it as 'inputSchema'`);
  return json;
}

/** In the AI SDK every value that a generator yields replaces the one before, and the last one is the result. */
async function lastOf(output: unknown, ctx: ToolContext): Promise<unknown> {
  if (!isAsyncIterable(output)) return output;
  let last: unknown;
  let isFirst = true;
  for await (const next of output) {
    if (!isFirst) ctx.progress(toProgress(last));
    isFirst = false;
    last = next;
  }
  return last;
}

function isAsyncIterable(value: unknown): value is AsyncIterable<unknown> {
  return typeof value === "object" && value !== null && Symbol.asyncIterator in value;
}

function toProgress(value: unknown): ToolProgress {
  return typeof value === "string" ? value : { data: toJson(value) };
}

function toOutput(value: unknown): ToolOutput {
  return typeof value === "string" || value === undefined ? value : toJson(value);
}

/** The value as it would be sent, without what cannot be written as JSON. */
function toJson(value: unknown): Json {
  return JSON.parse(JSON.stringify(value) ?? "null") as Json;
}

function readModelOutput(told: unknown): ToolOutput {
  if (!isObject(told)) return toOutput(told);
  const { type, value, reason } = told;
  if (type === "content") return readBlocks(value);
  if (type === "execution-denied")
    return result({ ok: false, content: typeof reason === "string" ? reason : "The call was not run." });
  const content = typeof value === "string" ? value : JSON.stringify(value);
  return type === "error-text" || type === "error-json" ? result({ ok: false, content }) : content;
}

/** Content blocks in the spellings of LangChain, the AI SDK, the Agents SDK and OpenAI. */
function readBlocks(content: unknown): readonly Part[] {
  if (!Array.isArray(content))
    return [{ type: "text", text: typeof content === "string" ? content : JSON.stringify(content) }];
  return content.map(readBlock);
}

function readBlock(block: unknown): Part {
  const plain: Part = { type: "text", text: typeof block === "string" ? block : (JSON.stringify(block) ?? "") };
  if (!isObject(block) || typeof block["type"] !== "string") return plain;
  if (block["type"] === "text" && typeof block["text"] === "string") return { type: "text", text: block["text"] };
  const nested = [block["image"], block["file"], block["image_url"], block["data"]].filter(isObject);
  const find = (...keys: readonly string[]) => {
    for (const place of [block, ...nested])
      for (const key of keys) if (typeof place[key] === "string") return place[key];
    return undefined;
  };
  const address = find("url", "image_url", "image");
  const inline = /^data:([^;,]+);base64,(.*)$/s.exec(address ?? "");
  const data = inline?.[2] ?? find("data");
  const mediaType = inline?.[1] ?? find("mediaType", "mimeType", "mime_type", "media_type");
  const isImage = block["type"].includes("image") || mediaType?.startsWith("image/") === true;
  const type = isImage ? "image" : "file";
  const kind = mediaType === undefined ? {} : { mediaType };
  if (data !== undefined) return { type, data, ...kind };
  return address === undefined || inline !== null ? plain : { type, url: address, ...kind };
}
