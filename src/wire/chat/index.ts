/** The Chat Completions wire, both ways. */
import type { Codec } from "../codec.ts";
import { encodeAnswer } from "./answer.ts";
import { decodeRequest } from "./decode-request.ts";
import { createDecoder, decodeAnswer } from "./decoder.ts";
import { encodeRequest } from "./encode-request.ts";
import { createEncoder } from "./encoder.ts";

export const chat: Codec = {
  name: "chat",
  path: () => "/chat/completions",
  encodeRequest,
  createDecoder,
  decodeAnswer,
  decodeRequest,
  createEncoder,
  encodeAnswer,
};
