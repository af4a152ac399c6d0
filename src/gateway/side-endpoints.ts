/** What clients ask besides answers: which models there are, how many tokens a request takes, and a shorter history. */
import type { ServerResponse } from "node:http";
import type { Json, JsonObject } from "../base/json.ts";
import type { Answer, ModelRequest, Usage } from "../spec/model.ts";
import { estimateItem } from "../session/tokens.ts";
import type { WireName } from "../wire/codec.ts";
import { codecs, RequestError } from "../wire/index.ts";
import { estimateTokens } from "../base/tokens.ts";
import type { Endpoint } from "./endpoints.ts";
import type { ClientRequest } from "./turn.ts";
import { writeJson } from "./reply.ts";

export function answerModels(
  { wire, id }: Extract<Endpoint, { kind: "models" }>,
  names: readonly string[],
  response: ServerResponse,
): void {
  const wanted = id === undefined ? names : names.filter((name) => name === id);
  if (id !== undefined && wanted.length === 0) {
    const message = `There is no model '${id}'.`;
    throw new RequestError(404, message, codecs[wire].encodeError({ type: "unknown_model", message }).body);
  }
  const entries = wanted.map((name) => describeModel(wire, name));
  writeJson(response, 200, id === undefined ? listOfModels(wire, entries) : (entries[0] ?? {}));
}

function describeModel(wire: WireName, name: string): JsonObject {
  if (wire === "gemini")
    return {
      name: `models/${name}`,
      displayName: name,
      supportedGenerationMethods: ["generateContent", "streamGenerateContent", "countTokens"],
    };
  if (wire === "messages") return { type: "model", id: name, display_name: name, created_at: "1970-01-01T00:00:00Z" };
  return { id: name, object: "model", created: 0, owned_by: "callgate" };
}

function listOfModels(wire: WireName, entries: readonly JsonObject[]): JsonObject {
  if (wire === "gemini") return { models: [...entries] };
  if (wire !== "messages") return { object: "list", data: [...entries] };
  const ids = entries.map(({ id }) => id ?? null);
  return { data: [...entries], has_more: false, first_id: ids[0] ?? null, last_id: ids.at(-1) ?? null };
}

/** An estimate, because no provider is asked. A header says so. */
export function countTokens(wire: WireName, body: JsonObject, response: ServerResponse): void {
  const counted = wire === "gemini" ? (body["generateContentRequest"] ?? body) : body;
  const request = codecs[wire].decodeRequest(
    wire === "messages" ? { max_tokens: 1, ...(counted as JsonObject) } : counted,
  );
  const tokens = estimateRequest(request);
  const estimated = { "x-callgate-estimate": "true" };
  if (wire === "gemini") writeJson(response, 200, { totalTokens: tokens }, estimated);
  else if (wire === "messages") writeJson(response, 200, { input_tokens: tokens }, estimated);
  else writeJson(response, 200, { object: "response.input_tokens", input_tokens: tokens }, estimated);
}

function estimateRequest(request: ModelRequest): number {
  const told = [request.instructions ?? "", request.tools.length === 0 ? "" : JSON.stringify(request.tools)];
  const words = told.reduce((sum, part) => sum + estimateTokens(part), 0);
  return words + request.input.reduce((sum, item) => sum + estimateItem(item), 0);
}

/** The tokens of a request and its answer, if the model's server did not count them. */
export function estimateUsage(request: ModelRequest, answer: Pick<Answer, "items">): Usage {
  const output = answer.items.reduce((sum, item) => sum + estimateItem(item), 0);
  return { input: estimateRequest(request), output };
}

const summarise =
  "Summarise this conversation for somebody who will carry it on without having seen it: what was asked, what was done and found out, which files and commands matter, what is left to do. Answer with the summary only.";

/**
 * `/responses/compact`: the request to answer instead. The model writes the short form, and the client
 * continues with it.
 */
export function toCompaction(asked: ClientRequest): ClientRequest {
  const input: Json = Array.isArray(asked.body["input"]) ? asked.body["input"] : [];
  const question: Json = { type: "message", role: "user", content: [{ type: "input_text", text: summarise }] };
  const body: JsonObject = { ...asked.body, input: [...input, question], tools: [], stream: false, store: false };
  return { ...asked, body, bytes: Buffer.from(JSON.stringify(body)), finish: asCompaction };
}

function asCompaction(answer: JsonObject): JsonObject {
  const { id, created_at, output, usage } = answer;
  return {
    id: id ?? null,
    object: "response.compaction",
    created_at: created_at ?? 0,
    output: output ?? [],
    usage: usage ?? null,
  };
}
