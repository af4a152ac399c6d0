/**
 * Web searches that a client leaves to the provider, if the provider has none. The model must not
 * answer instead of the search, because the client would show invented results as real ones. The
 * user's own search service answers, or the client is told that there is none.
 */
import { text } from "../base/content.ts";
import type { Json } from "../base/json.ts";
import type { Item, ModelEvent, ModelRequest, ToolSpec } from "../spec/model.ts";
import { answerToEvents } from "../wire/answer.ts";

/** One page that a web search found. */
export interface SearchHit {
  readonly title: string;
  readonly url: string;
  readonly text?: string;
}

/** Looks something up. Throws when it cannot. */
export type Search = (query: string, signal: AbortSignal) => Promise<readonly SearchHit[]>;

const isSearchTool = (tool: ToolSpec) => tool.kind === "native" && /^(?:web_search|google_?search)/i.test(tool.type);

/** The request exists for a search: it is the only tool, or the one that must be called. */
export function isSearchRequest(request: ModelRequest): boolean {
  const search = request.tools.find(isSearchTool);
  if (search === undefined) return false;
  const choice = request.toolChoice;
  const isForced = typeof choice === "object" && "name" in choice && choice.name === search.name;
  return isForced || request.tools.length === 1;
}

export async function answerSearch(
  request: ModelRequest,
  wire: string,
  search: Search | undefined,
  signal: AbortSignal,
): Promise<readonly ModelEvent[]> {
  const query = queryOf(request);
  const found = await search?.(query, signal).catch(() => undefined);
  return answerToEvents({
    items: wire === "messages" ? blocksOf(query, found) : [messageOf(query, found)],
    outcome: "ok",
    finish: "stop",
    usage: { input: 0, output: 0 },
  });
}

function blocksOf(query: string, found: readonly SearchHit[] | undefined): readonly Item[] {
  const id = "srvtoolu_callgate_search";
  const content: Json =
    found === undefined
      ? { type: "web_search_tool_result_error", error_code: "unavailable" }
      : found.map(({ title, url }) => ({
          type: "web_search_result",
          title,
          url,
          encrypted_content: "",
          page_age: null,
        }));
  const server = { type: "server_call", name: "web_search", wire: "messages" } as const;
  return [
    { ...server, id, raw: { type: "server_tool_use", id, name: "web_search", input: { query } } },
    { ...server, raw: { type: "web_search_tool_result", tool_use_id: id, content } },
    ...(found === undefined ? [] : [messageOf(query, found)]),
  ];
}

function messageOf(query: string, found: readonly SearchHit[] | undefined): Item {
  const words =
    found === undefined
      ? "Web search is not available here."
      : [
          `Results for "${query}":`,
          ...found.map((hit) => `- ${hit.title} (${hit.url})${hit.text ? `\n  ${hit.text}` : ""}`),
        ].join("\n");
  return { type: "message", role: "assistant", content: [text(words)] };
}

function queryOf(request: ModelRequest): string {
  const last = request.input.findLast((item) => item.type === "message" && item.role === "user");
  const said =
    last?.type === "message" ? last.content.map((part) => (part.type === "text" ? part.text : "")).join("\n") : "";
  return /search for the query:\s*(.+)/is.exec(said)?.[1]?.trim() ?? said.trim();
}
