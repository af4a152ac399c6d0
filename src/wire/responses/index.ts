/**
 * OpenAI's Responses API, and what other servers make of it. The only wire that knows every kind of
 * tool; it must not know how anything is sent or run.
 */
import type { JsonObject } from "../../base/json.ts";
import type { ModelError } from "../../spec/model.ts";
import type { Codec } from "../codec.ts";
import { chatError, responsesError, toFailure } from "../failure.ts";
import { limitAnswer, limitDecoder } from "../limits.ts";
import { createDecoder, decodeAnswer } from "./read.ts";
import { createEncoder, encodeAnswer } from "./write.ts";
import { decodeRequest, encodeRequest } from "./request.ts";

export const responses: Codec = {
  name: "responses",
  path: () => "/responses",
  encodeRequest,
  createDecoder: (options) => limitDecoder(createDecoder(options), options?.limits),
  decodeAnswer: (body, options) => limitAnswer(decodeAnswer(body, options), options?.limits),
  decodeRequest,
  createEncoder,
  encodeAnswer,
  encodeError: (error) => toFailure(error, "responses", { error: httpError(error) }),
};

/** Over HTTP this API's errors are those of Chat; only inside a stream they have codes of their own. */
function httpError(error: ModelError): JsonObject {
  return { ...chatError(error), message: responsesError(error)["message"] ?? error.message };
}
