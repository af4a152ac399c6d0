import { parseJson, type JsonObject } from "../base/json.ts";
import type { ModelError, ModelEvent } from "../spec/model.ts";
import { answerToEvents } from "../wire/answer.ts";
import type { Codec, DecodeOptions } from "../wire/codec.ts";
import { createStreamReader, decodeRecording } from "../wire/stream.ts";
import { classify, isRetryable, readTransportFailure } from "./failure.ts";

/**
 * Turns a body's bytes into events. These are plain functions, because each generator between a server
 * and its reader would cost something per event.
 */
export interface Reader {
  push(chunk: Uint8Array): readonly ModelEvent[];
  end(): readonly ModelEvent[];
  /** The answer has ended; whatever follows is not part of it. */
  isOver(): boolean;
  /** The connection broke. */
  fail(error: unknown): readonly ModelEvent[];
  /** Why the answer ended before anything of it was shown, if asking again may help. Its end was then held back. */
  failure(): ModelError | undefined;
}

export function createReader(
  codec: Codec,
  options: DecodeOptions,
  url: URL,
  headers: Readonly<Record<string, string | undefined>> = {},
): Reader {
  const stream = createStreamReader(codec, options);
  /** What came before the first event; it may not be a stream at all. */
  let unread: Uint8Array[] | undefined = [];
  let isShown = false;
  /** How many of these this wire does not know. */
  let strangeCount = 0;
  let isOver = false;
  let failure: ModelError | undefined;
  let told = tellingHeaders(headers);

  /** How the answer ended, in our own terms. Undefined if it is to be tried again. */
  function judge(event: Ended): ModelEvent | undefined {
    if (event.answer.error === undefined) return event;
    const error = classify(event.answer.error);
    if (isShown || !isRetryable(error)) return { ...event, answer: { ...event.answer, error } };
    failure = error;
    return undefined;
  }

  function sift(events: readonly ModelEvent[]): readonly ModelEvent[] {
    const [first] = events;
    const last = events.at(-1);
    if (first?.type === "answer.started" && told !== undefined) {
      const started = { ...first, extra: { wire: "http", fields: told } };
      told = undefined;
      return sift([started, ...events.slice(1)]);
    }
    isShown ||= events.some((event) => event.type.startsWith("item."));
    strangeCount += events.filter((event) => event.type === "other").length;
    if (last?.type !== "answer.ended") return events;
    isOver = true;
    return [...events.slice(0, -1), ...[judge(last) ?? []].flat()];
  }

  return {
    push(chunk) {
      const events = stream.push(chunk);
      if (stream.frames() > 0) unread = undefined;
      else unread?.push(chunk);
      return sift(events);
    },
    isOver: () => isOver,
    end() {
      if (isOver) return [];
      const whole = unread === undefined ? "" : Buffer.concat(unread).toString("utf8");
      if (whole.trim() !== "" && !isEventStream(whole)) return sift(decodeWhole(whole, url, codec, options));
      const rest = sift(stream.end());
      const isStrange = !isShown && strangeCount > 0 && strangeCount >= stream.frames() / 2 && rest.some(isTruncated);
      return isStrange ? [failed(otherWire(url, codec))] : rest;
    },
    fail(thrown) {
      const error = readTransportFailure(thrown);
      // The decoder closes what is still open as incomplete; the reason is added here.
      return sift(
        stream
          .cut()
          .map((event) => (event.type === "answer.ended" ? { ...event, answer: { ...event.answer, error } } : event)),
      );
    },
    failure: () => failure,
  };
}

/** Headers that identify the request and say how much more may be asked. Undefined if there are none. */
function tellingHeaders(headers: Readonly<Record<string, string | undefined>>): JsonObject | undefined {
  const found = Object.entries(headers).filter(
    (entry): entry is [string, string] =>
      entry[1] !== undefined && /request-id|ratelimit|^retry-after|^openai-/.test(entry[0]),
  );
  return found.length === 0 ? undefined : Object.fromEntries(found);
}

function isTruncated(event: ModelEvent): boolean {
  return event.type === "answer.ended" && event.answer.outcome === "truncated";
}

function failed(error: ModelError): ModelEvent {
  return { type: "answer.ended", answer: { outcome: "error", finish: "error", error } };
}

/** The error for a stream that ended in order, but consisted mostly of frames that this wire does not know. */
function otherWire(url: URL, codec: Codec): ModelError {
  return {
    message: `${url.host} answered with a stream that says nothing in '${codec.name}': does it speak another wire?`,
    type: "bad_request",
  };
}

type Ended = Extract<ModelEvent, { type: "answer.ended" }>;

/** Comments alone are a stream as well, because servers use them to keep a connection open. */
function isEventStream(text: string): boolean {
  return /^(?:data|event|id|retry)?:/m.test(text);
}

/** A server may answer in one piece although it was asked for a stream, or with something else altogether. */
function decodeWhole(text: string, url: URL, codec: Codec, options: DecodeOptions): readonly ModelEvent[] {
  if (parseJson(text).ok) return answerToEvents(decodeRecording(codec, [text], options));
  const begins = text.trim().slice(0, 60);
  const error: ModelError = /^[{[]/.test(begins)
    ? { message: `The answer is not the JSON it seems to be: it begins with '${begins}'.`, type: "overloaded" }
    : notAnApi(url, 200, begins);
  return [failed(error)];
}

export function notAnApi(url: URL, status: number, begins: string): ModelError {
  const what = begins.startsWith("<") ? "a web page" : `'${begins}'`;
  return {
    message: `${url.host} answered with ${what} (HTTP ${status}), not as a model: is the base URL right?`,
    type: "bad_request",
    status,
  };
}
