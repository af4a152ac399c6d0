/** A search service of the user's own, for `web_search` and for the gateway: a command, an address, or a tool of an MCP server. */
import { CallError } from "../base/error.ts";
import { isObject, parseJson } from "../base/json.ts";
import { anySignal } from "../base/signal.ts";
import type { Search, SearchHit } from "../gateway/index.ts";
import type { WebSearch } from "../tools/web-search.ts";
import type { Config } from "./config/config.ts";
import { UsageError } from "./io.ts";

export interface SearchSettings {
  /** Run with the query as its last word. */
  readonly command?: readonly string[];
  /** Asked with `?q=QUERY`; `{query}` in it is replaced instead. */
  readonly url?: string;
  /** `server/tool`: called with the query, down the whole line. */
  readonly mcp?: string;
  /** What that tool calls the query. */
  readonly argument?: string;
}

const maxBytes = 1024 * 1024;
const timeoutMs = 20_000;

function readSearchSettings(config: Config): SearchSettings | undefined {
  if (config.web_search === undefined) return undefined;
  // Checked by its shape when the settings were read.
  const settings = config.web_search as SearchSettings;
  if ([settings.command, settings.url, settings.mcp].filter((way) => way !== undefined).length !== 1)
    throw new UsageError("web_search: give one of 'command', 'url' and 'mcp'");
  if (settings.command?.length === 0) throw new UsageError("web_search: 'command' is empty");
  return settings;
}

/** The search that the gateway uses. The gateway has no tools, so it cannot call a tool of an MCP server. */
export function createSearch(config: Config, cwd: string): Search | undefined {
  const settings = readSearchSettings(config);
  if (settings === undefined) return undefined;
  if (settings.mcp !== undefined)
    throw new UsageError("web_search: the gateway takes 'command' or 'url'; a server's tool needs a session");
  return (query, signal) => findHits(settings, query, cwd, signal);
}

/** The service that the tool `web_search` runs on where the provider has none. */
export function createWebSearch(config: Config, cwd: string): WebSearch | undefined {
  const settings = readSearchSettings(config);
  if (settings === undefined) return undefined;
  return async (query, { signal, call }) => {
    const { mcp, argument = "query" } = settings;
    if (mcp !== undefined) {
      const found = await call(mcp, { [argument]: query });
      if (!found.ok) throw new CallError("failed", `The search failed: ${found.text}`);
      return found.text;
    }
    try {
      const hits = await findHits(settings, query, cwd, signal);
      return hits.map(({ title, url, text }) => ({ title, url, ...(text === undefined ? {} : { snippet: text }) }));
    } catch (error) {
      throw new CallError("network", `The search failed: ${error instanceof Error ? error.message : String(error)}`, {
        cause: error,
      });
    }
  };
}

async function findHits(
  { command, url }: SearchSettings,
  query: string,
  cwd: string,
  signal: AbortSignal,
): Promise<readonly SearchHit[]> {
  return readHits(
    command === undefined ? await askAddress(url ?? "", query, signal) : await runProgram(command, query, cwd, signal),
  );
}

/** `[{title, url, text}]`, or the same below `results` or `items`. */
function readHits(answer: string): readonly SearchHit[] {
  const parsed = parseJson(answer);
  if (!parsed.ok) throw new Error("the search service did not answer with JSON");
  const value = isObject(parsed.value) ? (parsed.value["results"] ?? parsed.value["items"]) : parsed.value;
  if (!Array.isArray(value)) throw new Error("the search service answered with no list of results");
  return value.flatMap((hit): readonly SearchHit[] => {
    if (!isObject(hit)) return [];
    const { title, url, link, text, snippet, content } = hit;
    const address = url ?? link;
    const words = text ?? snippet ?? content;
    if (typeof address !== "string") return [];
    return [
      {
        title: typeof title === "string" ? title : address,
        url: address,
        ...(typeof words === "string" ? { text: words } : {}),
      },
    ];
  });
}

async function askAddress(address: string, query: string, signal: AbortSignal): Promise<string> {
  const url = address.includes("{query}")
    ? new URL(address.replace("{query}", encodeURIComponent(query)))
    : new URL(address);
  if (!address.includes("{query}")) url.searchParams.set("q", query);
  const response = await fetch(url, { signal: anySignal([signal, AbortSignal.timeout(timeoutMs)]) });
  if (!response.ok) throw new Error(`the search service answered with HTTP ${response.status}`);
  const text = await response.text();
  if (text.length > maxBytes) throw new Error("the search service answered with more than 1 MB");
  return text;
}

async function runProgram(
  command: readonly string[],
  query: string,
  cwd: string,
  signal: AbortSignal,
): Promise<string> {
  const { execFile } = await import("node:child_process");
  const [program = "", ...args] = command;
  return new Promise((resolve, reject) => {
    execFile(program, [...args, query], { cwd, signal, timeout: timeoutMs, maxBuffer: maxBytes }, (error, stdout) =>
      error === null ? resolve(stdout) : reject(error),
    );
  });
}
