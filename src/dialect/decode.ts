/** Turns text that contains calls into events of the neutral model, piece by piece or at once. */
import { checkOptions, optionsShape } from "../base/shape.ts";
import type { Answer, AnswerEnd, Finish, Item, ModelEvent } from "../spec/model.ts";
import type { Dialect } from "./dialect.ts";
import { toDialect } from "./dialects.ts";
import { createEmitter } from "./emit.ts";
import { append, createInput } from "./input.ts";
import { readAnswer, type Start } from "./read/answer.ts";
import type { Context } from "./read/context.ts";
import { planOf } from "./read/plan.ts";
import { createToolTable, type ToolLike } from "./tools.ts";

/** Options of `createTextDecoder`. */
export interface TextDecoderOptions {
  /** A dialect's name, an alias of it, or the dialect itself. */
  readonly dialect: string | Dialect;
  /**
   * The tools of the request, whose schemas give the types. Without any, every name is accepted and
   * values stay text.
   */
  readonly tools?: readonly ToolLike[];
  /**
   * Where the answer begins, because some prompts end with an opened thought. `unknown` (the default,
   * because a recording does not say) holds text back until that is clear. `text` passes it on at once,
   * as live streams need.
   */
  readonly startsIn?: Start;
  /** `strict`: a call that needed any repair is not complete. */
  readonly recover?: "default" | "strict";
  /** The longest arguments of a call, in characters. A longer call is not complete. Left out: 32 Mi. */
  readonly maxArguments?: number;
  /** The prefix of invented ids, which count up from 0. */
  readonly idPrefix?: string;
  /** Gives out the places of items, if other items are counted too. */
  readonly nextIndex?: () => number;
}

/** Reads a text as it arrives and returns what it holds: text, thoughts, calls. */
export interface TextCallDecoder {
  push(text: string): readonly ModelEvent[];
  /** The answer ended, for this reason if one was given. Only now are calls done. */
  end(finish?: Finish): readonly ModelEvent[];
}

const textDecoderShape = optionsShape<TextDecoderOptions>(
  {
    dialect: "any",
    tools: { list: "any" },
    startsIn: "any",
    recover: { oneOf: ["default", "strict"] },
    maxArguments: { above: 0 },
    idPrefix: "string",
    nextIndex: "function",
  },
  "dialect",
);

/** A reader of one answer that is written in a dialect. Calls are done only when the answer has ended. */
export function createTextDecoder(options: TextDecoderOptions): TextCallDecoder {
  checkOptions("createTextDecoder", options, textDecoderShape);
  const dialect = toDialect(options.dialect);
  const tools = createToolTable(options.tools ?? []);
  const prefix = options.idPrefix ?? "call_";
  let items = 0;
  const emit = createEmitter({
    dialect: dialect.name,
    tools,
    idOf: (index) => `${prefix}${index}`,
    nextIndex: options.nextIndex ?? (() => items++),
    strict: options.recover === "strict",
    maxArguments: options.maxArguments ?? 32 * 1024 * 1024,
  });
  const input = createInput();
  const context: Context = {
    input,
    emit,
    tools,
    opened: [],
    call(head) {
      // A call that was reported cannot become text again.
      input.recorded = undefined;
      return emit.call(head);
    },
  };
  const reading = readAnswer(context, planOf(dialect, tools), options.startsIn ?? "unknown");
  return {
    push(text) {
      if (text !== "") {
        append(input, text);
        if (input.absorb?.() !== true) reading.next();
      }
      return emit.drain();
    },
    end(finish) {
      input.ended = true;
      reading.next();
      return emit.finish(finish);
    },
  };
}

/** Reads a whole answer that is written in a dialect, on the path of a streamed one: one push and the end. */
export function decodeText(text: string, options: TextDecoderOptions & { readonly finish?: Finish }): Answer {
  const { finish, ...reading } = options;
  const decoder = createTextDecoder(reading);
  const events = [...decoder.push(text), ...decoder.end(finish)];
  const items: Item[] = [];
  let end: AnswerEnd = { outcome: "ok" };
  for (const event of events) {
    if (event.type === "item.done") items[event.index] = event.item;
    if (event.type === "answer.ended") end = event.answer;
  }
  return { ...end, items };
}
