/** Reads and checks what a client sent, and reports what is wrong in the form of its own wire. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { isObject, type JsonObject, parseJson } from "../base/json.ts";
import { readBody, TooLarge, Unreadable } from "../http/read-body.ts";
import type { WireName } from "../wire/codec.ts";
import { codecs, RequestError } from "../wire/index.ts";
import { writeJson } from "./reply.ts";

export async function readJson(
  request: IncomingMessage,
  wire: WireName,
  maxBytes: number,
): Promise<{ readonly bytes: Uint8Array; readonly body: JsonObject }> {
  const bytes = await readBody(request, maxBytes);
  const parsed = parseJson(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8"));
  if (parsed.ok && isObject(parsed.value)) return { bytes, body: parsed.value };
  throw badRequest(wire, "The body is not a JSON object.");
}

function badRequest(wire: WireName, message: string): RequestError {
  return new RequestError(400, message, bodyFor(wire, { status: 400, message }));
}

/** Refuses what each API's own server refuses: a request without a question. */
export function checkQuestion(wire: WireName, body: JsonObject): void {
  if (wire === "responses") {
    const { input } = body;
    const isGiven = typeof input === "string" || Array.isArray(input);
    const refersTo = body["previous_response_id"] ?? body["conversation"] ?? body["prompt"];
    if (!isGiven && (input !== undefined || refersTo === undefined))
      throw badRequest(wire, "Missing required parameter: 'input' must be a text or a list of items.");
    return;
  }
  const field = wire === "gemini" ? "contents" : "messages";
  const list = body[field];
  const isText = wire === "gemini" && typeof list === "string";
  if (!isText && (!Array.isArray(list) || list.length === 0))
    throw badRequest(wire, `${field}: a list with at least one entry is required.`);
}

export function failWith(response: ServerResponse, wire: WireName, error: unknown): void {
  if (RequestError.is(error)) return writeJson(response, error.status, error.body);
  const status = error instanceof TooLarge ? 413 : error instanceof Unreadable ? error.status : 500;
  const message =
    error instanceof Error && isTheirs(error) ? error.message : "The gateway could not answer this request.";
  if (response.headersSent) response.destroy();
  else writeJson(response, status, bodyFor(wire, { status, message }));
}

const kindsByStatus: ReadonlyMap<number, string> = new Map([
  [401, "auth"],
  [403, "permission"],
  [404, "no_endpoint"],
  [413, "body_too_large"],
]);

export function bodyFor(wire: WireName, { status, message }: Refused): JsonObject {
  const type = kindsByStatus.get(status) ?? (status >= 500 ? "network" : "bad_request");
  return codecs[wire].encodeError({ type, message, status }).body;
}

/** A mistake of the client. The client is told, and the operator need not know. */
export function isTheirs(error: unknown): boolean {
  return RequestError.is(error) || error instanceof TooLarge || error instanceof Unreadable;
}

export interface Refused {
  readonly status: number;
  readonly message: string;
}
