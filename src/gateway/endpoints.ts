/** Which of our endpoints a path names. Every client appends its own version prefix, or none. */
import type { WireName } from "../wire/codec.ts";

export type Endpoint =
  /** Asks a model. Gemini names the model and whether to stream in the path, the others in the body. */
  | { readonly kind: "ask"; readonly wire: WireName; readonly model?: string; readonly stream?: boolean }
  /** How many tokens a request would take. */
  | { readonly kind: "count"; readonly wire: WireName; readonly model?: string }
  | { readonly kind: "models"; readonly wire: WireName; readonly id?: string }
  /** A stored response of the Responses API. */
  | { readonly kind: "response"; readonly wire: "responses"; readonly id: string; readonly remove: boolean }
  | { readonly kind: "compact"; readonly wire: "responses" }
  | { readonly kind: "conversation"; readonly wire: "responses" }
  | { readonly kind: "metrics" | "health"; readonly wire: WireName };

export function findEndpoint(method: string, path: string, headers: Headers): Endpoint | undefined {
  const isGemini = path.startsWith("/v1beta/") || path.startsWith("/v1alpha/") || path.includes(":");
  const rest = path.replace(/^\/(?:v1beta|v1alpha|v1)(?=\/)/, "").replace(/\/$/, "");
  if (method === "POST") return findPost(rest, isGemini);
  if (method === "HEAD" || method === "GET") {
    if (rest === "/healthz" || rest === "/api/hello" || rest === "") return { kind: "health", wire: "chat" };
    if (rest === "/metrics") return { kind: "metrics", wire: "chat" };
    const models = /^\/models(?:\/(.+))?$/.exec(rest);
    if (models !== null) {
      const wire = isGemini ? "gemini" : headers["anthropic-version"] === undefined ? "chat" : "messages";
      return { kind: "models", wire, ...(models[1] === undefined ? {} : { id: decode(models[1]) }) };
    }
  }
  const stored = /^\/responses\/([^/]+)$/.exec(rest)?.[1];
  if (stored !== undefined && (method === "GET" || method === "DELETE"))
    return { kind: "response", wire: "responses", id: decode(stored), remove: method === "DELETE" };
  return undefined;
}

/** Which client asks for an endpoint that we do not have, so that it gets an error in a form it can read. */
export function guessWire(path: string, headers: Headers): WireName {
  if (/^\/v1(?:beta|alpha)\//.test(path) || headers["x-goog-api-key"] !== undefined) return "gemini";
  if (/^(?:\/v1)?\/messages\b/.test(path) || headers["anthropic-version"] !== undefined) return "messages";
  return /^(?:\/v1)?\/(?:responses|conversations)\b/.test(path) ? "responses" : "chat";
}

type Headers = Readonly<Record<string, string | readonly string[] | undefined>>;

function findPost(rest: string, isGemini: boolean): Endpoint | undefined {
  if (isGemini) {
    const found = /^\/models\/(.+):(generateContent|streamGenerateContent|countTokens)$/.exec(rest);
    if (found === null) return undefined;
    const model = decode(found[1] ?? "");
    if (found[2] === "countTokens") return { kind: "count", wire: "gemini", model };
    return { kind: "ask", wire: "gemini", model, stream: found[2] === "streamGenerateContent" };
  }
  switch (rest) {
    case "/responses":
      return { kind: "ask", wire: "responses" };
    case "/chat/completions":
      return { kind: "ask", wire: "chat" };
    case "/messages":
      return { kind: "ask", wire: "messages" };
    case "/messages/count_tokens":
      return { kind: "count", wire: "messages" };
    case "/responses/input_tokens":
      return { kind: "count", wire: "responses" };
    case "/responses/compact":
      return { kind: "compact", wire: "responses" };
    case "/conversations":
      return { kind: "conversation", wire: "responses" };
    default:
      return undefined;
  }
}

/** A name in a path. One that is not encoded properly is taken as it stands, and found nowhere. */
function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
