/** A whole answer as a Chat Completions body, and the pieces that its chunks share with it. */
import { defined, type JsonObject } from "../../base/json.ts";
import type { Answer, CallItem, Finish, Item, ModelError, Usage } from "../../spec/model.ts";
import { thoughtsOf, wordsOf } from "../answer.ts";
import type { AnswerEncodeOptions } from "../codec.ts";
import { type Spell, spellerOf } from "../names.ts";
import { echoed } from "../raw.ts";

/** What the chunks of the same answer add up to. */
export function encodeAnswer(answer: Answer, options: AnswerEncodeOptions = {}): JsonObject {
  if (answer.outcome === "error") return { error: encodeError(answer.error) };
  const spell = spellerOf(options.names);
  const calls = answer.items.flatMap((item) => (item.type === "call" ? [encodeAnswerCall(item, spell)] : []));
  const isEnded = answer.outcome !== "truncated";
  return defined({
    ...headOf(answer, options),
    object: "chat.completion",
    choices: [
      {
        index: 0,
        message: defined({ ...encodeWords(answer.items), tool_calls: calls.length === 0 ? undefined : calls }),
        finish_reason: isEnded ? encodeFinish(answer.finish, calls.length) : null,
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

export function encodeError(error: ModelError | undefined): JsonObject {
  const { message = "the model's answer broke off", type = "server_error", code } = error ?? {};
  return { message, type, param: null, code: code ?? null };
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

export function encodeAnswerCall(item: CallItem, spell: Spell): JsonObject {
  const name = spell(item.name, item.namespace);
  const extra = echoed(item.extra, "chat");
  if (item.kind === "custom") return { id: item.id, type: "custom", custom: { name, input: item.arguments }, ...extra };
  return { id: item.id, type: "function", function: { name, arguments: item.arguments }, ...extra };
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
