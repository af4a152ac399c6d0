/** A client's request that a wire cannot mean: the status and the body to answer with, in that wire's own form. */
import type { JsonObject } from "../base/json.ts";

/** Thrown by `decodeRequest`. */
export class RequestError extends Error {
  override readonly name = "RequestError";
  readonly status: number;
  readonly body: JsonObject;

  constructor(status: number, message: string, body: JsonObject) {
    super(message);
    this.status = status;
    this.body = body;
  }

  static is(value: unknown): value is RequestError {
    return value instanceof Error && value.name === "RequestError";
  }
}
