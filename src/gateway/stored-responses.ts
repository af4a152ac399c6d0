/**
 * Requests of the Responses API that refer to earlier ones. What they refer to is inserted as it was
 * said, before the request is read. An unknown reference is refused, because half a conversation would
 * be answered wrongly.
 */
import { randomBytes } from "node:crypto";
import { isObject, type Json, type JsonObject } from "../base/json.ts";
import type { Frame } from "../wire/codec.ts";
import { RequestError } from "../wire/index.ts";
import { fieldOf, listOf, type StateStore } from "./state.ts";

/** The body, with everything it refers to inserted. */
export function resolveReferences(body: JsonObject, state: StateStore): JsonObject {
  if (body["background"] === true)
    throw refusal(
      400,
      "background_not_supported",
      "Background responses are not supported here: ask without 'background'.",
    );
  const before = earlierItems(body, state);
  const given = inputItems(body);
  const { previous_response_id: previous, conversation, ...rest } = body;
  // A conversation of ours that is still empty is not known to the model's server either.
  if ((previous ?? conversation ?? undefined) === undefined && !given.some(isReference)) return body;
  return { ...rest, input: [...before, ...given.map((item) => resolveItem(item, state))] };
}

function earlierItems(body: JsonObject, state: StateStore): readonly Json[] {
  const previous = body["previous_response_id"];
  if (typeof previous === "string") {
    const stored = state.get(`response ${previous}`);
    if (stored === undefined)
      throw refusal(404, "previous_response_not_found", `Previous response with id '${previous}' not found.`);
    return [...listOf(fieldOf(stored, "input")), ...listOf(fieldOf(fieldOf(stored, "response"), "output"))];
  }
  const id = conversationOf(body);
  if (id === undefined) return [];
  const stored = state.get(`conversation ${id}`);
  if (stored === undefined) throw refusal(404, "conversation_not_found", `Conversation with id '${id}' not found.`);
  return listOf(stored);
}

function conversationOf(body: JsonObject): string | undefined {
  const given = body["conversation"];
  if (typeof given === "string") return given;
  const id = isObject(given) ? given["id"] : undefined;
  return typeof id === "string" ? id : undefined;
}

function inputItems(body: JsonObject): readonly Json[] {
  const input = body["input"];
  if (typeof input === "string") return [{ type: "message", role: "user", content: input }];
  return Array.isArray(input) ? input : [];
}

function isReference(item: Json): item is JsonObject {
  return isObject(item) && item["type"] === "item_reference";
}

function resolveItem(item: Json, state: StateStore): Json {
  if (!isReference(item)) return item;
  const found = state.get(`item ${String(item["id"])}`);
  if (found === undefined) throw refusal(404, "item_not_found", `Item with id '${String(item["id"])}' not found.`);
  return found;
}

/**
 * Stores an answer for later references, unless the client asked not to. `body` is the request after
 * references were inserted.
 */
export function keepResponse(asked: JsonObject, body: JsonObject, response: JsonObject, state: StateStore): void {
  if (asked["store"] === false || typeof response["id"] !== "string") return;
  const input = inputItems(body);
  state.put(`response ${response["id"]}`, { input: [...input], response });
  for (const item of listOf(response["output"])) {
    const id = fieldOf(item, "id");
    if (typeof id === "string") state.put(`item ${id}`, item);
  }
  const conversation = conversationOf(asked);
  if (conversation !== undefined) state.put(`conversation ${conversation}`, [...input, ...listOf(response["output"])]);
}

/** The whole response object that the last event of a stream carries. */
export function responseOf(frames: readonly Frame[]): JsonObject | undefined {
  for (const { data } of frames) {
    if (!data.includes('"response.completed"') && !data.includes('"response.incomplete"')) continue;
    const event: unknown = JSON.parse(data);
    const response = isObject(event) ? event["response"] : undefined;
    // Parsed JSON, so its fields are JSON.
    if (isObject(response)) return response as JsonObject;
  }
  return undefined;
}

export function createConversation(body: JsonObject, state: StateStore, now: number): JsonObject {
  const id = `conv_${randomBytes(16).toString("hex")}`;
  const items = body["items"];
  state.put(`conversation ${id}`, Array.isArray(items) ? items : []);
  return { id, object: "conversation", created_at: Math.floor(now / 1000), metadata: {} };
}

export function refusal(status: number, code: string, message: string): RequestError {
  return new RequestError(status, message, { error: { message, type: "invalid_request_error", param: null, code } });
}
