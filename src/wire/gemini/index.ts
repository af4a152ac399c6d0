/** The Gemini generateContent wire, both ways. */
import type { Codec } from "../codec.ts";
import { geminiError, toFailure } from "../failure.ts";
import { limitAnswer, limitDecoder } from "../limits.ts";
import { decodeRequest } from "./decode-request.ts";
import { encodeRequest } from "./encode-request.ts";
import { createDecoder, decodeAnswer } from "./read.ts";
import { createEncoder, encodeAnswer } from "./write.ts";

export const gemini: Codec = {
  name: "gemini",
  path: (model, stream) =>
    `/${model.includes("/") ? model : `models/${model}`}:${stream ? "streamGenerateContent?alt=sse" : "generateContent"}`,
  encodeRequest,
  createDecoder: (options) => limitDecoder(createDecoder(options), options?.limits),
  decodeAnswer: (body, options) => limitAnswer(decodeAnswer(body, options), options?.limits),
  decodeRequest,
  createEncoder,
  encodeAnswer,
  encodeError: (error) => toFailure(error, "gemini", { error: geminiError(error) }),
};
