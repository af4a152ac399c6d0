/**
 * Reads a Gemini generateContent answer, chunk by chunk: text and thoughts that grow, and calls among
 * them. Calls usually come complete, but value by value if Vertex was asked to stream them.
 */
import { type Part, text as textPart } from "../../base/content.ts";
import { createGrowingText, type GrowingText } from "../../base/growing-text.ts";
import { defined, isObject } from "../../base/json.ts";
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
import { readArgumentsText, writeArguments } from "../arguments.ts";
import { type ChunkDecoder, toAnswerReader } from "../chunk-decoder.ts";
import type { DecodeOptions } from "../codec.ts";
import { unwrapFreeform } from "../freeform.ts";
import { createIdMaker } from "../ids.ts";
import { lookUp } from "../names.ts";
import { createOutbox } from "../outbox.ts";
import { count, isWhole, json, object, objects, parseObject, type Raw, string, word } from "../raw.ts";
import { decodePart, keptItem, signatureExtra, signatureOf, wire } from "./parts.ts";

export const decodeAnswer = toAnswerReader(createDecoder);

export function createDecoder(options: DecodeOptions = {}): ChunkDecoder {
  const events = createOutbox<ModelEvent>();
  const ending: Ending = {};
  let items: Items | undefined;
  let hasEnded = false;

  function start(chunk: Raw): Items {
    const id = word(chunk["responseId"]);
    events.push({ type: "answer.started", ...defined({ id, model: word(chunk["modelVersion"]) }) });
    items = createItems(events.push, options, id ?? "");
    return items;
  }

  function pushChunk(body: Raw): readonly ModelEvent[] {
    // Code Assist, which gemini-cli talks to, wraps each chunk in an envelope.
    const chunk = isObject(body["response"]) ? body["response"] : body;
    const into = items ?? start(chunk);
    const candidate = objects(chunk["candidates"]).find((one) => (one["index"] ?? 0) === 0);
    for (const part of objects(object(candidate?.["content"])["parts"])) into.take(part);
    if (!readEnding(chunk, candidate, ending) && candidate === undefined)
      events.push({ type: "other", wire, raw: json(chunk) });
    return events.drain();
  }

  return {
    pushChunk,
    push(frame) {
      if (hasEnded) return [];
      const chunk = parseObject(frame.data);
      if (chunk !== undefined) return pushChunk(chunk);
      // Proxies put their own text into an error event.
      return frame.event === "error" ? pushChunk({ error: { message: frame.data } }) : [];
    },
    end() {
      if (hasEnded) return [];
      hasEnded = true;
      const outcome = outcomeOf(ending);
      const calls = (items ?? start({})).done(outcome);
      events.push({ type: "answer.ended", answer: toEnd(ending, outcome, calls) });
      return events.drain();
    },
  };
}

interface Items {
  take(part: Raw): void;
  /** Returns how many calls there are. */
  done(outcome: Outcome): number;
}

/** The text or thoughts that are growing right now. */
interface Growing {
  readonly index: number;
  readonly isThought: boolean;
  readonly text: GrowingText;
  readonly media: Part[];
  signature: string | undefined;
}

function createItems(emit: (event: ModelEvent) => void, options: DecodeOptions, answerId: string): Items {
  const calls = createCalls(emit, options, answerId, () => count++);
  let growing: Growing | undefined;
  let count = 0;

  function close(): void {
    if (growing !== undefined) emit({ type: "item.done", index: growing.index, item: grownItem(growing) });
    growing = undefined;
  }

  function grow(part: Raw, content: Part): void {
    const isThought = part["thought"] === true;
    const signature = signatureOf(part);
    // A signed part ends what it signs, so text that follows belongs to another part.
    if (growing !== undefined && (growing.isThought !== isThought || growing.signature !== undefined)) close();
    if (growing === undefined) {
      if (content.type === "text" && content.text === "" && signature === undefined) return;
      calls.breakOff();
      growing = { index: count++, isThought, text: createGrowingText(), media: [], signature: undefined };
      emit({ type: "item.started", index: growing.index, item: shell(isThought) });
    }
    if (signature !== undefined) growing.signature = signature;
    if (content.type === "text") addText(growing, content.text);
    else growing.media.push(content);
  }

  function addText(to: Growing, delta: string): void {
    if (delta === "") return;
    to.text.add(delta);
    emit({ type: "item.delta", index: to.index, field: to.isThought ? "reasoning" : "text", delta });
  }

  function addWhole(item: Item): void {
    close();
    calls.breakOff();
    emit({ type: "item.started", index: count, item });
    emit({ type: "item.done", index: count++, item });
  }

  return {
    take(part) {
      const body = part["functionCall"] ?? part["function_call"];
      if (isObject(body)) {
        close();
        return calls.take(body, part);
      }
      const content = decodePart(part);
      if (content === undefined) addWhole(keptItem(part));
      else grow(part, content);
    },
    done(outcome) {
      close();
      return calls.done(outcome);
    },
  };
}

function shell(isThought: boolean): Item {
  return isThought ? { type: "reasoning" } : { type: "message", role: "assistant", content: [] };
}

function grownItem({ isThought, text: said, media, signature }: Growing): Item {
  const text = said.toString();
  if (isThought) {
    const opaque = signature === undefined ? undefined : { wire, kind: "thoughtSignature", value: signature };
    return { type: "reasoning", text, ...defined({ opaque }) };
  }
  const content = text === "" ? media : [textPart(text), ...media];
  const extra = signature === undefined ? {} : { extra: { wire, fields: { thoughtSignature: signature } } };
  return { type: "message", role: "assistant", content, ...extra };
}

interface Calls {
  /** A `functionCall` and the part it came in. */
  take(body: Raw, part: Raw): void;
  /** Something else follows, so an unfinished call will never be completed and must not run. */
  breakOff(): void;
  /** Returns how many calls there are. */
  done(outcome: Outcome): number;
}

/** The call whose arguments are still coming. */
interface OpenCall {
  readonly body: Raw;
  readonly part: Raw;
  readonly args: PartialArgs;
}

/** `claimIndex` gives the next place among the items of the answer. */
function createCalls(
  emit: (event: ModelEvent) => void,
  options: DecodeOptions,
  answerId: string,
  claimIndex: () => number,
): Calls {
  const calls: { readonly index: number; readonly item: CallItem }[] = [];
  const ids = createIdMaker(options.idSeed ?? answerId);
  let open: OpenCall | undefined;

  function add(body: Raw, part: Raw, args: string): void {
    const item = toCall(body, part, args, options);
    const call = { index: claimIndex(), item: { ...item, id: ids.claim(word(body["id"]), calls.length) } };
    calls.push(call);
    emit({ type: "item.started", index: call.index, item: { ...call.item, arguments: "", complete: false } });
    emit({ type: "item.delta", index: call.index, field: "arguments", delta: item.arguments });
  }

  function close({ body, part, args }: OpenCall, text = args.text()): void {
    open = undefined;
    add(body, part, text);
  }

  function breakOff(): void {
    // Its last brace is removed, because complete JSON would be a call to run.
    if (open !== undefined) close(open, open.args.text().replace(/\}$/, ""));
  }

  return {
    take(body, part) {
      // A continuation has no name.
      if (open !== undefined && word(body["name"]) !== undefined) breakOff();
      if (open === undefined && !isStreamed(body)) return add(body, part, writeArguments(body["args"] ?? {}));
      open ??= { body, part, args: createPartialArgs() };
      open.args.take(body["partialArgs"]);
      if (body["willContinue"] !== true) close(open);
    },
    breakOff,
    done(outcome) {
      breakOff();
      for (const { index, item } of calls) {
        emit({ type: "item.done", index, item: { ...item, complete: item.complete && outcome === "ok" } });
      }
      return calls.length;
    },
  };
}

function isStreamed(body: Raw): boolean {
  return body["willContinue"] === true || body["partialArgs"] !== undefined;
}

/** The call without its id, which depends on the other calls. */
function toCall(body: Raw, part: Raw, args: string, options: DecodeOptions): Omit<CallItem, "id"> {
  const name = word(body["name"]) ?? "";
  const tool = lookUp(options.names, name);
  const said = readArgumentsText(args);
  const raw = tool.kind === "custom" ? unwrapFreeform(said.arguments, tool.name) : said.arguments;
  return {
    type: "call",
    ...tool,
    arguments: raw ?? said.arguments,
    complete: said.complete && name !== "" && raw !== undefined && isWhole(said.arguments),
    ...signatureExtra(part),
  };
}

interface PartialArgs {
  /** `partialArgs` of one chunk. */
  take(list: unknown): void;
  /** What came so far, as JSON. If a path made no sense, it is text that is not JSON, so that nobody runs it. */
  text(): string;
}

type Key = string | number;

function createPartialArgs(): PartialArgs {
  const root = createObject();
  let isBroken = false;
  return {
    take(list) {
      for (const piece of objects(list)) isBroken ||= !put(root, readPath(string(piece["jsonPath"]) ?? ""), piece);
    },
    text: () => (isBroken ? "{" : writeArguments(root)),
  };
}

/** Without a prototype, because the model chooses the paths. */
function createObject(): Raw {
  return Object.create(null) as Raw; // `create` is typed to return anything
}

const step = /\.([^.[\]]+)|\[(\d+)\]|\[(?:'([^']*)'|"([^"]*)")\]/y;

/** The keys of `$.items[0]['a name']`. Undefined for anything else. */
function readPath(path: string): readonly Key[] | undefined {
  if (!path.startsWith("$") || path.length < 2) return undefined;
  const keys: Key[] = [];
  step.lastIndex = 1;
  for (let at = 1; at < path.length; at = step.lastIndex) {
    const found = step.exec(path);
    if (found === null) return undefined;
    const [, name, index, single, double] = found;
    keys.push(index === undefined ? (name ?? single ?? double ?? "") : Number(index));
  }
  return keys;
}

/** Sets a value, or adds to the text that is there. False if the path leads through something else. */
function put(root: Raw, keys: readonly Key[] | undefined, piece: Raw): boolean {
  if (keys === undefined) return false;
  let node: unknown = root;
  for (const [depth, key] of keys.entries()) {
    if (!canHold(node, key)) return false;
    const held = node as Record<Key, unknown>; // an object or a list, whose keys `canHold` has seen
    const next = keys[depth + 1];
    if (next === undefined) held[key] = valueOf(piece, held[key]);
    else held[key] ??= typeof next === "number" ? [] : createObject();
    node = held[key];
  }
  return true;
}

/** A list grows by one at a time, because a far index would fill the memory. */
function canHold(node: unknown, key: Key): boolean {
  if (Array.isArray(node)) return typeof key === "number" && key <= node.length;
  return typeof node === "object" && node !== null && typeof key === "string";
}

function valueOf(piece: Raw, before: unknown): unknown {
  const words = string(piece["stringValue"]);
  if (words !== undefined) return (string(before) ?? "") + words;
  return piece["numberValue"] ?? piece["boolValue"] ?? ("nullValue" in piece ? null : (before ?? ""));
}

/** What a stream has said about its end so far. */
interface Ending {
  finish?: Finish;
  usage?: Usage;
  error?: ModelError;
  extra?: Extra;
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

/** Takes finish, usage and errors from a chunk. Returns whether there was any of them. */
function readEnding(chunk: Raw, candidate: Raw | undefined, ending: Ending): boolean {
  const usage = readUsage(object(chunk["usageMetadata"]));
  if (usage !== undefined) ending.usage = usage;
  const reason = word(candidate?.["finishReason"]);
  // A blocked prompt or a failure stays, whatever follows.
  if (reason !== undefined && reason !== "FINISH_REASON_UNSPECIFIED" && ending.error === undefined)
    Object.assign(ending, readFinish(reason, candidate));
  const blocked = word(object(chunk["promptFeedback"])["blockReason"]);
  if (blocked !== undefined && !blocked.endsWith("_UNSPECIFIED")) {
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

function readError(failure: Raw): ModelError {
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
