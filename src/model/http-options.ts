import { optionsShape } from "../base/shape.ts";
import type { AnswerLimits, Codec, EncodeOptions } from "../wire/codec.ts";
import type { TimeLimits, Transport } from "./transport.ts";

/** Options of `createHttpModel`. */
export interface HttpModelOptions {
  /** The wire it speaks (`codecs` of `callgate/wire`). */
  readonly codec: Codec;
  /** The address, without the wire's own path. */
  readonly baseUrl: string;
  /** The model's name, as the server knows it. */
  readonly model: string;
  /** Sent with every request, a key included. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Named in the message when the key is refused. */
  readonly keyName?: string;
  /** How requests are written: schema rules and quirks of the server. */
  readonly encode?: EncodeOptions;
  /** Read `<think>…</think>` at the front of the text as reasoning. */
  readonly thinkTags?: boolean;
  /** How long connecting, the first byte, silence and the whole answer may take. */
  readonly limits?: Partial<TimeLimits>;
  /** What the server may send in one answer. */
  readonly answerLimits?: Partial<AnswerLimits>;
  /** How often a request that failed before anything was shown is sent again. */
  readonly retries?: number;
  /** Sends the requests. Left out: kept-alive connections of this model's own. */
  readonly transport?: Transport;
  /** Waits between attempts, for tests. */
  readonly sleep?: (ms: number, signal: AbortSignal) => Promise<void>;
}

/** Checked when a model is made, so that a misspelled option is an error. */
export const httpModelShape = optionsShape<HttpModelOptions>(
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
