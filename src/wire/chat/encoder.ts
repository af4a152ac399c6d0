/**
 * Neutral events as Chat Completions chunks. Words and thoughts go out as they come; a call goes out
 * when it is done, because only then its name and arguments are known to be what the model meant.
 */
import type { JsonObject } from "../../base/json.ts";
import type { Answer, AnswerEnd, CallItem, Finish, Item, ModelError, ModelEvent, Usage } from "../../spec/model.ts";
import { itemToEvents } from "../answer.ts";
import type { AnswerEncodeOptions, AnswerEncoder, Frame } from "../codec.ts";
import { spellerOf } from "../names.ts";
import { defined, echoed } from "../raw.ts";

interface Chunk {
  readonly delta: JsonObject;
  readonly finish?: string;
}

export function createChatEncoder(options: AnswerEncodeOptions = {}): AnswerEncoder {
  const spell = spellerOf(options.names);
  const sent = new Map<number, string>();
  let head = headOf(options);
  let calls = 0;
  let hasStarted = false;

  const frame = (value: JsonObject): Frame => ({ data: JSON.stringify(value) });
  function chunk({ delta, finish }: Chunk): Frame {
    return frame({ ...head, choices: [{ index: 0, delta, finish_reason: finish ?? null }] });
  }
  function start(): readonly Frame[] {
    if (hasStarted) return [];
    hasStarted = true;
    return [chunk({ delta: { role: "assistant", content: "" } })];
  }
  function say(index: number, field: string, delta: string): readonly Frame[] {
    if (delta === "") return [];
    const key = field === "refusal" ? index + 0.5 : index;
    sent.set(key, (sent.get(key) ?? "") + delta);
    return [...start(), chunk({ delta: { [field]: delta } })];
  }
  function call(item: CallItem): readonly Frame[] {
    const index = calls++;
    const { id, ...body } = encodeAnswerCall(item, spell);
    const whole = { index, id: id as string, ...body }; // encodeAnswerCall always sets a string id
    if (item.kind === "custom") return [...start(), chunk({ delta: { tool_calls: [whole] } })];
    const fn = { name: spell(item.name, item.namespace), arguments: "" };
    return [
      ...start(),
      chunk({ delta: { tool_calls: [{ ...whole, function: fn }] } }),
      chunk({ delta: { tool_calls: [{ index, function: { arguments: item.arguments } }] } }),
    ];
  }
  /** What a done item holds beyond what its deltas said: answers that were not streamed have no deltas. */
  function finishItem(index: number, item: Item): readonly Frame[] {
    if (item.type === "call") return call(item);
    const details = item.type === "reasoning" ? echoed(item.extra, "chat") : {};
    const words = itemToEvents(item, index).flatMap((event) => (event.type === "item.delta" ? [event] : []));
    const whole = (refused: boolean) =>
      words
        .filter((event) => (event.field === "refusal") === refused)
        .map((event) => event.delta)
        .join("");
    const field = item.type === "reasoning" ? "reasoning_content" : "content";
    return [
      ...say(index, field, rest(whole(false), sent.get(index))),
      ...say(index, "refusal", rest(whole(true), sent.get(index + 0.5))),
      ...(Object.keys(details).length === 0 ? [] : [...start(), chunk({ delta: details })]),
    ];
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
          return say(event.index, fieldOf(event.field), event.field === "arguments" ? "" : event.delta);
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

function fieldOf(field: string): string {
  if (field === "reasoning" || field === "summary") return "reasoning_content";
  return field === "refusal" ? "refusal" : "content";
}

function rest(whole: string, sent = ""): string {
  return whole.startsWith(sent) ? whole.slice(sent.length) : "";
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
  if (end.outcome === "error") return [{ data: JSON.stringify({ error: encodeError(end.error) }) }];
  if (end.outcome === "truncated") return [];
  const finish = encodeFinish(end.finish, calls);
  const last = { ...head, choices: [{ index: 0, delta: {}, finish_reason: finish }] };
  const usage = end.usage === undefined ? [] : [{ ...head, choices: [], usage: encodeUsage(end.usage) }];
  return [...[last, ...usage].map((value) => ({ data: JSON.stringify(value) })), { data: "[DONE]" }];
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
  const content = messages
    .flatMap((message) => message.content.map((part) => (part.type === "text" ? part.text : "")))
    .join("");
  const refusal = messages.map((message) => message.refusal ?? "").join("");
  const reasoning = thoughts.flatMap((item) => [...(item.summary ?? []), item.text ?? ""]).join("");
  return {
    role: "assistant",
    content: content === "" ? null : content,
    refusal: refusal === "" ? null : refusal,
    ...(thoughts.length === 0 ? {} : { reasoning_content: reasoning }),
    ...Object.assign({}, ...thoughts.map((item) => echoed(item.extra, "chat"))),
  };
}
