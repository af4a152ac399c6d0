/**
 * Chat Completions answers to neutral events. Calls are judged when the whole answer has ended, never
 * by `finish_reason` alone: servers say `stop` with calls and `tool_calls` without any.
 */
import { text as textPart } from "../../base/content.ts";
import { isObject } from "../../base/json.ts";
import type { AnswerEnd, CallItem, Finish, ModelError, ModelEvent, Outcome, Usage } from "../../spec/model.ts";
import { createAssembler, type OpenCall } from "../assemble.ts";
import type { AnswerDecoder, DecodeOptions, Frame } from "../codec.ts";
import { unwrapFreeform } from "../freeform.ts";
import { createIdMaker } from "../ids.ts";
import { lookUp } from "../names.ts";
import { isWhole, json, jsonObject, object, objects, parseObject, word, type Raw } from "../raw.ts";
import { createThinkSplitter } from "../think.ts";
import { firstChoice, readCalls, readContent, readError, readReasoning, readUsage } from "./delta.ts";
import { expandParallel, isParallelWrapper } from "./parallel.ts";

/** A Chat answer is one message: its thoughts, its words, then its calls, whatever order they came in. */
const slots = { reasoning: 0, message: 1, calls: 2 } as const;

export interface ChatDecoder extends AnswerDecoder {
  /** One chunk, or one whole body (whose `message` reads like a single delta). */
  pushChunk(chunk: Raw): readonly ModelEvent[];
}

export function createChatDecoder(options: DecodeOptions = {}): ChatDecoder {
  const declared = new Set([...(options.declared ?? []), ...(options.names?.keys() ?? [])]);
  const assembler = createAssembler(declared);
  const think = options.thinkTags === true ? createThinkSplitter() : undefined;
  const shown = new Map<OpenCall, number>();
  let events: ModelEvent[] = [];
  let started = false;
  let ended = false;
  let text = "";
  let refusal = "";
  let reasoning: string | undefined;
  let details: unknown[] | undefined;
  let finish: Finish | undefined;
  let isFinal = false;
  let usage: Usage | undefined;
  let error: ModelError | undefined;

  function say(field: "text" | "refusal", delta: string): void {
    if (delta === "") return;
    if (text === "" && refusal === "") {
      events.push({
        type: "item.started",
        index: slots.message,
        item: { type: "message", role: "assistant", content: [] },
      });
    }
    if (field === "text") text += delta;
    else refusal += delta;
    events.push({ type: "item.delta", index: slots.message, field, delta });
  }

  function muse(delta: string): void {
    if (delta === "") return;
    if (reasoning === undefined || reasoning === "") {
      events.push({ type: "item.started", index: slots.reasoning, item: { type: "reasoning" } });
    }
    reasoning = (reasoning ?? "") + delta;
    events.push({ type: "item.delta", index: slots.reasoning, field: "reasoning", delta });
  }

  function split(words: string): void {
    if (think === undefined) return say("text", words);
    for (const piece of think.push(words))
      if (piece.inside) muse(piece.text);
      else say("text", piece.text);
  }

  /** Growing calls are announced for whoever shows them; only `item.done` says what they are. */
  function show(call: OpenCall): void {
    if (call.name === "" || isParallelWrapper(call.name) || assembler.isPartialName(call.name)) return;
    const index = slots.calls + call.slot;
    const tool = lookUp(options.names, call.name, call.custom ? "custom" : "function");
    const before = shown.get(call);
    if (before === undefined) {
      const item: CallItem = { type: "call", ...tool, id: call.id ?? "", arguments: "", complete: false };
      events.push({ type: "item.started", index, item });
    }
    const delta = before === undefined ? call.args : call.args.slice(before);
    shown.set(call, call.args.length);
    // A wrapped freeform text is JSON on the way; nobody can show that.
    if (delta !== "" && (call.custom || tool.kind !== "custom"))
      events.push({ type: "item.delta", index, field: "arguments", delta });
  }

  function takeDelta(delta: Raw): void {
    const content = readContent(delta["content"]);
    const beside = readReasoning(delta);
    if (typeof delta["reasoning_content"] === "string") reasoning ??= "";
    if (Array.isArray(delta["reasoning_details"]))
      details = [...(details ?? []), ...objects(delta["reasoning_details"])];
    muse(beside === "" ? content.reasoning : beside);
    split(content.text);
    say("refusal", word(delta["refusal"]) ?? "");
    for (const call of readCalls(delta)) show(assembler.take(call));
  }

  function pushChunk(chunk: Raw): readonly ModelEvent[] {
    if (ended) return [];
    if (!started) {
      started = true;
      const id = word(chunk["id"]);
      const model = word(chunk["model"]);
      events.push({
        type: "answer.started",
        ...(id === undefined ? {} : { id }),
        ...(model === undefined ? {} : { model }),
      });
    }
    const failure = chunk["error"] ?? (chunk["object"] === "error" || chunk["type"] === "error" ? chunk : undefined);
    const choice = firstChoice(chunk);
    if (choice !== undefined && error === undefined) {
      takeDelta(isObject(choice["delta"]) ? choice["delta"] : object(choice["message"]));
      finish = readFinish(choice["finish_reason"]) ?? finish;
    }
    if (failure !== undefined && failure !== null) error ??= readError(failure);
    usage = readUsage(chunk["usage"]) ?? readUsage(object(chunk["x_groq"])["usage"]) ?? usage;
    const known =
      choice !== undefined || failure !== undefined || Array.isArray(chunk["choices"]) || isObject(chunk["usage"]);
    if (!known) events.push({ type: "other", wire: "chat", raw: json(chunk) });
    return drain();
  }

  function drain(): readonly ModelEvent[] {
    const ready = events;
    events = [];
    return ready;
  }

  function outcomeOf(): Outcome {
    if (error !== undefined || finish === "error") return "error";
    if (finish === "length" || finish === "content_filter") return "incomplete";
    return finish !== undefined || isFinal ? "ok" : "truncated";
  }

  function endAnswer(): readonly ModelEvent[] {
    if (ended) return [];
    ended = true;
    for (const piece of think?.end() ?? [])
      if (piece.inside) muse(piece.text);
      else say("text", piece.text);
    if (!started) events.push({ type: "answer.started" });
    const outcome = outcomeOf();
    doneMessage();
    const calls = doneCalls(outcome);
    const answer: AnswerEnd = {
      outcome,
      ...finishOf(outcome, calls),
      ...(usage === undefined ? {} : { usage }),
      ...(error === undefined
        ? finish === "error"
          ? { error: { message: "the provider ended the answer with an error" } }
          : {}
        : { error }),
    };
    events.push({ type: "answer.ended", answer });
    return drain();
  }

  function finishOf(outcome: Outcome, calls: number): { finish?: Finish } {
    if (outcome === "ok") return { finish: calls > 0 ? "tool_calls" : "stop" };
    return finish === undefined || (outcome === "error" && finish !== "error") ? {} : { finish };
  }

  function doneMessage(): void {
    if (reasoning !== undefined || details !== undefined) {
      const extra =
        details === undefined ? {} : { extra: { wire: "chat", fields: { reasoning_details: json(details) } } };
      const said = reasoning === undefined ? {} : { text: reasoning };
      events.push({ type: "item.done", index: slots.reasoning, item: { type: "reasoning", ...said, ...extra } });
    }
    if (text === "" && refusal === "") return;
    const content = text === "" ? [] : [textPart(text)];
    const refused = refusal === "" ? {} : { refusal };
    events.push({
      type: "item.done",
      index: slots.message,
      item: { type: "message", role: "assistant", content, ...refused },
    });
  }

  function doneCalls(outcome: Outcome): number {
    const ids = createIdMaker(options.idSeed);
    const open = assembler.calls();
    let next = Math.max(-1, ...open.map((call) => call.slot)) + 1;
    let position = 0;
    for (const call of open) {
      const several = expandParallel(call, declared);
      for (const [at, one] of (several ?? [call]).entries()) {
        const slot = several === undefined || at === 0 ? call.slot : next++;
        const item = toItem(one, ids.claim(one.id, position++), outcome);
        events.push({ type: "item.done", index: slots.calls + slot, item });
      }
    }
    return position;
  }

  function toItem(call: Pick<OpenCall, "name" | "args" | "custom" | "extra">, id: string, outcome: Outcome): CallItem {
    const tool = lookUp(options.names, call.name, call.custom ? "custom" : "function");
    const wrapped = tool.kind === "custom" && !call.custom;
    const raw = wrapped ? unwrapFreeform(call.args, tool.name) : call.args;
    const isRight = call.custom || (wrapped ? raw !== undefined : isWhole(call.args));
    return {
      type: "call",
      ...tool,
      id,
      arguments: raw ?? call.args,
      complete: outcome === "ok" && call.name !== "" && isRight,
      ...(call.extra === undefined ? {} : { extra: { wire: "chat", fields: jsonObject(call.extra) } }),
    };
  }

  return {
    pushChunk,
    push(frame: Frame) {
      if (ended) return [];
      if (frame.data === "[DONE]" || frame.data.trim() === "[DONE]") {
        isFinal = true;
        return endAnswer();
      }
      const chunk = parseObject(frame.data);
      if (frame.event === "error") return pushChunk({ error: chunk === undefined ? frame.data : chunk });
      return chunk === undefined ? [] : pushChunk(chunk);
    },
    end: endAnswer,
  };
}

const finishes: ReadonlyMap<string, Finish> = new Map<string, Finish>([
  ["stop", "stop"],
  ["tool_calls", "tool_calls"],
  ["function_call", "tool_calls"],
  ["tool_use", "tool_calls"],
  ["length", "length"],
  ["max_tokens", "length"],
  ["model_length", "length"],
  ["content_filter", "content_filter"],
  ["safety", "content_filter"],
  ["error", "error"],
  ["insufficient_system_resource", "error"],
]);

/** A reason nobody knows still says that the answer ended. */
function readFinish(value: unknown): Finish | undefined {
  const reason = word(value);
  return reason === undefined ? undefined : (finishes.get(reason.toLowerCase()) ?? "stop");
}
