/**
 * Models over HTTP: an address, a codec, and retries. `model/` knows wires and providers; it knows
 * nothing about tools, gates or sessions.
 */
import { checkOptions, optionsShape } from "../base/shape.ts";
import { defined, isObject, parseJson } from "../base/json.ts";
import { createRedactor, secretsInHeaders, type Redact } from "../base/redact.ts";
import { describeMs } from "../base/text.ts";
import type { AskOptions, Item, Model, ModelError, ModelEvent, ModelRequest } from "../spec/model.ts";
import type { AnswerLimits, Codec, EncodedRequest, EncodeOptions } from "../wire/codec.ts";
import { createBodyWriter } from "./body.ts";
import { isRetryable, readHttpFailure, readTransportFailure, type FailureContext } from "./failure.ts";
import { createReader, notAnApi } from "./reader.ts";
import { createTransport, type HttpAnswer, type TimeLimits, type Transport } from "./transport.ts";

/** Options of `createHttpModel`. */
export interface HttpModelOptions {
  readonly codec: Codec;
  readonly baseUrl: string;
  readonly model: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Named in the message when the key is refused. */
  readonly keyName?: string;
  readonly encode?: EncodeOptions;
  /** Read `<think>…</think>` at the front of the text as reasoning. */
  readonly thinkTags?: boolean;
  readonly limits?: Partial<TimeLimits>;
  /** What the server may send in one answer. */
  readonly answerLimits?: Partial<AnswerLimits>;
  /** How often a request that failed before anything was shown is sent again. */
  readonly retries?: number;
  readonly transport?: Transport;
  readonly sleep?: (ms: number, signal: AbortSignal) => Promise<void>;
}

/** A model over HTTP; `close` ends its connections. */
export interface HttpModel extends Model {
  close(): void;
}

/** If a server asks for a longer wait than this, the user is told instead of waiting. */
const maxWaitMs = 60_000;

const httpModelShape = optionsShape<HttpModelOptions>(
  {
    codec: { methods: ["encodeRequest", "createDecoder"], words: "a codec of callgate/wire" },
    baseUrl: "string",
    model: "string",
    headers: { each: "string" },
    keyName: "string",
    encode: "table",
    thinkTags: "boolean",
    limits: {
      fields: { connectMs: { above: 0 }, firstByteMs: { above: 0 }, silenceMs: { above: 0 }, totalMs: { above: 0 } },
      noun: "limit",
    },
    answerLimits: "table",
    retries: { above: -1 },
    transport: "any",
    sleep: "function",
  },
  "codec",
  "baseUrl",
  "model",
);

/** A model at an address, in the wire of the codec given. `createProviderModel` knows the providers' addresses. */
export function createHttpModel(options: HttpModelOptions): HttpModel {
  checkOptions("createHttpModel", options, httpModelShape);
  const transport = options.transport ?? createTransport(options.limits, options.answerLimits?.bodyBytes);
  const retries = options.retries ?? 3;
  const sleep = options.sleep ?? wait;
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
      return readHttpFailure(
        answer.status,
        answer.headers,
        await readText(answer),
        failureContext({ ...options, model }, url, encoded),
      );
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
      const reader = createReader(options.codec, how, ownUrl, isRefused ? {} : answer.headers);
      try {
        for await (const chunk of isRefused ? [] : answer.body) {
          for (const event of reader.push(chunk)) yield withoutKey(event, redact);
          // Some servers keep the connection open after the answer is complete.
          if (reader.isOver()) break;
        }
        if (!isRefused) for (const event of reader.end()) yield withoutKey(event, redact);
      } catch (error) {
        for (const event of reader.fail(error)) yield withoutKey(event, redact);
      }
      const told = isRefused ? answer : reader.failure();
      if (told === undefined) return;
      // A server may repeat the key in its message.
      const failure = cleaned(told, redact);
      const waitMs = failure.retryAfterMs ?? 250 * 2 ** attempt;
      if (attempt >= retries || !isRetryable(failure)) return yield failed(failure);
      if (waitMs > maxWaitMs)
        return yield failed({
          ...failure,
          message: `${failure.message} It says to come back in ${describeMs(waitMs)}.`,
        });
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

/** The values of headers that carry a key. */
/** An answer may end with the server's own words, which may repeat the key. */
function withoutKey(event: ModelEvent, redact: Redact): ModelEvent {
  if (event.type !== "answer.ended" || event.answer.error === undefined) return event;
  return { ...event, answer: { ...event.answer, error: cleaned(event.answer.error, redact) } };
}

/** Whatever the server gave as its reason may contain the key. */
function cleaned({ message, code, type, raw, ...rest }: ModelError, redact: Redact): ModelError {
  const words = Object.entries(defined({ code, type, raw })).map(([name, text]) => [name, redact(text)]);
  return { ...rest, message: redact(message), ...Object.fromEntries(words) };
}

function failed(error: ModelError): ModelEvent {
  return { type: "answer.ended", answer: { outcome: "error", finish: "error", error } };
}

function failureContext(options: HttpModelOptions, url: URL, encoded: EncodedRequest): FailureContext {
  return {
    model: options.model,
    host: url.host,
    keyName: options.keyName ?? "the API key",
    toolNames: [...encoded.names.keys()],
  };
}

/** How much of a refusal is read. */
const longestRefusal = 64 << 10;

/** The size limit of a compacted history, which may still be long. */
const longestCompaction = 16 << 20;

async function readText(answer: HttpAnswer, longest = longestRefusal): Promise<string> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of answer.body) {
    chunks.push(chunk);
    if ((length += chunk.length) > longest) break;
  }
  return Buffer.concat(chunks).toString("utf8").slice(0, longest);
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

/** Clients of the Messages API name only the host, and take `/v1` for granted. */
function toBase({ baseUrl, codec }: HttpModelOptions): string {
  const base = baseUrl.replace(/\/$/, "");
  return codec.name === "messages" && /^https?:\/\/[^/?#]+$/.test(base) ? `${base}/v1` : base;
}
