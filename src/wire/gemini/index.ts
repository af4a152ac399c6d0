/** The Gemini generateContent wire, both ways. */
import { collect } from "../answer.ts";
import type { Codec } from "../codec.ts";
import { object } from "../raw.ts";
import { decodeRequest } from "./decode-request.ts";
import { createGeminiDecoder } from "./decoder.ts";
import { encodeRequest } from "./encode-request.ts";
import { createGeminiEncoder, encodeAnswer } from "./encoder.ts";

export const gemini: Codec = {
  name: "gemini",
  path: (model, stream) =>
    `/${model.includes("/") ? model : `models/${model}`}:${stream ? "streamGenerateContent?alt=sse" : "generateContent"}`,
  encodeRequest,
  createDecoder: createGeminiDecoder,
  decodeAnswer(body, options) {
    const decoder = createGeminiDecoder(options);
    return collect([...decoder.pushChunk(object(body)), ...decoder.end()]);
  },
  decodeRequest,
  createEncoder: createGeminiEncoder,
  encodeAnswer,
};
