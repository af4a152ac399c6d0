/** The Chat Completions wire, both ways. */
import type { Codec } from "../codec.ts";
import { collect } from "../answer.ts";
import { object } from "../raw.ts";
import { encodeAnswer } from "./answer.ts";
import { decodeRequest } from "./decode-request.ts";
import { createChatDecoder } from "./decoder.ts";
import { encodeRequest } from "./encode-request.ts";
import { createChatEncoder } from "./encoder.ts";

export const chat: Codec = {
  name: "chat",
  path: () => "/chat/completions",
  encodeRequest,
  createDecoder: createChatDecoder,
  decodeAnswer(body, options) {
    const decoder = createChatDecoder(options);
    return collect([...decoder.pushChunk(object(body)), ...decoder.end()]);
  },
  decodeRequest,
  createEncoder: createChatEncoder,
  encodeAnswer,
};
