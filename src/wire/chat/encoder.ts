/**
 * Neutral events as Chat Completions chunks. Words and thoughts go out as they come; a call goes out
 * when it is done, because only then its name and arguments are known to be what the model meant.
 */
import type { JsonObject } from "../../base/json.ts";
import type {
  Answer,
  AnswerEnd,
  CallItem,
  DeltaField,
  Finish,
  Item,
  MessageItem,
  ModelError,
  ModelEvent,
  ReasoningItem,
  Usage,
} from "../../spec/model.ts";
import type { AnswerEncodeOptions, AnswerEncoder, Frame } from "../codec.ts";
import { spellerOf } from "../names.ts";
import { defined, echoed } from "../raw.ts";

export function createChatEncoder(options: AnswerEncodeOptions = {}): AnswerEncoder {
  const spell = spellerOf(options.names);
  const sent = new Map<string, string>();
  let head = headOf(options);
  let calls = 0;
  let hasStarted = false;

  const chunk = (delta: JsonObject): Frame => toFrame({ ...head, choices: [{ index: 0, delta, finish_reason: null }] });

  function start(): readonly Frame[] {
    if (hasStarted) return [];
    hasStarted = true;
    return [chunk({ role: "assistant", content: "" })];
  }

  function say(index: number, field: WordField, delta: string): readonly Frame[] {
    if (delta === "") return [];
    const key = `${index} ${field}`;
    sent.set(key, (sent.get(key) ?? "") + delta);
    return [...start(), chunk({ [field]: delta })];
  }

  function sayRest(index: number, field: WordField, whole: string): readonly Frame[] {
    const before = sent.get(`${index} ${field}`) ?? "";
    return say(index, field, whole.startsWith(before) ? whole.slice(before.length) : "");
  }

  function call(item: CallItem): readonly Frame[] {
    const index = calls++;
    const body = encodeAnswerCall(item, spell);
    if (item.kind === "custom") return [...start(), chunk({ tool_calls: [{ index, ...body }] })];
    const name = spell(item.name, item.namespace);
    return [
      ...start(),
      chunk({ tool_calls: [{ index, ...body, function: { name, arguments: "" } }] }),
      chunk({ tool_calls: [{ index, function: { arguments: item.arguments } }] }),
    ];
  }

  /** What a done item holds beyond what its deltas said: answers that were not streamed have no deltas. */
  function finishItem(index: number, item: Item): readonly Frame[] {
    if (item.type === "call") return call(item);
    if (item.type === "message") {
      return [...sayRest(index, "content", textOf(item)), ...sayRest(index, "refusal", item.refusal ?? "")];
    }
    if (item.type !== "reasoning") return [];
    const details = echoed(item.extra, "chat");
    const rest = sayRest(index, "reasoning_content", thoughtsOf(item));
    return Object.keys(details).length === 0 ? rest : [...rest, ...start(), chunk(details)];
  }

  return {
    push(event: ModelEvent) {
      switch (event.type) {
        case "answer.started":
          head = headOf({
            ...options,
            ...defined({ id: options.id ?? event.id, model: options.model ?? event.model }),
          });
          return start();
        case "item.delta":
          return event.field === "arguments" ? [] : say(event.index, wordFields[event.field], event.delta);
        case "item.done":
          return finishItem(event.index, event.item);
        case "answer.ended":
          return [...start(), ...endFrames(event.answer, head, calls)];
        case "item.started":
        case "other":
          return [];
      }
    },
  };
}

type WordField = "content" | "refusal" | "reasoning_content";

const wordFields: Readonly<Record<Exclude<DeltaField, "arguments">, WordField>> = {
  text: "content",
  refusal: "refusal",
  reasoning: "reasoning_content",
  summary: "reasoning_content",
};

function textOf(item: MessageItem): string {
  return item.content.map((part) => (part.type === "text" ? part.text : "")).join("");
}

function thoughtsOf(item: ReasoningItem): string {
  return [...(item.summary ?? []), item.text ?? ""].join("");
}

function toFrame(value: JsonObject): Frame {
  return { data: JSON.stringify(value) };
}

function headOf(options: AnswerEncodeOptions): JsonObject {
  return {
    id: options.id ?? "chatcmpl-callgate",
    object: "chat.completion.chunk",
    created: options.createdAt ?? 0,
    model: options.model ?? "",
  };
}

/** A stream that broke has no `finish_reason` and no `[DONE]`, so that the client sees it too. */
function endFrames(end: AnswerEnd, head: JsonObject, calls: number): readonly Frame[] {
  if (end.outcome === "error") return [toFrame({ error: encodeError(end.error) })];
  if (end.outcome === "truncated") return [];
  const finish = encodeFinish(end.finish, calls);
  const last = { ...head, choices: [{ index: 0, delta: {}, finish_reason: finish }] };
  const usage = end.usage === undefined ? [] : [{ ...head, choices: [], usage: encodeUsage(end.usage) }];
  return [...[last, ...usage].map(toFrame), { data: "[DONE]" }];
}

function encodeError(error: ModelError | undefined): JsonObject {
  const { message = "the model's answer broke off", type = "server_error", code } = error ?? {};
  return { message, type, param: null, code: code ?? null };
}

function encodeFinish(finish: Finish | undefined, calls: number): string {
  if (finish === "length" || finish === "content_filter") return finish;
  if (finish === "refusal") return "content_filter";
  return calls > 0 ? "tool_calls" : "stop";
}

function encodeUsage(usage: Usage): JsonObject {
  return defined({
    prompt_tokens: usage.input,
    completion_tokens: usage.output,
    total_tokens: usage.input + usage.output,
    prompt_tokens_details: usage.cached === undefined ? undefined : { cached_tokens: usage.cached },
    completion_tokens_details: usage.reasoning === undefined ? undefined : { reasoning_tokens: usage.reasoning },
  });
}

function encodeAnswerCall(item: CallItem, spell: (name: string, namespace?: string) => string): JsonObject {
  const name = spell(item.name, item.namespace);
  const extra = echoed(item.extra, "chat");
  if (item.kind === "custom") return { id: item.id, type: "custom", custom: { name, input: item.arguments }, ...extra };
  return { id: item.id, type: "function", function: { name, arguments: item.arguments }, ...extra };
}

/** The whole body: what the chunks of the same answer add up to. */
export function encodeAnswer(answer: Answer, options: AnswerEncodeOptions = {}): JsonObject {
  if (answer.outcome === "error") return { error: encodeError(answer.error) };
  const spell = spellerOf(options.names);
  const calls = answer.items.flatMap((item) => (item.type === "call" ? [encodeAnswerCall(item, spell)] : []));
  const isEnded = answer.outcome !== "truncated";
  return defined({
    ...headOf({ ...options, ...defined({ id: options.id ?? answer.id, model: options.model ?? answer.model }) }),
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

function encodeWords(items: readonly Item[]): JsonObject {
  const messages = items.filter((item) => item.type === "message");
  const thoughts = items.filter((item) => item.type === "reasoning");
  const content = messages.map(textOf).join("");
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
