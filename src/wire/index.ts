/**
 * Entry of `callgate/wire`: every provider API translated to and from the neutral model, both ways.
 * The folder knows how each API spells things, but not who sends them: no I/O, no clock, no tools, no
 * Node.
 */
import { chat } from "./chat/index.ts";
import type { Codec, WireName } from "./codec.ts";
import { gemini } from "./gemini/index.ts";
import { messages } from "./messages/index.ts";
import { responses } from "./responses/index.ts";

/** The codec of every wire, by name. */
export const codecs: Readonly<Record<WireName, Codec>> = { chat, responses, messages, gemini };

export { answerToEvents, collect } from "./answer.ts";
export type {
  AnswerDecoder,
  AnswerEncodeOptions,
  AnswerEncoder,
  AnswerLimits,
  Codec,
  DecodeOptions,
  DecodeRequestOptions,
  EncodedRequest,
  EncodeOptions,
  Frame,
  NamedTool,
  NameTable,
  Quirks,
  RepeatedFrame,
  WireName,
} from "./codec.ts";
export { RequestError, type WireFailure } from "./failure.ts";
export type { Sign } from "./envelope.ts";
export { encodeSse } from "./sse.ts";
export { decodeRecording, decodeStream } from "./stream.ts";
/** Types that the signatures above mention. */
export type { Chunk } from "./stream.ts";
