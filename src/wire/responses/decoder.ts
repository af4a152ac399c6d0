/**
 * A Responses stream as neutral events. Servers leave out much of the canonical sequence (`added`, item
 * ids, deltas, even whole items until `completed`), so an item is found by whatever names it, grows from
 * whatever tells of it, and ends with the last whole form that was sent.
 */
import type { Answer } from "../../spec/model.ts";
import { collect } from "../answer.ts";
import type { AnswerDecoder, DecodeOptions } from "../codec.ts";
import { createEventReader, type EventReader, type EventSteps, type Telling, toDecoder } from "../event-reader.ts";
import { object, type Raw, string } from "../raw.ts";
import { decodeEnding, decodeError, type Ending, endOf } from "./answer.ts";
import { wire } from "./decode-item.ts";
import { readStep } from "./events.ts";
import { createItems } from "./items.ts";

export function createDecoder(options: DecodeOptions = {}): AnswerDecoder {
  return toDecoder(createReader(options));
}

/** A body that came as a whole takes the same way as the last event of a stream. */
export function decodeAnswer(body: unknown, options: DecodeOptions = {}): Answer {
  const reader = createReader(options);
  const response = object(body);
  const isError =
    response["output"] === undefined && (response["error"] !== undefined || response["status"] === undefined);
  const events = isError
    ? reader.read("error", response)
    : reader.read(`response.${string(response["status"]) ?? "completed"}`, { response });
  return collect([...events, ...reader.end()]);
}

function createReader(options: DecodeOptions): EventReader {
  return createEventReader(wire, (telling) => createSteps(options, telling));
}

function createSteps(options: DecodeOptions, telling: Telling): EventSteps {
  const items = createItems(options, telling.emit);

  function end(ending: Ending, response: Raw): void {
    telling.start(response);
    items.output(response["output"]);
    const hasCalls = items.finish(ending.outcome === "ok");
    telling.end(endOf(ending, response, hasCalls));
  }

  function read(type: string, event: Raw): void {
    switch (type) {
      case "response.created":
      case "response.queued":
      case "response.in_progress":
        telling.start(object(event["response"]));
        return;
      case "response.output_item.added":
        telling.start();
        return items.added(event);
      case "response.output_item.done":
        telling.start();
        return items.done(event);
      case "response.output_text.annotation.added":
        return items.annotate(event);
      case "response.completed":
      case "response.done":
      case "response.incomplete":
      case "response.failed":
      case "response.cancelled": {
        // Some gateways forget the envelope.
        const response = object(event["response"] ?? event);
        return end(decodeEnding(statusOf(type, response), response), response);
      }
      case "error":
      case "response.error":
        return end({ outcome: "error", error: decodeError(event) }, {});
      default:
        return readOther(type, event);
    }
  }

  function readOther(type: string, event: Raw): void {
    const step = readStep(type, event);
    if (step !== undefined) {
      telling.start();
      return items.step(event, step);
    }
    // A body that is an error and no event: some servers put it into the stream as it is.
    if (type === "" && event["error"] !== undefined && event["error"] !== null) return read("error", event);
    // A whole response instead of a stream.
    if (type === "" && event["object"] === "response") return read("response.done", { response: event });
    telling.other(event);
  }

  return { read, end: () => end({ outcome: "truncated" }, {}) };
}

/** The event's name says it, unless the body of a cheerful event says otherwise. */
function statusOf(type: string, response: Raw): string {
  const own = string(response["status"]);
  if (own === "failed" || own === "incomplete" || own === "cancelled") return own;
  return type === "response.done" ? "completed" : type.slice("response.".length);
}
