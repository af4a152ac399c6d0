import { isObject, parseJson } from "../base/json.ts";
import { resolveProvider, type ProviderModelOptions } from "./provider-model.ts";

/** What a provider says about its models when it is asked: their names, or why it does not say. */
export type ModelList =
  | { readonly ok: true; readonly models: readonly string[] }
  | { readonly ok: false; readonly reason: "key" | "unreachable" | "no-list"; readonly detail: string };

const patienceMs = 8_000;
const maxBytes = 8 * 1024 * 1024;

/** Asks for the list of models. Costs nothing at any provider, and shows whether address and key are right. */
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
    // A redirect is not followed: the key belongs to this address alone.
    response = await fetch(url, { headers, redirect: "manual", signal });
    body = await readBounded(response);
  } catch (error) {
    return { ok: false, reason: "unreachable", detail: `cannot reach ${url.host}: ${causeOf(error)}` };
  }
  if (response.status === 401 || response.status === 403)
    return { ok: false, reason: "key", detail: `${url.host} refuses the key (${response.status})` };
  const models = response.ok ? readNames(body) : undefined;
  if (models === undefined)
    return { ok: false, reason: "no-list", detail: `${url.host} has no list of models (${response.status})` };
  return { ok: true, models };
}

async function readBounded(response: Response): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of response.body ?? []) {
    text += decoder.decode(chunk as Uint8Array, { stream: true });
    if (text.length > maxBytes) throw new Error("its list of models has no end");
  }
  return text;
}

/** `{data: [{id}]}` of OpenAI and everybody after it, Anthropic included; `{models: [{name: "models/…"}]}` of Gemini. */
function readNames(body: string): readonly string[] | undefined {
  const read = parseJson(body);
  if (!read.ok || !isObject(read.value)) return undefined;
  const list = read.value["data"] ?? read.value["models"];
  if (!Array.isArray(list)) return undefined;
  const names = list.flatMap((entry: unknown) => {
    const name = isObject(entry) ? (entry["id"] ?? entry["name"]) : undefined;
    return typeof name === "string" ? [name.replace(/^models\//, "")] : [];
  });
  return [...new Set(names)].toSorted();
}

function causeOf(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  if (isObject(cause) && typeof cause["code"] === "string") return cause["code"];
  return cause instanceof Error ? cause.message : String(cause);
}
