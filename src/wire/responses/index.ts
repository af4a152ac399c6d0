/**
 * OpenAI's Responses API, and what other servers make of it. The only wire that knows every kind of
 * tool; it must not know how anything is sent or run.
 */
import type { Codec } from "../codec.ts";
import { createDecoder, decodeAnswer } from "./decoder.ts";
import { createEncoder, encodeAnswer } from "./encoder.ts";
import { decodeRequest, encodeRequest } from "./request.ts";

export const responses: Codec = {
  name: "responses",
  path: () => "/responses",
  encodeRequest,
  createDecoder,
  decodeAnswer,
  decodeRequest,
  createEncoder,
  encodeAnswer,
};
