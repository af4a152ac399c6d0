/** The Chat Completions wire, both ways. */
import type { Codec } from "../codec.ts";
import { chatError, toFailure } from "../failure.ts";
import { limitAnswer, limitDecoder } from "../limits.ts";
import { decodeRequest } from "./decode-request.ts";
import { createDecoder, decodeAnswer } from "./read.ts";
import { encodeRequest } from "./encode-request.ts";
import { createEncoder, encodeAnswer } from "./write.ts";

export const chat: Codec = {
  name: "chat",
  path: () => "/chat/completions",
  encodeRequest,
  createDecoder: (options) => limitDecoder(createDecoder(options), options?.limits),
  decodeAnswer: (body, options) => limitAnswer(decodeAnswer(body, options), options?.limits),
  decodeRequest,
  createEncoder,
  encodeAnswer,
  encodeError: (error) => toFailure(error, "chat", { error: chatError(error) }),
};
