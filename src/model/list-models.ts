import { isObject, parseJson } from "../base/json.ts";
import { resolveProvider, type ProviderModelOptions } from "./provider-model.ts";

/** A provider's answer about its models: their names, or why it does not list them. */
export type ModelList =
  | {
      readonly ok: true;
      readonly models: readonly string[];
      /** How many tokens a model can take, for models whose server says so. */
      readonly windows: ReadonlyMap<string, number>;
    }
  | { readonly ok: false; readonly reason: "key" | "unreachable" | "no-list"; readonly detail: string };

const patienceMs = 8_000;
const maxBytes = 8 * 1024 * 1024;

/** Asks for the list of models. That costs nothing at any provider, and shows whether address and key are right. */
export async function listModels(
  options: Omit<ProviderModelOptions, "model">,
  signal: AbortSignal = AbortSignal.timeout(patienceMs),
): Promise<ModelList> {
  const { baseUrl, headers } = resolveProvider({ ...options, model: "" });
  const url = new URL(`${baseUrl.replace(/\/$/, "")}/models`);
  if (url.hostname === "generativelanguage.googleapis.com") url.searchParams.set("pageSize", "1000");
  let response: Response;
  let body: string;
  try {
    // A redirect is not followed, because the key belongs to this address alone.
    response = await fetch(url, { headers, redirect: "manual", signal });
    body = await readBounded(response);
  } catch (error) {
    return { ok: false, reason: "unreachable", detail: `cannot reach ${url.host}: ${causeOf(error)}` };
  }
  if (response.status === 401 || response.status === 403)
    return { ok: false, reason: "key", detail: `${url.host} refuses the key (${response.status})` };
  const listed = response.ok ? readEntries(body) : undefined;
  if (listed === undefined)
    return { ok: false, reason: "no-list", detail: `${url.host} has no list of models (${response.status})` };
  const windows = new Map(
    listed.flatMap(({ name, window }) => (window === undefined ? [] : [[name, window] as const])),
  );
  return { ok: true, models: [...new Set(listed.map(({ name }) => name))].toSorted(), windows };
}

async function readBounded(response: Response): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of response.body ?? []) {
    text += decoder.decode(chunk, { stream: true });
    if (text.length > maxBytes) throw new Error("its list of models has no end");
  }
  return text;
}

interface Listed {
  readonly name: string;
  readonly window?: number;
}

/** Names that servers use for the number of tokens a model can take: OpenRouter, vLLM, Groq, Gemini, LM Studio. */
const windowKeys = ["context_length", "max_model_len", "context_window", "inputTokenLimit", "max_context_length"];

/**
 * `{data: [{id}]}` from OpenAI and all that follow it, including Anthropic; `{models: [{name:
 * "models/…"}]}` from Gemini.
 */
function readEntries(body: string): readonly Listed[] | undefined {
  const read = parseJson(body);
  if (!read.ok || !isObject(read.value)) return undefined;
  const list = read.value["data"] ?? read.value["models"];
  if (!Array.isArray(list)) return undefined;
  return list.flatMap((entry: unknown): readonly Listed[] => {
    const name = isObject(entry) ? (entry["id"] ?? entry["name"]) : undefined;
    if (!isObject(entry) || typeof name !== "string") return [];
    const window = windowKeys.map((key) => entry[key]).find((value) => typeof value === "number" && value > 0);
    return [{ name: name.replace(/^models\//, ""), ...(typeof window === "number" ? { window } : {}) }];
  });
}

function causeOf(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  if (isObject(cause) && typeof cause["code"] === "string") return cause["code"];
  return cause instanceof Error ? cause.message : String(cause);
}
