/** `web_search`: the provider's own search, or the host's. */
import { CallError, defineTool, type ToolContext } from "../index.ts";

/** A search function of the host's, registered as the service `webSearch`. `call` makes a call of another tool, as part of this one. */
export type WebSearch = (
  query: string,
  options: { readonly count: number; readonly signal: AbortSignal; readonly call: ToolContext["call"] },
) => Promise<string | readonly WebSearchResult[]>;

/** One page that was found. */
export interface WebSearchResult {
  readonly title: string;
  readonly url: string;
  readonly snippet?: string;
}

/** The service a host must register for `web_search` to be offered on wires whose provider has none. */
export const webSearchService = "webSearch";

/** The provider's own search where it has one; otherwise the host's. */
export const webSearch = defineTool({
  name: "web_search",
  description: "Search the web for information.",
  input: {
    type: "object",
    properties: {
      query: { type: "string", description: "Search query" },
      num_results: { type: "number", default: 5, minimum: 1, maximum: 50, description: "Number of results to return" },
    },
    required: ["query"],
    additionalProperties: false,
  },
  native: { type: "web_search" },
  parallel: true,
  mutates: false,
  group: "network",
  metadata: { needsService: webSearchService },
  async run({ query, num_results: count = 5 }, ctx) {
    const search = ctx.service[webSearchService];
    if (typeof search !== "function") {
      throw new CallError("failed", "There is no web search here.", {
        hint: "Answer from what is known, or ask the user.",
      });
    }
    // Nobody checks what a host registers. A result of another shape is shown as JSON below.
    const found = await (search as WebSearch)(query, {
      count: Math.floor(count),
      signal: ctx.signal,
      call: ctx.call,
    });
    if (typeof found === "string") return found;
    return found.length === 0 ? "Nothing was found." : found.slice(0, count).map(showResult).join("\n\n");
  },
});

function showResult({ title, url, snippet }: WebSearchResult, index: number): string {
  return [`${index + 1}. ${title}`, url, ...(snippet ? [snippet] : [])].join("\n");
}
