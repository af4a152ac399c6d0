/** The Gemini generateContent wire, both ways. */
import type { Codec } from "../codec.ts";
import { decodeRequest } from "./decode-request.ts";
import { createDecoder, decodeAnswer } from "./decoder.ts";
import { encodeRequest } from "./encode-request.ts";
import { createEncoder, encodeAnswer } from "./encoder.ts";

export const gemini: Codec = {
  name: "gemini",
  path: (model, stream) =>
    `/${model.includes("/") ? model : `models/${model}`}:${stream ? "streamGenerateContent?alt=sse" : "generateContent"}`,
  encodeRequest,
  createDecoder,
  decodeAnswer,
  decodeRequest,
  createEncoder,
  encodeAnswer,
};
