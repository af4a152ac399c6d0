/**
 * A Messages stream as neutral events. A call's input is the concatenation of its pieces and nothing else,
 * because a piece may be cut or not be JSON.
 */
import { defined } from "../../base/json.ts";
import type { Answer, AnswerEnd } from "../../spec/model.ts";
import { collect } from "../answer.ts";
import type { AnswerDecoder, DecodeOptions } from "../codec.ts";
import { createEventReader, type EventReader, type EventSteps, type Telling, toDecoder } from "../event-reader.ts";
import { object, objects, type Raw } from "../raw.ts";
import { createBlocks } from "./blocks.ts";
import { decodeError, wire } from "./ending.ts";
import { createTally } from "./tally.ts";

export function createDecoder(options: DecodeOptions = {}): AnswerDecoder {
  return toDecoder(createReader(options));
}

/** A body that came as a whole is read as one event that says everything. */
export function decodeAnswer(body: unknown, options: DecodeOptions = {}): Answer {
  const message = object(body);
  const reader = createReader(options);
  const isError = message["type"] === "error" || (message["content"] === undefined && message["error"] !== undefined);
  return collect([...reader.read(isError ? "error" : "message", message), ...reader.end()]);
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

  function start(message: Raw): void {
    if (!telling.start(message)) return;
    tally.start(message);
    // A server that goes on with a turn begins with what it has already.
    for (const [index, block] of objects(message["content"]).entries()) blocks.whole(index, block);
  }

  function read(type: string, event: Raw): void {
    switch (type) {
      case "message_start":
        return start(object(event["message"]));
      case "message":
        start(event);
        tally.add({ delta: { stop_reason: event["stop_reason"] ?? "end_turn" }, usage: event["usage"] });
        return conclude();
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
