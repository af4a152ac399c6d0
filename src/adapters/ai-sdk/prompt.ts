/** Translates a request of the AI SDK to one of ours: messages to items, tools to specs, and settings to settings. */
import type { LanguageModel } from "ai";
import { text, type Part } from "../../base/content.ts";
import { defined, isObject, type Json, type JsonObject } from "../../base/json.ts";
import type { CallItem, Item, ModelRequest, ToolChoice, ToolSpec } from "../../spec/model.ts";

/** The third version of the AI SDK's model interface, which AI SDK 6 and 7 accept. */
export type AiSdkModel = Extract<Exclude<LanguageModel, string>, { readonly specificationVersion: "v3" }>;
type Options = Parameters<AiSdkModel["doStream"]>[0];
type Message = Options["prompt"][number];
export type Warning = Awaited<ReturnType<AiSdkModel["doGenerate"]>>["warnings"][number];
type ResultOutput = Extract<
  Extract<Message, { role: "tool" }>["content"][number],
  { readonly type: "tool-result" }
>["output"];

/** The name under which our own data travels in the SDK's messages and comes back with them. */
export const own = "callgate";

/** Warns about settings that are not passed on to the model. */
export function warningsOf(options: Options): Warning[] {
  const unsupported = (["topK", "presencePenalty", "frequencyPenalty", "seed"] as const).filter(
    (name) => options[name] !== undefined,
  );
  const tools = (options.tools ?? []).filter(({ type }) => type !== "function");
  return [...unsupported, ...tools.map(({ name }) => `tool ${name}`)].map((feature) => ({
    type: "unsupported",
    feature,
  }));
}

export function toRequest(model: string, options: Options): ModelRequest {
  const { prompt, responseFormat, toolChoice, maxOutputTokens, temperature, topP, stopSequences } = options;
  const system = prompt.flatMap((message) => (message.role === "system" ? [message.content] : []));
  const schema = responseFormat?.type === "json" ? responseFormat.schema : undefined;
  return {
    model,
    input: prompt.flatMap(toItems),
    tools: (options.tools ?? []).flatMap(toSpec),
    parallel: true,
    ...defined({
      instructions: system.length === 0 ? undefined : system.join("\n\n"),
      toolChoice: toolChoice && toChoice(toolChoice),
      maxOutputTokens,
      temperature,
      topP,
      stop: stopSequences,
      outputSchema:
        // JSON Schema both there and here.
        schema && { name: (responseFormat as { name?: string }).name ?? "answer", schema: schema as JsonObject },
    }),
  };
}

function toChoice(choice: NonNullable<Options["toolChoice"]>): ToolChoice {
  return choice.type === "tool" ? { name: choice.toolName } : choice.type;
}

function toSpec(tool: NonNullable<Options["tools"]>[number]): readonly ToolSpec[] {
  if (tool.type !== "function") return [];
  const { name, description = "", inputSchema, inputExamples, strict } = tool;
  return [
    {
      kind: "function",
      name,
      description,
      parameters: inputSchema as JsonObject, // JSON Schema both there and here
      ...defined({ strict, examples: inputExamples?.map(({ input }) => input as Json) }),
    },
  ];
}

function toItems(message: Message): readonly Item[] {
  switch (message.role) {
    case "system":
      return [];
    case "user":
      return [{ type: "message", role: "user", content: message.content.map(toPart) }];
    case "assistant":
      return message.content.flatMap(assistantItem);
    case "tool":
      return message.content.flatMap((part): readonly Item[] => {
        if (part.type !== "tool-result") return [];
        const { ok, content, structured } = readOutput(part.output);
        const { toolCallId: callId, toolName: name } = part;
        return [{ type: "result", callId, kind: "function", name, ok, content, ...defined({ structured }) }];
      });
  }
}

function assistantItem(part: Extract<Message, { role: "assistant" }>["content"][number]): readonly Item[] {
  const kept = "providerOptions" in part ? part.providerOptions?.[own] : undefined;
  switch (part.type) {
    case "text":
      return [{ type: "message", role: "assistant", content: [text(part.text)] }];
    case "reasoning":
      // What we attached to the part ourselves is restored unchanged.
      return [{ type: "reasoning", ...defined({ text: part.text || undefined }), ...kept }];
    case "tool-call": {
      const call: CallItem = {
        type: "call",
        kind: "function",
        id: part.toolCallId,
        name: part.toolName,
        arguments: typeof part.input === "string" ? part.input : JSON.stringify(part.input ?? {}),
        complete: true,
        ...kept,
      };
      return [call.kind === "custom" ? { ...call, arguments: customText(part.input) } : call];
    }
    case "file":
      return [{ type: "message", role: "assistant", content: [toPart(part)] }];
    default:
      return []; // the model's text tells the results of the provider's own tools
  }
}

function customText(input: unknown): string {
  return isObject(input) && typeof input["input"] === "string" ? input["input"] : JSON.stringify(input);
}

function toPart(part: Extract<Message, { role: "user" }>["content"][number]): Part {
  if (part.type === "text") return text(part.text);
  const { mediaType, data, filename } = part;
  const where = data instanceof URL ? { url: data.href } : { data: toBase64(data) };
  if (mediaType.startsWith("image/"))
    return { type: "image", ...(mediaType === "image/*" ? {} : { mediaType }), ...where };
  if (mediaType.startsWith("audio/") && "data" in where) return { type: "audio", mediaType, data: where.data };
  return { type: "file", mediaType, ...defined({ name: filename }), ...where };
}

function toBase64(data: string | Uint8Array): string {
  return typeof data === "string"
    ? data
    : Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString("base64");
}

function readOutput(output: ResultOutput): { ok: boolean; content: readonly Part[]; structured?: Json } {
  switch (output.type) {
    case "text":
      return { ok: true, content: [text(output.value)] };
    case "json":
      return { ok: true, content: [text(JSON.stringify(output.value))], structured: output.value as Json };
    case "error-text":
      return { ok: false, content: [text(output.value)] };
    case "error-json":
      return { ok: false, content: [text(JSON.stringify(output.value))] };
    case "execution-denied":
      return { ok: false, content: [text(`The call was not run: ${output.reason ?? "the user said no"}.`)] };
    case "content":
      return { ok: true, content: output.value.map((part) => toResultPart(part)) };
  }
}

/** The versions spell a file differently, but each has a media type, and data or an address, somewhere. */
function toResultPart(part: { readonly type: string }): Part {
  const found = new Map<string, unknown>(Object.entries(part));
  const data: unknown = found.get("data");
  const inner = new Map<string, unknown>(Object.entries(isObject(data) ? data : part));
  const said = (key: string) => {
    const value = inner.get(key) ?? found.get(key);
    return typeof value === "string" ? value : value instanceof URL ? value.href : undefined;
  };
  if (part.type === "text") return text(said("text") ?? "");
  const mediaType = said("mediaType");
  const where = defined({ data: said("data"), url: said("url") });
  if (where.data === undefined && where.url === undefined) return text(`[${part.type}]`);
  const isImage = part.type.startsWith("image") || mediaType?.startsWith("image/") === true;
  return isImage
    ? { type: "image", ...defined({ mediaType }), ...where }
    : { type: "file", ...defined({ mediaType, name: said("filename") }), ...where };
}
