/** Gemini generateContent answers to neutral events. Calls come whole, mostly without ids, under finish reason STOP. */
import { text as textPart, type Part } from "../../base/content.ts";
import type {
  AnswerEnd,
  CallItem,
  Extra,
  Finish,
  Item,
  ModelError,
  ModelEvent,
  Outcome,
  Usage,
} from "../../spec/model.ts";
import type { AnswerDecoder, DecodeOptions } from "../codec.ts";
import { unwrapFreeform } from "../freeform.ts";
import { createIdMaker, type IdMaker } from "../ids.ts";
import { lookUp } from "../names.ts";
import { count, defined, json, jsonObject, object, objects, parseObject, word, type Raw } from "../raw.ts";
import { decodePart, signatureExtra, signatureOf, wire } from "./parts.ts";

export interface GeminiDecoder extends AnswerDecoder {
  /** One chunk; a whole body has the same form. */
  pushChunk(chunk: Raw): readonly ModelEvent[];
}

interface Ending {
  finish?: Finish;
  usage?: Usage;
  error?: ModelError;
  extra?: Extra;
}

/** The words or thoughts that grow right now. */
interface Growing {
  readonly index: number;
  readonly isThought: boolean;
  text: string;
  readonly media: Part[];
  signature: string | undefined;
}

export function createGeminiDecoder(options: DecodeOptions = {}): GeminiDecoder {
  let events: ModelEvent[] = [];
  const emit = (event: ModelEvent): void => void events.push(event);
  const calls: { readonly index: number; readonly item: CallItem }[] = [];
  const ids = createIdMaker(options.idSeed);
  const ending: Ending = {};
  let growing: Growing | undefined;
  let items = 0;
  let hasStarted = false;
  let hasEnded = false;

  function close(): void {
    if (growing !== undefined) emit({ type: "item.done", index: growing.index, item: grownItem(growing) });
    growing = undefined;
  }

  function grow(part: Raw, isThought: boolean): void {
    const content = decodePart(part);
    const signature = signatureOf(part);
    // A signed part ends what it signs: text that follows belongs to another part.
    if (
      growing !== undefined &&
      (growing.isThought !== isThought || (growing.signature !== undefined && content !== undefined))
    )
      close();
    if (growing === undefined) {
      if (content === undefined || (content.type === "text" && content.text === "" && signature === undefined)) return;
      growing = { index: items++, isThought, text: "", media: [], signature: undefined };
      emit({ type: "item.started", index: growing.index, item: shell(isThought) });
    }
    if (signature !== undefined) growing.signature = signature;
    if (content?.type === "text" && content.text !== "") {
      growing.text += content.text;
      emit({ type: "item.delta", index: growing.index, field: isThought ? "reasoning" : "text", delta: content.text });
    } else if (content !== undefined && content.type !== "text") growing.media.push(content);
  }

  function takePart(part: Raw): void {
    const call = part["functionCall"] ?? part["function_call"];
    if (typeof call === "object" && call !== null) {
      close();
      const index = items++;
      const item = toCall(object(call), part, calls.length, ids, options);
      calls.push({ index, item });
      emit({ type: "item.started", index, item: { ...item, arguments: "", complete: false } });
      emit({ type: "item.delta", index, field: "arguments", delta: item.arguments });
    } else if (part["executableCode"] !== undefined || part["codeExecutionResult"] !== undefined) {
      close();
      const item: Item = { type: "server_call", name: "code_execution", wire, raw: jsonObject(part) };
      emit({ type: "item.started", index: items, item });
      emit({ type: "item.done", index: items++, item });
    } else grow(part, part["thought"] === true);
  }

  function pushChunk(chunk: Raw): readonly ModelEvent[] {
    if (!hasStarted) {
      hasStarted = true;
      emit({
        type: "answer.started",
        ...defined({ id: word(chunk["responseId"]), model: word(chunk["modelVersion"]) }),
      });
    }
    const candidate = objects(chunk["candidates"]).find((one) => (one["index"] ?? 0) === 0);
    for (const part of objects(object(candidate?.["content"])["parts"])) takePart(part);
    if (!readEnding(chunk, candidate, ending) && candidate === undefined)
      emit({ type: "other", wire, raw: json(chunk) });
    return drain();
  }

  function drain(): readonly ModelEvent[] {
    const ready = events;
    events = [];
    return ready;
  }

  return {
    pushChunk,
    push(frame) {
      const chunk = parseObject(frame.data);
      return chunk === undefined || hasEnded ? [] : pushChunk(chunk);
    },
    end() {
      if (hasEnded) return [];
      hasEnded = true;
      if (!hasStarted) emit({ type: "answer.started" });
      close();
      const outcome = outcomeOf(ending);
      for (const { index, item } of calls)
        emit({ type: "item.done", index, item: { ...item, complete: item.complete && outcome === "ok" } });
      emit({ type: "answer.ended", answer: toEnd(ending, outcome, calls.length) });
      return drain();
    },
  };
}

function shell(isThought: boolean): Item {
  return isThought ? { type: "reasoning" } : { type: "message", role: "assistant", content: [] };
}

function grownItem({ isThought, text, media, signature }: Growing): Item {
  if (isThought) {
    const opaque = signature === undefined ? undefined : { wire, kind: "thoughtSignature", value: signature };
    return { type: "reasoning", text, ...defined({ opaque }) };
  }
  const content = text === "" ? media : [textPart(text), ...media];
  const extra = signature === undefined ? {} : { extra: { wire, fields: { thoughtSignature: signature } } };
  return { type: "message", role: "assistant", content, ...extra };
}

function toCall(call: Raw, part: Raw, position: number, ids: IdMaker, options: DecodeOptions): CallItem {
  const name = word(call["name"]) ?? "";
  const tool = lookUp(options.names, name);
  const args = call["args"] === undefined || call["args"] === null ? "{}" : JSON.stringify(call["args"]);
  const raw = tool.kind === "custom" ? unwrapFreeform(args, tool.name) : args;
  const id = ids.claim(word(call["id"]), position);
  return {
    type: "call",
    ...tool,
    id,
    arguments: raw ?? args,
    complete: name !== "" && raw !== undefined,
    ...signatureExtra(part),
  };
}

const filtered = new Set([
  "SAFETY",
  "RECITATION",
  "BLOCKLIST",
  "PROHIBITED_CONTENT",
  "SPII",
  "LANGUAGE",
  "IMAGE_SAFETY",
  "IMAGE_PROHIBITED_CONTENT",
  "IMAGE_RECITATION",
]);

/** Takes finish, usage and errors from a chunk; says whether there was anything of the kind. */
function readEnding(chunk: Raw, candidate: Raw | undefined, ending: Ending): boolean {
  const usage = readUsage(object(chunk["usageMetadata"]));
  if (usage !== undefined) ending.usage = usage;
  const reason = word(candidate?.["finishReason"]);
  if (reason !== undefined && reason !== "FINISH_REASON_UNSPECIFIED")
    Object.assign(ending, readFinish(reason, candidate));
  const blocked = word(object(chunk["promptFeedback"])["blockReason"]);
  if (blocked !== undefined) {
    ending.finish = "content_filter";
    ending.error = {
      code: blocked,
      message: word(object(chunk["promptFeedback"])["blockReasonMessage"]) ?? `the prompt was blocked: ${blocked}`,
    };
  }
  const failure = object(chunk["error"]);
  if (Object.keys(failure).length > 0) ending.error = readError(failure);
  const grounding = candidate?.["groundingMetadata"];
  if (grounding !== undefined) ending.extra = { wire, fields: { groundingMetadata: json(grounding) } };
  return usage !== undefined || reason !== undefined || ending.error !== undefined;
}

function readFinish(reason: string, candidate: Raw | undefined): Ending {
  if (reason === "STOP") return { finish: "stop" };
  if (reason === "MAX_TOKENS") return { finish: "length" };
  if (filtered.has(reason)) return { finish: "content_filter" };
  return {
    finish: "error",
    error: { code: reason, message: word(candidate?.["finishMessage"]) ?? `the model's turn ended with ${reason}` },
  };
}

export function readError(failure: Raw): ModelError {
  const status = count(failure["code"]);
  return {
    message: word(failure["message"]) ?? "the provider reported an error",
    ...defined({ code: word(failure["status"]), status }),
  };
}

function readUsage(usage: Raw): Usage | undefined {
  const input = count(usage["promptTokenCount"]);
  const candidates = count(usage["candidatesTokenCount"]);
  const reasoning = count(usage["thoughtsTokenCount"]);
  if (input === undefined && candidates === undefined) return undefined;
  const tools = count(usage["toolUsePromptTokenCount"]) ?? 0;
  return {
    input: (input ?? 0) + tools,
    output: (candidates ?? 0) + (reasoning ?? 0),
    ...defined({ cached: count(usage["cachedContentTokenCount"]), reasoning }),
  };
}

function outcomeOf({ finish, error }: Ending): Outcome {
  if (error !== undefined) return "error";
  if (finish === "length" || finish === "content_filter") return "incomplete";
  return finish === undefined ? "truncated" : "ok";
}

function toEnd(ending: Ending, outcome: Outcome, calls: number): AnswerEnd {
  const finish = outcome === "ok" ? (calls > 0 ? "tool_calls" : "stop") : ending.finish;
  return { outcome, ...defined({ finish, usage: ending.usage, error: ending.error, extra: ending.extra }) };
}
