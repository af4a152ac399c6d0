/**
 * The response processor: in an answer whose text may contain calls, these become items. Native calls
 * pass through. Both kinds may occur in one answer, and run on the same line.
 */
import { partsToText } from "../base/content.ts";
import type { AnswerEnd, Finish, Item, MessageItem, ModelEvent } from "../spec/model.ts";
import { hash8 } from "../spec/name.ts";
import { createTextDecoder, type TextCallDecoder, type TextDecoderOptions } from "./decode.ts";

/** Options of `wrapTextCalls`. */
export interface TextCallOptions extends Omit<TextDecoderOptions, "nextIndex"> {
  /**
   * What was said before. Invented ids continue from there, so that none occurs twice in a conversation.
   * Left out: they are derived from the answer's own id.
   */
  readonly history?: readonly Item[];
  /**
   * A name for the conversation, so that invented ids differ from those of another one. Left out: the
   * answer's own id.
   */
  readonly conversation?: string;
}

/** The events of a model that only writes text, with the calls in that text as calls. */
export async function* wrapTextCalls(
  events: AsyncIterable<ModelEvent> | Iterable<ModelEvent>,
  options: TextCallOptions,
): AsyncGenerator<ModelEvent> {
  const step = createTextCallStep(options);
  for await (const event of events) yield* step(event);
}

interface OpenMessage {
  readonly base: MessageItem;
  readonly decoder: TextCallDecoder;
  heard: boolean;
}

/** The same as `wrapTextCalls`, one event at a time. */
function createTextCallStep(given: TextCallOptions): (event: ModelEvent) => readonly ModelEvent[] {
  const { history, conversation, ...options } = given;
  let items = 0;
  const nextIndex = () => items++;
  const places = new Map<number, number>();
  const messages = new Map<number, OpenMessage>();
  const before = (history ?? []).filter((item) => item.type === "call").length;
  let called = false;
  let answerId = "";

  function place(index: number): number {
    const known = places.get(index);
    if (known !== undefined) return known;
    const fresh = nextIndex();
    places.set(index, fresh);
    return fresh;
  }

  /**
   * Ids must not occur twice, in one conversation or in two, so they contain the conversation's name and
   * the number of calls before.
   */
  function idPrefix(): string {
    const named = conversation === undefined ? answerId : hash8(conversation);
    const seed = history === undefined || before === 0 ? "" : String(before);
    return ["call", named, seed, messages.size === 0 ? "" : String(messages.size), ""]
      .filter((part, at) => part !== "" || at === 4)
      .join("_");
  }

  function openMessage(index: number, base: MessageItem): OpenMessage {
    const decoder = createTextDecoder({ idPrefix: idPrefix(), startsIn: "text", ...options, nextIndex });
    const message = { base, decoder, heard: false };
    messages.set(index, message);
    return message;
  }

  /** What the decoder made of a message, with what the provider said about that message. */
  function from(message: OpenMessage, events: readonly ModelEvent[]): readonly ModelEvent[] {
    // Only the provider says how the answer ended.
    return events
      .filter(({ type }) => type !== "answer.ended")
      .map((event) => {
        if (event.type === "item.started" && event.item.type === "call") called = true;
        if ((event.type !== "item.started" && event.type !== "item.done") || event.item.type !== "message")
          return event;
        return { ...event, item: { ...message.base, content: event.item.content } };
      });
  }

  function ended(answer: AnswerEnd): readonly ModelEvent[] {
    const finish: Finish | undefined =
      answer.outcome === "truncated" ? "length" : answer.outcome === "error" ? "error" : answer.finish;
    const rest = [...messages.values()].flatMap((message) => from(message, message.decoder.end(finish)));
    return [
      ...rest,
      {
        type: "answer.ended",
        answer: called && answer.finish === "stop" ? { ...answer, finish: "tool_calls" } : answer,
      },
    ];
  }

  return (event) => {
    switch (event.type) {
      case "answer.started":
        answerId = (event.id ?? "").replace(/[^A-Za-z0-9-]/g, "").slice(-24);
        return [event];
      case "item.started":
        if (event.item.type !== "message") return [{ ...event, index: place(event.index) }];
        openMessage(event.index, event.item);
        return [];
      case "item.delta": {
        const message = messages.get(event.index);
        if (message === undefined || event.field !== "text") return [{ ...event, index: place(event.index) }];
        message.heard = true;
        return from(message, message.decoder.push(event.delta));
      }
      case "item.done": {
        if (event.item.type !== "message") return [{ ...event, index: place(event.index) }];
        const message = messages.get(event.index) ?? openMessage(event.index, event.item);
        const said = message.heard ? "" : partsToText(event.item.content.filter((part) => part.type === "text"));
        const refusal = event.item.refusal === undefined ? [] : [{ ...event, index: place(event.index) }];
        return [...from(message, message.decoder.push(said)), ...refusal];
      }
      case "answer.ended":
        return ended(event.answer);
      default:
        return [event];
    }
  };
}
