/**
 * A Messages stream as neutral events. A call's input is the concatenation of its pieces and nothing else,
 * because a piece may be cut or not be JSON.
 */
import { isObject } from "../../base/json.ts";
import type { Answer, AnswerEnd, ModelEvent } from "../../spec/model.ts";
import { collect } from "../answer.ts";
import type { AnswerDecoder, DecodeOptions } from "../codec.ts";
import { array, defined, json, object, parseObject, type Raw, string, word } from "../raw.ts";
import { createBlocks } from "./blocks.ts";
import { decodeError, decodeUsage, endOf, overlay, readStop, wire } from "./ending.ts";

export function createDecoder(options: DecodeOptions = {}): AnswerDecoder {
  const reader = createReader(options);
  return {
    push(frame) {
      const event = parseObject(frame.data);
      if (event !== undefined) return reader.read(string(event["type"]) ?? frame.event ?? "", event);
      // Proxies put their own words into an error event.
      return frame.event === "error" ? reader.read("error", { message: frame.data }) : [];
    },
    end: () => reader.end(),
  };
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

interface Reader {
  read(type: string, event: Raw): readonly ModelEvent[];
  end(): readonly ModelEvent[];
}

function createReader(options: DecodeOptions): Reader {
  let out: ModelEvent[] = [];
  const blocks = createBlocks(options, (event) => out.push(event));
  let isStarted = false;
  let isEnded = false;
  let usage: Raw = {};
  let isCounted = false;
  let stop: Raw = {};

  function start(message: Raw): void {
    if (isStarted) return;
    isStarted = true;
    usage = overlay({}, message["usage"]);
    out.push(defined({ type: "answer.started" as const, id: word(message["id"]), model: word(message["model"]) }));
  }

  /** The server itself ended the message. */
  function conclude(): void {
    start({});
    const end = endOf({ ...readStop(stop), usage: decodeUsage(usage) }, blocks.hasCalls());
    blocks.finish(end.outcome === "ok" && end.finish !== "refusal");
    // The reason of a refusal stands beside the content; it is the last thing the model says.
    const refusal = word(object(stop["stop_details"])["explanation"]);
    if (refusal !== undefined)
      blocks.append({ type: "message", role: "assistant", content: [], refusal }, "refusal", refusal);
    out.push({ type: "answer.ended", answer: end });
    isEnded = true;
  }

  /** The message broke off. Counters of its start are not its cost. */
  function breakOff(broken: Pick<AnswerEnd, "outcome" | "error">): void {
    start({});
    blocks.finish(false);
    const counted = isCounted ? decodeUsage(usage) : undefined;
    out.push({ type: "answer.ended", answer: defined({ ...broken, usage: counted }) });
    isEnded = true;
  }

  function dispatch(type: string, event: Raw): void {
    switch (type) {
      case "message_start":
        return start(object(event["message"]));
      case "content_block_start":
        start({});
        return blocks.open(event["index"], object(event["content_block"]));
      case "content_block_delta":
        start({});
        if (!blocks.grow(event["index"], object(event["delta"]))) out.push({ type: "other", wire, raw: json(event) });
        return;
      case "content_block_stop":
        return blocks.close(event["index"]);
      case "message_delta":
        stop = overlay(stop, event["delta"]);
        isCounted ||= event["usage"] !== undefined && event["usage"] !== null;
        usage = overlay(usage, event["usage"]);
        return;
      case "message_stop":
        return conclude();
      case "error":
        return breakOff({ outcome: "error", error: decodeError(event) });
      case "ping":
        return;
      default:
        if (type === "" && event["error"] !== undefined)
          return breakOff({ outcome: "error", error: decodeError(event) });
        out.push({ type: "other", wire, raw: json(event) });
    }
  }

  function flush(): readonly ModelEvent[] {
    const events = out;
    out = [];
    return events;
  }

  return {
    read(type, event) {
      if (isEnded) return [];
      dispatch(type, event);
      return flush();
    },
    end() {
      if (isEnded) return [];
      // A stop reason says the same as message_stop, which some servers forget.
      if (word(stop["stop_reason"]) === undefined) breakOff({ outcome: "truncated" });
      else conclude();
      return flush();
    },
  };
}
