/** A search service of the user's own: a command, or an address, that is given a query and answers with JSON. */
import { execFile } from "node:child_process";
import { isObject, parseJson } from "../../base/json.ts";
import type { Search, SearchHit } from "../../gateway/index.ts";
import { UsageError } from "../io.ts";

export interface SearchSettings {
  /** Run with the query as its last word. */
  readonly command?: readonly string[];
  /** Asked with `?q=QUERY`; `{query}` in it is replaced instead. */
  readonly url?: string;
}

const maxBytes = 1024 * 1024;
const timeoutMs = 20_000;

export function createSearch(settings: SearchSettings | undefined, cwd: string): Search | undefined {
  if (settings === undefined) return undefined;
  const { command, url } = settings;
  if ((command === undefined) === (url === undefined))
    throw new UsageError("gateway.search: give either 'command' or 'url'");
  return async (query, signal) =>
    readHits(
      command === undefined
        ? await askAddress(url ?? "", query, signal)
        : await runProgram(command, query, cwd, signal),
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
  const response = await fetch(url, { signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]) });
  if (!response.ok) throw new Error(`the search service answered with HTTP ${response.status}`);
  const text = await response.text();
  if (text.length > maxBytes) throw new Error("the search service answered with more than 1 MB");
  return text;
}

function runProgram(command: readonly string[], query: string, cwd: string, signal: AbortSignal): Promise<string> {
  const [program, ...args] = command;
  if (program === undefined) throw new UsageError("gateway.search: 'command' is empty");
  return new Promise((resolve, reject) => {
    execFile(program, [...args, query], { cwd, signal, timeout: timeoutMs, maxBuffer: maxBytes }, (error, stdout) =>
      error === null ? resolve(stdout) : reject(error),
    );
  });
}
