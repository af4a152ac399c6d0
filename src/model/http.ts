/**
 * Models over HTTP: an address, a codec, and the patience to ask again. `model/` knows wires and
 * providers; it knows nothing of tools, gates or sessions.
 */
import { parseJson } from "../base/json.ts";
import { describeMs } from "../base/text.ts";
import type { Model, ModelError, ModelEvent, ModelRequest } from "../spec/model.ts";
import type { Codec, DecodeOptions, EncodedRequest, EncodeOptions } from "../wire/codec.ts";
import { answerToEvents } from "../wire/answer.ts";
import { createSseReader } from "../wire/sse.ts";
import { decodeRecording } from "../wire/stream.ts";
import { createBodyWriter } from "./body.ts";
import { coalesce } from "./coalesce.ts";
import { isRetryable, readHttpFailure, readTransportFailure, type FailureContext } from "./failure.ts";
import { createTransport, type HttpAnswer, type TimeLimits, type Transport } from "./transport.ts";

export interface HttpModelOptions {
  readonly codec: Codec;
  readonly baseUrl: string;
  readonly model: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Named in the message when the key is refused. */
  readonly keyName?: string;
  readonly encode?: EncodeOptions;
  readonly limits?: TimeLimits;
  /** How often a request that failed before its first event is sent again. */
  readonly retries?: number;
  readonly transport?: Transport;
  readonly sleep?: (ms: number, signal: AbortSignal) => Promise<void>;
}

export interface HttpModel extends Model {
  close(): void;
}

/** Whoever wants more patience than this is told to the user instead. */
const maxWaitMs = 60_000;

export function createHttpModel(options: HttpModelOptions): HttpModel {
  const transport = options.transport ?? createTransport(options.limits);
  const retries = options.retries ?? 3;
  const sleep = options.sleep ?? wait;
  const url = new URL(`${options.baseUrl.replace(/\/$/, "")}${options.codec.path(options.model, true)}`);
  const headers = { "content-type": "application/json", accept: "text/event-stream", ...options.headers };
  const writeBody = createBodyWriter();

  /** One request, up to its first byte. Nothing has been shown yet, so failing here may be tried again. */
  const send = async (encoded: EncodedRequest, signal: AbortSignal): Promise<HttpAnswer | ModelError> => {
    try {
      const answer = await transport.post(url, writeBody(encoded.body), headers, signal);
      if ((answer.headers["content-type"] ?? "").includes("html")) return notAnApi(url, answer.status, "<");
      if (answer.status >= 200 && answer.status < 300) return answer;
      return readHttpFailure(
        answer.status,
        answer.headers,
        await readText(answer),
        failureContext(options, url, encoded),
      );
    } catch (error) {
      return readTransportFailure(error);
    }
  };

  async function* ask(request: ModelRequest, signal: AbortSignal): AsyncGenerator<ModelEvent> {
    const encoded = options.codec.encodeRequest({ ...request, model: options.model, stream: true }, options.encode);
    for (const dropped of encoded.dropped) yield note("tool.dropped", { ...dropped });
    let answer = await send(encoded, signal);
    for (let attempt = 0; !("body" in answer); attempt++) {
      const waitMs = answer.retryAfterMs ?? 250 * 2 ** attempt;
      if (attempt >= retries || !isRetryable(answer)) return yield failed(answer);
      if (waitMs > maxWaitMs)
        return yield failed({ ...answer, message: `${answer.message} It says to come back in ${describeMs(waitMs)}.` });
      yield note("request.retried", { attempt: attempt + 1, waitMs, reason: answer.message });
      await sleep(waitMs, signal);
      answer = await send(encoded, signal);
    }
    // `idSeed` tells the answers of a conversation apart, for servers that give neither them nor their calls an id.
    const how = { names: encoded.names, idSeed: String(request.input.length) };
    const reader = createReader(options.codec, how, url);
    try {
      for await (const chunk of answer.body) for (const event of reader.push(chunk)) yield event;
    } catch (error) {
      return yield* reader.fail(error);
    }
    yield* reader.end();
  }

  return { name: options.model, ask, close: () => transport.close() };
}

/** Bytes to events. Plain functions: each generator between a server and its reader would cost something per event. */
function createReader(codec: Codec, options: DecodeOptions, url: URL) {
  const sse = createSseReader();
  const decoder = codec.createDecoder(options);
  /** What came while nothing looked like an event: it may be no stream at all. */
  let unread: Uint8Array[] | undefined = [];
  return {
    push(chunk: Uint8Array): readonly ModelEvent[] {
      const frames = sse.push(chunk);
      if (frames.length > 0) unread = undefined;
      else unread?.push(chunk);
      return coalesce(frames.flatMap((frame) => decoder.push(frame)));
    },
    end(): readonly ModelEvent[] {
      const whole = unread === undefined ? "" : Buffer.concat(unread).toString("utf8");
      if (whole.trim() !== "" && !isEventStream(whole)) return decodeWhole(whole, url, codec, options);
      return coalesce([...sse.end().flatMap((frame) => decoder.push(frame)), ...decoder.end()]);
    },
    /** What is still open is closed by the decoder as incomplete; the reason it ended is ours to add. */
    fail(error: unknown): readonly ModelEvent[] {
      const failure = readTransportFailure(error);
      return decoder
        .end()
        .map((event) =>
          event.type === "answer.ended" ? { ...event, answer: { ...event.answer, error: failure } } : event,
        );
    },
  };
}

/** Comments alone are a stream as well: servers keep a line open with them. */
function isEventStream(text: string): boolean {
  return /^(?:data|event|id|retry)?:/m.test(text);
}

/** A server may answer in one piece although it was asked for a stream, or with something else altogether. */
function decodeWhole(text: string, url: URL, codec: Codec, options: DecodeOptions): readonly ModelEvent[] {
  if (parseJson(text).ok) return answerToEvents(decodeRecording(codec, [text], options));
  const begins = text.trim().slice(0, 60);
  if (!/^[{[]/.test(begins)) return [failed(notAnApi(url, 200, begins))];
  return [
    failed({ message: `The answer is not the JSON it seems to be: it begins with '${begins}'.`, type: "overloaded" }),
  ];
}

function notAnApi(url: URL, status: number, begins: string): ModelError {
  const what = begins.startsWith("<") ? "a web page" : `'${begins}'`;
  return {
    message: `${url.host} answered with ${what} (HTTP ${status}), not as a model: is the base URL right?`,
    type: "bad_request",
    status,
  };
}

function failed(error: ModelError): ModelEvent {
  return { type: "answer.ended", answer: { outcome: "error", finish: "error", error } };
}

/** Something the operator should know and no wire has a word for. */
function note(what: string, fields: Record<string, string | number>): ModelEvent {
  return { type: "other", wire: "callgate", raw: { type: what, ...fields } };
}

function failureContext(options: HttpModelOptions, url: URL, encoded: EncodedRequest): FailureContext {
  return {
    model: options.model,
    host: url.host,
    keyName: options.keyName ?? "the API key",
    toolNames: [...encoded.names.keys()],
  };
}

async function readText(answer: HttpAnswer): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of answer.body) chunks.push(chunk);
  return Buffer.concat(chunks).toString("utf8");
}

function wait(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(done, ms);
    function done() {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      resolve();
    }
    signal.addEventListener("abort", done, { once: true });
  });
}
