/**
 * One chunk of a Chat stream (or one whole message, which has the same fields): which of its choices
 * is followed, and all known variants of its fields.
 */
import { defined, isObject } from "../../base/json.ts";
import type { ModelError, Usage } from "../../spec/model.ts";
import { writeArguments } from "../arguments.ts";
import { count, extraFields, number, object, objects, type Raw, word } from "../raw.ts";
import type { CallDelta } from "./calls.ts";

interface Choices {
  /** The followed choice of a chunk. */
  take(chunk: Raw): Raw | undefined;
  /** Pieces of the answer that were held back because they might have belonged to another choice. */
  end(): readonly Raw[];
}

interface Stray {
  readonly index: number;
  readonly choice: Raw;
}

export function createChoices(): Choices {
  const strays: Stray[] = [];
  const finished = new Set<number>();
  const first = { isThere: false, hasText: false, hasCalls: false };
  let lowest = Infinity;
  let highest = 0;
  let wentBack = false;

  function note(choice: Raw): number {
    const index = number(choice["index"] ?? 0) ?? Infinity;
    if (choice["finish_reason"]) finished.add(index);
    if (index < highest) wentBack ||= hasText(choice) || hasCalls(choice);
    highest = Math.max(highest, index);
    lowest = Math.min(lowest, index);
    return index;
  }

  return {
    take(chunk) {
      let followed: Raw | undefined;
      for (const choice of objects(chunk["choices"])) {
        const index = note(choice);
        if (index === 0) followed ??= choice;
        else strays.push({ index, choice });
      }
      if (followed === undefined) return undefined;
      first.isThere = true;
      first.hasText ||= hasText(followed);
      first.hasCalls ||= hasCalls(followed);
      return followed;
    },
    end() {
      const isOneAnswer = finished.size === 1 && !wentBack;
      const isWanted = ({ index, choice }: Stray) => {
        if (!first.isThere) return isOneAnswer || index === lowest;
        // A second text is another answer; calls beside a text are not.
        return isOneAnswer && ((hasText(choice) && !first.hasText) || (hasCalls(choice) && !first.hasCalls));
      };
      return strays.filter(isWanted).map(({ choice }) => choice);
    },
  };
}

function deltaOf(choice: Raw): Raw {
  return object(choice["delta"] ?? choice["message"]);
}

function hasText(choice: Raw): boolean {
  return Boolean(deltaOf(choice)["content"]);
}

function hasCalls(choice: Raw): boolean {
  const calls = deltaOf(choice)["tool_calls"];
  return Array.isArray(calls) && calls.length > 0;
}

interface Said {
  readonly text: string;
  readonly reasoning: string;
}

/** `content` as text, or as a list of parts with the thoughts among them (Mistral). */
export function readContent(content: unknown): Said {
  if (typeof content === "string") return { text: content, reasoning: "" };
  let text = "";
  let reasoning = "";
  for (const part of Array.isArray(content) ? content : isObject(content) ? [content] : []) {
    if (typeof part === "string") text += part;
    else if (!isObject(part)) continue;
    else if (part["type"] === "thinking" || part["type"] === "reasoning")
      reasoning += wordsIn(part["thinking"] ?? part["text"]);
    else text += wordsIn(part["text"]);
  }
  return { text, reasoning };
}

function wordsIn(value: unknown): string {
  if (typeof value === "string") return value;
  if (value === undefined || value === null) return "";
  return objects(isObject(value) ? [value] : value)
    .map((part) => word(part["text"]) ?? "")
    .join("");
}

/**
 * Thoughts beside the content: DeepSeek's field, that of vLLM, OpenRouter and Ollama, and Copilot's.
 * Servers that send several fields send the same text in each.
 */
export function readReasoning(delta: Raw): string {
  const plain = wordsIn(delta["reasoning_content"]) || wordsIn(delta["reasoning"]) || wordsIn(delta["reasoning_text"]);
  if (plain !== "") return plain;
  const details = delta["reasoning_details"];
  if (details === undefined) return "";
  return objects(details)
    .map((detail) => word(detail["text"]) ?? word(detail["summary"]) ?? "")
    .join("");
}

const callFieldsButType = new Set(["index", "id", "function", "custom"]);
const callFields = new Set([...callFieldsButType, "type"]);

const noCalls: readonly CallDelta[] = [];

/** `tool_calls` of a delta, and the one call of the old `function_call`. */
export function readCalls(delta: Raw): readonly CallDelta[] {
  const listed = delta["tool_calls"];
  // Most deltas hold only text, so nothing is built for them.
  if (!listed && !delta["function_call"]) return noCalls;
  const calls = (isObject(listed) ? [listed] : objects(listed)).map(readCall);
  const legacy = delta["function_call"];
  // The old form has one call and no index. Servers that send both forms describe the same call twice.
  return calls.length === 0 && isObject(legacy) ? [{ ...readFunction(legacy), index: 0, custom: false }] : calls;
}

function readCall(call: Raw): CallDelta {
  const custom = isObject(call["custom"]);
  const body = custom
    ? { name: object(call["custom"])["name"], arguments: object(call["custom"])["input"] }
    : object(call["function"]);
  const extra = extraFields("chat", call, isPlain(call["type"]) ? callFields : callFieldsButType)?.fields;
  return { ...readFunction(body), index: readIndex(call["index"]), id: readId(call["id"]), custom, extra };
}

/** Kimi's own tools come as calls of another type, which has to be sent back with them. */
function isPlain(type: unknown): boolean {
  return word(type) === undefined || type === "function" || type === "custom";
}

function readFunction(body: Raw): { name: string | undefined; args: string } {
  return { name: readName(body["name"]), args: writeArguments(body["arguments"]) };
}

/** A server that does not know its model's special tokens (vLLM with gpt-oss) leaves them after the name. */
function readName(value: unknown): string | undefined {
  const name = word(value);
  return name?.includes("<|") === true ? word(name.slice(0, name.indexOf("<|"))) : name;
}

function readIndex(value: unknown): number | undefined {
  const index = typeof value === "string" && value !== "" ? Number(value) : value;
  return typeof index === "number" && Number.isSafeInteger(index) && index >= 0 ? index : undefined;
}

function readId(value: unknown): string | undefined {
  return typeof value === "number" ? String(value) : word(value);
}

export function readUsage(value: unknown): Usage | undefined {
  if (!isObject(value)) return undefined;
  const output = count(value["completion_tokens"]) ?? count(value["output_tokens"]);
  const total = count(value["total_tokens"]);
  const input = count(value["prompt_tokens"]) ?? count(value["input_tokens"]) ?? rest(total, output);
  if (input === undefined && output === undefined) return undefined;
  const cached =
    count(object(value["prompt_tokens_details"])["cached_tokens"]) ??
    count(value["prompt_cache_hit_tokens"]) ??
    count(value["cached_tokens"]);
  const reasoning = count(object(value["completion_tokens_details"])["reasoning_tokens"]);
  const said = output ?? rest(total, input) ?? 0;
  // xAI counts thoughts separately, which its total reveals.
  const isApart = reasoning !== undefined && total === (input ?? 0) + said + reasoning;
  return { input: input ?? 0, output: isApart ? said + reasoning : said, ...defined({ cached, reasoning }) };
}

function rest(total: number | undefined, part: number | undefined): number | undefined {
  return total === undefined ? undefined : Math.max(0, total - (part ?? 0));
}

/** A body without any field of this wire that still says something. Proxies and frameworks report errors like this. */
export function bareError(chunk: Raw): Raw | undefined {
  const isError = chunk["object"] === "error" || chunk["type"] === "error";
  const list = objects(chunk["errors"]);
  if (list.length > 0) return list[0];
  return isError ||
    word(chunk["message"]) !== undefined ||
    chunk["detail"] !== undefined ||
    word(chunk["msg"]) !== undefined
    ? chunk
    : undefined;
}

/** An error in any of its forms: an object, a bare string, or a body that is itself an error. */
export function readError(value: unknown): ModelError | undefined {
  if (typeof value === "string" && value !== "") return { message: value };
  if (!isObject(value)) return undefined;
  const nested = value["error"];
  if (isObject(nested) || typeof nested === "string") return readError(nested);
  const code = typeof value["code"] === "number" ? String(value["code"]) : word(value["code"]);
  const type = word(value["type"]);
  const status = typeof value["code"] === "number" ? value["code"] : count(value["status"]);
  return {
    message: messageIn(value) ?? type ?? code ?? "the provider reported an error",
    ...defined({ code, type, status: status !== undefined && status >= 100 && status <= 599 ? status : undefined }),
  };
}

/** FastAPI gives a list of details. */
function messageIn(error: Raw): string | undefined {
  const details = objects(error["detail"]).map((detail) => word(detail["msg"]) ?? "");
  return word(error["message"]) ?? word(error["msg"]) ?? word(error["detail"]) ?? word(details.join("; "));
}
