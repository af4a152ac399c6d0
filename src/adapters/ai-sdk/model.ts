import { createGrowingText, type GrowingText } from "../../base/growing-text.ts";
import { defined, parseJson } from "../../base/json.ts";
import { coerce } from "../../schema/coerce.ts";
import type {
  CallItem,
  Finish,
  Item,
  Model,
  ModelEvent,
  ModelRequest,
  ReasoningItem,
  Usage,
} from "../../spec/model.ts";
import { unmarkedPrefix } from "../calls.ts";
import { own, toRequest, warningsOf, type AiSdkModel, type Warning } from "./prompt.ts";

type Options = Parameters<AiSdkModel["doStream"]>[0];
type StreamPart = Awaited<ReturnType<AiSdkModel["doStream"]>>["stream"] extends ReadableStream<infer P> ? P : never;
type Content = Awaited<ReturnType<AiSdkModel["doGenerate"]>>["content"][number];
type Metadata = NonNullable<Extract<StreamPart, { type: "tool-call" }>["providerMetadata"]>;

/**
 * Makes any model of Callgate a model of the AI SDK, over any wire, including models that only write text
 * and get their tools through a dialect (`createTextModel`).
 */
export function toAiSdkModel(model: Model, provider = "callgate"): AiSdkModel {
  const ask = (options: Options): AsyncGenerator<StreamPart, undefined> => {
    const headers = Object.entries(options.headers ?? {}).filter((entry): entry is [string, string] => {
      return entry[1] !== undefined && entry[0].toLowerCase() !== "user-agent";
    });
    const request = toRequest(model.name, options);
    const events = model.ask(
      request,
      options.abortSignal ?? new AbortController().signal,
      headers.length === 0 ? undefined : { headers: Object.fromEntries(headers) },
    );
    return toStreamParts(events, request, warningsOf(options));
  };
  return {
    specificationVersion: "v3",
    provider,
    modelId: model.name,
    // Every wire has a place for addresses, and the model's server fetches or refuses them.
    supportedUrls: { "*/*": [/^https?:\/\//] },
    async doStream(options) {
      return { stream: toReadable(ask(options)) };
    },
    async doGenerate(options) {
      const content: Content[] = [];
      const grown = new Map<string, GrowingText>();
      let end: Extract<StreamPart, { type: "finish" }> | undefined;
      let response = {};
      for await (const part of ask(options)) {
        if (part.type === "error") throw part.error;
        if (part.type === "text-start" || part.type === "reasoning-start") grown.set(part.id, createGrowingText());
        if (part.type === "text-delta" || part.type === "reasoning-delta") grown.get(part.id)?.add(part.delta);
        if (part.type === "text-end") content.push({ type: "text", text: String(grown.get(part.id) ?? "") });
        if (part.type === "reasoning-end")
          content.push({
            type: "reasoning",
            text: String(grown.get(part.id) ?? ""),
            ...defined({ providerMetadata: part.providerMetadata }),
          });
        if (part.type === "tool-call") content.push(part);
        if (part.type === "response-metadata") response = defined({ id: part.id, modelId: part.modelId });
        if (part.type === "finish") end = part;
      }
      if (end === undefined) throw new Error("The model's answer has no end.");
      return { content, finishReason: end.finishReason, usage: end.usage, warnings: warningsOf(options), response };
    },
  };
}

function toReadable(parts: AsyncGenerator<StreamPart>): ReadableStream<StreamPart> {
  return new ReadableStream<StreamPart>({
    async pull(controller) {
      try {
        const { done, value } = await parts.next();
        if (done === true) controller.close();
        else controller.enqueue(value);
      } catch (error) {
        controller.error(error);
      }
    },
    async cancel() {
      await parts.return(undefined);
    },
  });
}

/** Translates our events to the SDK's. Incomplete calls are never handed over, because nobody may run them. */
async function* toStreamParts(
  events: AsyncIterable<ModelEvent>,
  request: ModelRequest,
  warnings: Warning[],
): AsyncGenerator<StreamPart, undefined> {
  yield { type: "stream-start", warnings };
  const started = new Set<number>();
  const ids = new Map<number, string>();
  let broken = 0;
  let called = false;
  for await (const event of events) {
    switch (event.type) {
      case "answer.started": {
        yield { type: "response-metadata", ...defined({ id: event.id, modelId: event.model }) };
        break;
      }
      case "item.started": {
        started.add(event.index);
        yield* startOf(event.index, event.item, ids);
        break;
      }
      case "item.delta": {
        const part = deltaOf(event, ids);
        if (part !== undefined) yield part;
        break;
      }
      case "item.done": {
        if (event.item.type === "call") {
          if (event.item.complete) called = true;
          else broken++;
        }
        if (!started.delete(event.index)) yield* startOf(event.index, event.item, ids);
        yield* endOf(ids.get(event.index) ?? `${event.index}`, event.item, request);
        break;
      }
      case "answer.ended": {
        const { outcome, finish, usage, error } = event.answer;
        if (outcome === "error" || outcome === "truncated")
          yield { type: "error", error: new Error(error?.message ?? "The answer broke off.") };
        const reason = broken > 0 && !called ? "length" : toFinish(finish, called);
        yield { type: "finish", usage: toUsage(usage), finishReason: { unified: reason, raw: finish } };
        break;
      }
      case "note":
      case "other":
        break;
    }
  }
  return undefined;
}

function* startOf(index: number, item: Item, ids: Map<number, string>): Generator<StreamPart> {
  const id = item.type === "call" ? uniqueId(item) : `${index}`;
  ids.set(index, id);
  if (item.type === "message" && item.role === "assistant") yield { type: "text-start", id };
  if (item.type === "reasoning") yield { type: "reasoning-start", id };
  if (item.type === "call") {
    const inputEncoding = item.kind === "custom" ? ({ inputEncoding: "text" } as const) : {};
    yield { type: "tool-input-start", id, toolName: item.name, ...inputEncoding };
  }
}

function deltaOf(
  { index, field, delta }: Extract<ModelEvent, { type: "item.delta" }>,
  ids: ReadonlyMap<number, string>,
): StreamPart | undefined {
  const id = ids.get(index);
  if (id === undefined) return undefined;
  if (field === "arguments") return { type: "tool-input-delta", id, delta };
  return { type: field === "reasoning" || field === "summary" ? "reasoning-delta" : "text-delta", id, delta };
}

function* endOf(id: string, item: Item, request: ModelRequest): Generator<StreamPart> {
  if (item.type === "message" && item.role === "assistant") yield { type: "text-end", id };
  if (item.type === "reasoning") yield { type: "reasoning-end", id, ...metadataOf(item) };
  if (item.type !== "call") return;
  yield { type: "tool-input-end", id };
  if (item.complete)
    yield {
      type: "tool-call",
      toolCallId: id,
      toolName: item.name,
      input: inputOf(item, request),
      ...metadataOf(item),
    };
}

/**
 * The SDK wants JSON, also for the text of a custom tool. If the model writes values without types, they
 * are taken from the tool's schema.
 */
function inputOf({ name, kind, untyped, arguments: raw }: CallItem, { tools }: ModelRequest): string {
  if (kind === "custom") return JSON.stringify({ input: raw });
  const spec = untyped === true ? tools.find((tool) => tool.kind === "function" && tool.name === name) : undefined;
  const parsed = spec?.kind === "function" ? parseJson(raw) : undefined;
  if (spec?.kind !== "function" || parsed?.ok !== true) return raw === "" ? "{}" : raw;
  return JSON.stringify(coerce(parsed.value, spec.parameters, []));
}

/** Short ids are made by counting, so two conversations would share them. Pages of the SDK use them as keys. */
function uniqueId({ id, markerless }: CallItem): string {
  const unique = id.length >= 16 ? id : `${id}_${crypto.randomUUID().slice(0, 8)}`;
  return markerless === true ? `${unmarkedPrefix}${unique}` : unique;
}

/** What the model's wire needs to get back: signatures, sealed thoughts, and how the call was written. */
function metadataOf(item: CallItem | ReasoningItem): { providerMetadata?: Metadata } {
  const { extra } = item;
  const kept =
    item.type === "reasoning"
      ? defined({ id: item.id, summary: item.summary, opaque: item.opaque, extra })
      : defined({
          kind: item.kind === "function" ? undefined : item.kind,
          caller: item.caller,
          extra,
          itemId: item.itemId,
        });
  // Both types are JSON. The SDK's is mutable and ours is not.
  return Object.keys(kept).length === 0 ? {} : { providerMetadata: { [own]: kept } as unknown as Metadata };
}

function toFinish(finish: Finish | undefined, called: boolean) {
  if (called) return "tool-calls";
  switch (finish) {
    case "stop":
    case "length":
      return finish;
    case "content_filter":
    case "refusal":
      return "content-filter";
    case "error":
      return "error";
    default:
      return finish === undefined ? "stop" : "other";
  }
}

function toUsage(usage: Usage | undefined) {
  const { input, cached, cacheWritten, output, reasoning } = usage ?? {};
  return {
    inputTokens: {
      total: input,
      noCache: input === undefined ? undefined : input - (cached ?? 0),
      cacheRead: cached,
      cacheWrite: cacheWritten,
    },
    outputTokens: {
      total: output,
      text: output === undefined || reasoning === undefined ? output : output - reasoning,
      reasoning,
    },
  };
}
