/**
 * OpenAI's Responses API, and the versions of it that other servers have. It is the only wire that
 * knows every kind of tool. It must not know how anything is sent or run.
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

/** Over HTTP this API's errors are those of Chat. Only inside a stream do they have their own codes. */
function httpError(error: ModelError): JsonObject {
  return { ...chatError(error), message: responsesError(error)["message"] ?? error.message };
}
