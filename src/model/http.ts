/**
 * Models over HTTP: an address, a codec, and retries. A question is one machine: it is sent, its answer is
 * read as it comes, and it is sent again if it failed before anything of the answer was shown. `model/`
 * knows wires and providers; it knows nothing about tools, gates or sessions.
 */
import { setTimeout as wait } from "node:timers/promises";
import { checkOptions } from "../base/shape.ts";
import { defined, isObject, parseJson, type JsonObject } from "../base/json.ts";
import { createRedactor, secretsInHeaders, type Redact } from "../base/redact.ts";
import { describeMs } from "../base/text.ts";
import type { AskOptions, Item, Model, ModelError, ModelEvent, ModelRequest } from "../spec/model.ts";
import { answerToEvents } from "../wire/answer.ts";
import type { Codec, DecodeOptions, EncodedRequest } from "../wire/codec.ts";
import { createStreamReader, decodeRecording } from "../wire/stream.ts";
import { createBodyWriter } from "./body.ts";
import {
  classify,
  failed,
  isRetryable,
  notAnApi,
  otherWire,
  readHttpFailure,
  readTransportFailure,
  withAdvice,
  withoutKey,
} from "./failure.ts";
import { httpModelShape, type HttpModelOptions } from "./http-options.ts";
import { createTransport, readText, type HttpAnswer } from "./transport.ts";

/** A model over HTTP; `close` ends its connections. */
export interface HttpModel extends Model {
  close(): void;
}

/** If a server asks for a longer wait than this, the user is told instead of waiting. */
const maxWaitMs = 60_000;

/** How much of a refusal is read. */
const longestRefusal = 64 << 10;

/** The size limit of a compacted history, which may still be long. */
const longestCompaction = 16 << 20;

/** A model at an address, in the wire of the codec given. `createProviderModel` knows the providers' addresses. */
export function createHttpModel(options: HttpModelOptions): HttpModel {
  checkOptions("createHttpModel", options, httpModelShape);
  const transport = options.transport ?? createTransport(options.limits, options.answerLimits?.bodyBytes);
  const retries = options.retries ?? 3;
  const sleep = options.sleep ?? ((ms, signal) => wait(ms, undefined, { signal }).catch(() => undefined));
  const headers = { "content-type": "application/json", accept: "text/event-stream", ...options.headers };
  const writeBody = createBodyWriter();
  const base = toBase(options);
  const urlOf = (model: string) => new URL(`${base}${options.codec.path(model, true)}`);
  const ownUrl = urlOf(options.model);
  const compactUrl = new URL(`${ownUrl.href}/compact`);

  /** One request, up to its first byte. */
  const send = async (
    encoded: EncodedRequest,
    { model = options.model, headers: more }: AskOptions,
    signal: AbortSignal,
  ): Promise<HttpAnswer | ModelError> => {
    const url = model === options.model ? ownUrl : urlOf(model);
    try {
      const all = more === undefined ? headers : { ...headers, ...more };
      const answer = await transport.post(url, writeBody(encoded.body), all, signal);
      if ((answer.headers["content-type"] ?? "").includes("html")) return notAnApi(url, answer.status, "<");
      if (answer.status >= 200 && answer.status < 300) return answer;
      return readHttpFailure(answer.status, answer.headers, await readText(answer, longestRefusal), {
        model,
        host: url.host,
        keyName: options.keyName ?? "the API key",
        toolNames: [...encoded.names.keys()],
      });
    } catch (error) {
      return readTransportFailure(error);
    }
  };

  async function* ask(request: ModelRequest, signal: AbortSignal, asked: AskOptions = {}): AsyncGenerator<ModelEvent> {
    const model = asked.model ?? options.model;
    const encoded = options.codec.encodeRequest({ ...request, model, stream: true }, options.encode);
    for (const dropped of encoded.dropped) yield { type: "note", note: { type: "tool.dropped", ...dropped } };
    // `idSeed` distinguishes the answers of a conversation, for servers that give neither answers nor calls an id.
    const how = {
      names: encoded.names,
      idSeed: String(request.input.length),
      thinkTags: options.thinkTags === true,
      ...defined({ limits: options.answerLimits }),
    };
    const redact = createRedactor(secretsInHeaders(Object.entries({ ...options.headers, ...asked.headers })));
    for (let attempt = 0; ; attempt++) {
      const answer = await send(encoded, asked, signal);
      const isRefused = !("body" in answer);
      const headers = isRefused ? {} : answer.headers;
      const reader = createReader(options.codec, how, { url: ownUrl, headers, redact });
      try {
        for await (const chunk of isRefused ? [] : answer.body) {
          for (const event of reader.push(chunk)) yield event;
          // Some servers keep the connection open after the answer is complete.
          if (reader.isOver()) break;
        }
        if (!isRefused) for (const event of reader.end()) yield event;
      } catch (error) {
        for (const event of reader.fail(error)) yield event;
      }
      const failure = isRefused ? withoutKey(answer, redact) : reader.failure();
      if (failure === undefined) return;
      const waitMs = failure.retryAfterMs ?? 250 * 2 ** attempt;
      if (attempt >= retries || !isRetryable(failure)) return yield failed(withAdvice(failure));
      if (waitMs > maxWaitMs) {
        const message = `${failure.message} It says to come back in ${describeMs(waitMs)}.`;
        return yield failed({ ...failure, message });
      }
      yield { type: "note", note: { type: "request.retried", attempt: attempt + 1, waitMs, reason: failure.message } };
      await sleep(waitMs, signal);
    }
  }

  /** Only the Responses API has this. A server without it refuses the request. */
  const compact = async (request: ModelRequest, signal: AbortSignal): Promise<readonly Item[] | undefined> => {
    const encoded = options.codec.encodeRequest({ ...request, model: options.model }, options.encode);
    const { model, input, instructions } = encoded.body;
    const body = defined({ model, input, instructions });
    try {
      const answer = await transport.post(compactUrl, [Buffer.from(JSON.stringify(body))], headers, signal);
      const text = await readText(answer, longestCompaction);
      const parsed = parseJson(text);
      if (answer.status !== 200 || !parsed.ok || !isObject(parsed.value)) return undefined;
      return options.codec.decodeAnswer({ status: "completed", ...parsed.value }, { names: encoded.names }).items;
    } catch {
      return undefined; // not available, or not now: the model itself can do it
    }
  };

  return {
    name: options.model,
    ask,
    close: () => transport.close(),
    ...(options.codec.name === "responses" ? { compact } : {}),
  };
}

/** Clients of the Messages API name only the host, and take `/v1` for granted. */
function toBase({ baseUrl, codec }: HttpModelOptions): string {
  const base = baseUrl.replace(/\/$/, "");
  return codec.name === "messages" && /^https?:\/\/[^/?#]+$/.test(base) ? `${base}/v1` : base;
}

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

interface ReadFrom {
  readonly url: URL;
  readonly headers: HttpAnswer["headers"];
  /** A server may repeat the key in its words. */
  readonly redact: Redact;
}

export function createReader(codec: Codec, options: DecodeOptions, { url, headers, redact }: ReadFrom): Reader {
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
  function judge(event: Extract<ModelEvent, { type: "answer.ended" }>): ModelEvent | undefined {
    if (event.answer.error === undefined) return event;
    const error = withoutKey(classify(event.answer.error), redact);
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
      const isCut = rest.some((event) => event.type === "answer.ended" && event.answer.outcome === "truncated");
      const isStrange = !isShown && strangeCount > 0 && strangeCount >= stream.frames() / 2;
      return isStrange && isCut ? [failed(otherWire(url, codec.name))] : rest;
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
function tellingHeaders(headers: HttpAnswer["headers"]): JsonObject | undefined {
  const found = Object.entries(headers).filter(
    (entry): entry is [string, string] =>
      entry[1] !== undefined && /request-id|ratelimit|^retry-after|^openai-/.test(entry[0]),
  );
  return found.length === 0 ? undefined : Object.fromEntries(found);
}

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
