/** Anthropic's Messages API, both ways. It must not know how anything is sent or run. */
import type { Codec } from "../codec.ts";
import { decodeRequest } from "./decode-request.ts";
import { createDecoder, decodeAnswer } from "./decoder.ts";
import { encodeRequest } from "./encode-request.ts";
import { createEncoder, encodeAnswer } from "./encoder.ts";

export const messages: Codec = {
  name: "messages",
  path: () => "/messages",
  encodeRequest,
  createDecoder,
  decodeAnswer,
  decodeRequest,
  createEncoder,
  encodeAnswer,
};
