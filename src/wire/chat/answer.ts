/** A whole answer as a Chat Completions body, and the pieces that its chunks share with it. */
import { defined, type JsonObject } from "../../base/json.ts";
import type { Answer, CallItem, Finish, Item, ReasoningItem, Usage } from "../../spec/model.ts";
import { thoughtsOf, wordsOf } from "../answer.ts";
import { argumentsText } from "../arguments.ts";
import type { AnswerEncodeOptions } from "../codec.ts";
import { sealTurn, type Sign } from "../envelope.ts";
import { chatError } from "../failure.ts";
import { handedOut } from "../hold.ts";
import { type Spell, spellerOf } from "../names.ts";
import { echoed } from "../raw.ts";

/** What the chunks of the same answer add up to. */
export function encodeAnswer(given: Answer, options: AnswerEncodeOptions = {}): JsonObject {
  const answer = handedOut(given);
  if (answer.outcome === "error" || answer.outcome === "truncated") return { error: chatError(answer.error) };
  const writeCall = createCallWriter(spellerOf(options.names), options.sign);
  const calls = answer.items.flatMap((item) => writeCall(item) ?? []);
  return defined({
    ...headOf(answer, options),
    object: "chat.completion",
    choices: [
      {
        index: 0,
        message: defined({ ...encodeWords(answer.items), tool_calls: calls.length === 0 ? undefined : calls }),
        finish_reason: encodeFinish(answer.finish, calls.length),
      },
    ],
    usage: answer.usage === undefined ? undefined : encodeUsage(answer.usage),
  });
}

export function headOf(
  started: { readonly id?: string; readonly model?: string },
  options: AnswerEncodeOptions,
): JsonObject {
  return {
    id: options.id ?? started.id ?? "chatcmpl-callgate",
    object: "chat.completion.chunk",
    created: options.createdAt ?? 0,
    model: options.model ?? started.model ?? "",
  };
}

export function encodeFinish(finish: Finish | undefined, calls: number): string {
  if (finish === "length" || finish === "content_filter") return finish;
  if (finish === "refusal") return "content_filter";
  return calls > 0 ? "tool_calls" : "stop";
}

export function encodeUsage(usage: Usage): JsonObject {
  return defined({
    prompt_tokens: usage.input,
    completion_tokens: usage.output,
    total_tokens: usage.input + usage.output,
    prompt_tokens_details: usage.cached === undefined ? undefined : { cached_tokens: usage.cached },
    completion_tokens_details: usage.reasoning === undefined ? undefined : { reasoning_tokens: usage.reasoning },
  });
}

/**
 * Writes the calls of an answer, given all of its items in order. State of other wires has one place here that clients
 * give back: where Google's own Chat endpoint keeps the signature of a call.
 */
export function createCallWriter(spell: Spell, sign: Sign | undefined): (item: Item) => JsonObject | undefined {
  let thoughts: ReasoningItem[] = [];
  return (item) => {
    if (item.type === "reasoning" && item.opaque !== undefined) thoughts.push(item);
    if (item.type !== "call") return undefined;
    const extra = { ...stateOf(item, thoughts, sign), ...echoed(item.extra, "chat") };
    thoughts = [];
    const name = spell(item.name, item.namespace);
    if (item.kind === "custom")
      return { id: item.id, type: "custom", custom: { name, input: item.arguments }, ...extra };
    const args = item.complete ? item.arguments : argumentsText(item);
    return { id: item.id, type: "function", function: { name, arguments: args }, ...extra };
  };
}

function stateOf(call: CallItem, thoughts: readonly ReasoningItem[], sign: Sign | undefined): JsonObject {
  const own = thoughts.length === 0 ? echoed(call.extra, "gemini")["thoughtSignature"] : undefined;
  const state = own ?? sealTurn(thoughts, call, "chat", sign);
  return state === undefined ? {} : { extra_content: { google: { thought_signature: state } } };
}

function encodeWords(items: readonly Item[]): JsonObject {
  const messages = items.filter((item) => item.type === "message");
  const thoughts = items.filter((item) => item.type === "reasoning");
  const content = messages.map(wordsOf).join("");
  const refusal = messages.map((message) => message.refusal ?? "").join("");
  const reasoning = thoughts.map(thoughtsOf).join("");
  return {
    role: "assistant",
    content: content === "" ? null : content,
    refusal: refusal === "" ? null : refusal,
    ...(thoughts.length === 0 ? {} : { reasoning_content: reasoning }),
    ...Object.assign({}, ...thoughts.map((item) => echoed(item.extra, "chat"))),
  };
}
