/**
 * A Responses stream as neutral events. Servers leave out much of the canonical sequence (`added`, item
 * ids, deltas, even whole items until `completed`), so an item is found by whatever names it, grows from
 * whatever tells of it, and ends with the last whole form that was sent.
 */
import type { Answer, ModelEvent } from "../../spec/model.ts";
import { collect } from "../answer.ts";
import type { AnswerDecoder, DecodeOptions } from "../codec.ts";
import { defined, json, object, parseObject, type Raw, string, word } from "../raw.ts";
import { decodeEnding, decodeError, type Ending, endOf } from "./answer.ts";
import { wire } from "./decode-item.ts";
import { readStep } from "./events.ts";
import { createItems } from "./items.ts";

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

interface Reader {
  read(type: string, event: Raw): readonly ModelEvent[];
  end(): readonly ModelEvent[];
}

function createReader(options: DecodeOptions): Reader {
  let out: ModelEvent[] = [];
  const items = createItems(options, (event) => out.push(event));
  let isStarted = false;
  let isEnded = false;

  function start(response: Raw): void {
    if (isStarted) return;
    isStarted = true;
    out.push(defined({ type: "answer.started" as const, id: word(response["id"]), model: word(response["model"]) }));
  }

  function end(ending: Ending, response: Raw): void {
    start(response);
    items.output(response["output"]);
    const hasCalls = items.finish(ending.outcome === "ok");
    out.push({ type: "answer.ended", answer: endOf(ending, response, hasCalls) });
    isEnded = true;
  }

  function dispatch(type: string, event: Raw): void {
    switch (type) {
      case "response.created":
      case "response.queued":
      case "response.in_progress":
        return start(object(event["response"]));
      case "response.output_item.added":
        start({});
        return items.added(event);
      case "response.output_item.done":
        start({});
        return items.done(event);
      case "response.output_text.annotation.added":
        return items.annotate(event);
      case "response.completed":
      case "response.done":
      case "response.incomplete":
      case "response.failed":
      case "response.cancelled": {
        const response = object(event["response"]);
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
      start({});
      return items.step(event, step);
    }
    // A body that is an error and no event: some servers put it into the stream as it is.
    if (type === "" && event["error"] !== undefined && event["error"] !== null) return dispatch("error", event);
    out.push({ type: "other", wire, raw: json(event) });
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
      if (!isEnded) end({ outcome: "truncated" }, {});
      return flush();
    },
  };
}

/** The event's name says it, unless the body of a cheerful event says otherwise. */
function statusOf(type: string, response: Raw): string {
  const own = string(response["status"]);
  if (own === "failed" || own === "incomplete" || own === "cancelled") return own;
  return type === "response.done" ? "completed" : type.slice("response.".length);
}
