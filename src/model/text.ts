import { toTextRequest, wrapTextCalls } from "../dialect/index.ts";
import type { Model } from "../spec/model.ts";

/** A model that only writes text, given tools through a dialect: taught in the prompt, read back from the answer. */
export function createTextModel(inner: Model, dialect: string): Model {
  return {
    name: inner.name,
    ask: (request, signal) =>
      wrapTextCalls(inner.ask(toTextRequest(request, dialect), signal), {
        dialect,
        tools: request.tools,
        history: request.input,
      }),
  };
}
