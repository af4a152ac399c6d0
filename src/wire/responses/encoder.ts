/**
 * Neutral events as a canonical Responses stream, complete enough for the strictest reader: every item
 * announced, numbered without gaps, ended, and repeated in the last event. Text and reasoning flow as
 * they come; from the first call on everything waits for the end of the answer, because clients run a
 * call as soon as they see it done.
 */
import type { JsonObject } from "../../base/json.ts";
import type { Answer, ModelEvent } from "../../spec/model.ts";
import type { AnswerEncodeOptions, AnswerEncoder, Frame } from "../codec.ts";
import { withCarrier } from "../envelope.ts";
import { createHold, handedOut } from "../hold.ts";
import { inventId } from "../ids.ts";
import { createOutbox } from "../outbox.ts";
import { encodeResponse, type ResponseHead } from "./answer.ts";
import { wire } from "./decode-item.ts";
import { encodeOutputItem } from "./encode-item.ts";
import { createOutput } from "./output.ts";

export function encodeAnswer(given: Answer, options: AnswerEncodeOptions = {}): JsonObject {
  const answer = handedOut(given);
  const head = headOf(answer, options);
  const output = answer.items
    .flatMap((item) => withCarrier(item, wire))
    .map((item, place) => encodeOutputItem(item, head.id, place, options.sign))
    .filter((item) => item !== undefined);
  return encodeResponse(head, output, answer);
}

interface Started {
  readonly id?: string;
  readonly model?: string;
}

function headOf(started: Started, options: AnswerEncodeOptions): ResponseHead {
  return {
    id: options.id ?? started.id ?? inventId("response", 0, "resp_"),
    model: options.model ?? started.model ?? "",
    createdAt: options.createdAt ?? 0,
  };
}

export function createEncoder(options: AnswerEncodeOptions = {}): AnswerEncoder {
  const frames = createOutbox<Frame>();
  const hold = createHold({ inOrder: true, write });
  const output = createOutput(emit, () => begin({}).id, options.sign);
  let head: ResponseHead | undefined;
  let sequence = 0;

  function emit(type: string, fields: JsonObject): void {
    frames.push({ event: type, data: JSON.stringify({ type, sequence_number: sequence++, ...fields }) });
  }

  function begin(started: Started): ResponseHead {
    if (head !== undefined) return head;
    head = headOf(started, options);
    const response = encodeResponse(head, []);
    emit("response.created", { response });
    emit("response.in_progress", { response });
    return head;
  }

  function write(event: ModelEvent): void {
    switch (event.type) {
      case "answer.started":
        begin(event);
        return;
      case "item.started":
        // Calls are announced when they are known whole: their names and ids may still change.
        if (event.item.type === "message" || event.item.type === "reasoning") output.announce(event.index, event.item);
        return;
      case "item.delta":
        return output.grow(event.index, event.field, event.part ?? 0, event.delta);
      case "item.done":
        return output.finish(event.index, event.item);
      case "answer.ended": {
        const response = encodeResponse(begin({}), output.items(), event.answer);
        return emit(`response.${String(response["status"])}`, { response });
      }
      case "other":
        return;
    }
  }

  return {
    push(event) {
      hold.push(event);
      return frames.drain();
    },
  };
}
