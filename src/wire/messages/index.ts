/** Anthropic's Messages API, both ways. It must not know how anything is sent or run. */
import type { Codec } from "../codec.ts";
import { messagesError, toFailure } from "../failure.ts";
import { limitAnswer, limitDecoder } from "../limits.ts";
import { createDecoder, decodeAnswer } from "./read.ts";
import { decodeRequest, encodeRequest } from "./request.ts";
import { createEncoder, encodeAnswer } from "./write.ts";

export const messages: Codec = {
  name: "messages",
  path: () => "/messages",
  encodeRequest,
  createDecoder: (options) => limitDecoder(createDecoder(options), options?.limits),
  decodeAnswer: (body, options) => limitAnswer(decodeAnswer(body, options), options?.limits),
  decodeRequest,
  createEncoder,
  encodeAnswer,
  encodeError: (error) => toFailure(error, "messages", messagesError(error)),
};
