/**
 * Who is asking, and in which conversation. Most agents name their conversation in a header or a
 * field. The others are recognised by the beginning of the conversation.
 */
import { createHash } from "node:crypto";
import { isObject, type JsonObject, parseJson } from "../base/json.ts";
import type { ModelRequest } from "../spec/model.ts";

export interface ClientInfo {
  /** `codex`, `claude`, `gemini-cli`, `opencode`, `pi`, or the first word of the user agent. */
  readonly client: string;
  /** The same for every request of one conversation, and for no other. */
  readonly conversation: string;
  /** True if the client named it. Otherwise it is recognised by its beginning, which others may share. */
  readonly isNamed: boolean;
  /** Sub-agents share the conversation and differ in their instructions and tools. */
  readonly branch: string;
}

export type Headers = Readonly<Record<string, string | string[] | undefined>>;

export function identify(headers: Headers, body: JsonObject, request: ModelRequest, key: string): ClientInfo {
  const client = nameClient(one(headers["user-agent"]) ?? "");
  const given = namedConversation(headers, body);
  const begin = given ?? beginningOf(request);
  return {
    client,
    conversation: digest([key, client, given === undefined ? "begins" : "named", begin]),
    isNamed: given !== undefined,
    branch: digest([withoutVolatile(request.instructions ?? ""), ...request.tools.map(({ name }) => name)]),
  };
}

function nameClient(agent: string): string {
  if (/codex/i.test(agent)) return "codex";
  if (/^claude-cli/i.test(agent)) return "claude";
  if (/^GeminiCLI/i.test(agent)) return "gemini-cli";
  return /^[\w.@-]+/.exec(agent)?.[0].toLowerCase() ?? "unknown";
}

const conversationHeaders = ["session-id", "thread-id", "x-claude-code-session-id", "x-session-id", "session_id"];

function namedConversation(headers: Headers, body: JsonObject): string | undefined {
  for (const name of conversationHeaders) {
    const value = one(headers[name]);
    if (value !== undefined && value !== "") return value;
  }
  const metadata = body["metadata"];
  // Claude Code writes JSON into a field that holds a string.
  const user =
    isObject(metadata) && typeof metadata["user_id"] === "string" ? parseJson(metadata["user_id"]) : undefined;
  if (user?.ok && isObject(user.value) && typeof user.value["session_id"] === "string") return user.value["session_id"];
  const cacheKey = body["prompt_cache_key"];
  return typeof cacheKey === "string" && cacheKey !== "" ? cacheKey : undefined;
}

/** A conversation without a name is recognised by its first message and by the instructions before it. */
function beginningOf(request: ModelRequest): string {
  const first = request.input.find((item) => item.type === "message" && item.role === "user");
  return JSON.stringify([withoutVolatile(request.instructions ?? ""), first?.type === "message" ? first.content : ""]);
}

/** Dates, versions and ids in a system prompt change from one request to the next. */
function withoutVolatile(text: string): string {
  return text.replaceAll(/x-anthropic-billing-header:[^\n]*/g, "").replaceAll(/\d{4}-\d{2}-\d{2}(?:T[\d:.]+Z?)?/g, "");
}

function one(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value[0] : value;
}

export function digest(parts: readonly string[]): string {
  return createHash("sha256").update(JSON.stringify(parts)).digest("hex").slice(0, 24);
}
