/**
 * A Messages stream as neutral events. A call's input is the concatenation of its pieces and nothing else,
 * because a piece may be cut or not be JSON.
 */
import { isObject } from "../../base/json.ts";
import type { Answer, AnswerEnd } from "../../spec/model.ts";
import { collect } from "../answer.ts";
import type { AnswerDecoder, DecodeOptions } from "../codec.ts";
import { createEventReader, type EventReader, type EventSteps, type Telling, toDecoder } from "../event-reader.ts";
import { array, defined, object, type Raw } from "../raw.ts";
import { createBlocks } from "./blocks.ts";
import { decodeError, wire } from "./ending.ts";
import { createTally } from "./tally.ts";

export function createDecoder(options: DecodeOptions = {}): AnswerDecoder {
  return toDecoder(createReader(options));
}

/** A body that came as a whole is read as the events that would have carried it. */
export function decodeAnswer(body: unknown, options: DecodeOptions = {}): Answer {
  const message = object(body);
  const reader = createReader(options);
  if (message["type"] === "error" || (message["content"] === undefined && message["error"] !== undefined)) {
    return collect([...reader.read("error", message), ...reader.end()]);
  }
  const { content, stop_reason, stop_sequence, stop_details, usage, ...head } = message;
  return collect([
    ...reader.read("message_start", { message: head }),
    ...array(content).flatMap((block, index) => [
      ...reader.read("content_block_start", { index, content_block: block }),
      ...(isEmptyCall(block)
        ? reader.read("content_block_delta", { index, delta: { type: "input_json_delta", partial_json: "{}" } })
        : []),
      ...reader.read("content_block_stop", { index }),
    ]),
    ...reader.read("message_delta", {
      delta: { stop_reason: stop_reason ?? "end_turn", stop_sequence, stop_details },
      usage,
    }),
    ...reader.read("message_stop", {}),
  ]);
}

/** In a whole body an empty input is an empty input, not one that is still to come. */
function isEmptyCall(block: unknown): boolean {
  const { type, input } = object(block);
  return type === "tool_use" && isObject(input) && Object.keys(input).length === 0;
}

function createReader(options: DecodeOptions): EventReader {
  return createEventReader(wire, (telling) => createSteps(options, telling));
}

function createSteps(options: DecodeOptions, telling: Telling): EventSteps {
  const blocks = createBlocks(options, telling.emit);
  const tally = createTally();

  /** The server itself ended the message. */
  function conclude(): void {
    telling.start();
    const end = tally.end(blocks.hasCalls());
    blocks.finish(end.outcome === "ok" && end.finish !== "refusal");
    const refusal = tally.refusal();
    // The last thing the model says.
    if (refusal !== undefined)
      blocks.append({ type: "message", role: "assistant", content: [], refusal }, "refusal", refusal);
    telling.end(end);
  }

  function breakOff(broken: Pick<AnswerEnd, "outcome" | "error">): void {
    telling.start();
    blocks.finish(false);
    telling.end(defined({ ...broken, usage: tally.cost() }));
  }

  function read(type: string, event: Raw): void {
    switch (type) {
      case "message_start": {
        const message = object(event["message"]);
        if (telling.start(message)) tally.start(message);
        return;
      }
      case "content_block_start":
        telling.start();
        return blocks.open(event["index"], object(event["content_block"]));
      case "content_block_delta":
        telling.start();
        if (!blocks.grow(event["index"], object(event["delta"]))) telling.other(event);
        return;
      case "content_block_stop":
        return blocks.close(event["index"]);
      case "message_delta":
        return tally.add(event);
      case "message_stop":
        return conclude();
      case "error":
        return breakOff({ outcome: "error", error: decodeError(event) });
      case "ping":
        return;
      default:
        // A body that is an error and no event: some servers put it into the stream as it is.
        if (type === "" && event["error"] !== undefined) return read("error", event);
        return telling.other(event);
    }
  }

  return { read, end: () => (tally.isStopped() ? conclude() : breakOff({ outcome: "truncated" })) };
}
