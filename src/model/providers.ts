import { nearest } from "../base/text.ts";
import type { SchemaTarget } from "../schema/normalize.ts";
import type { Quirks, WireName } from "../wire/codec.ts";

/** A provider is a row: its address, its wire, and how it differs from that wire's norm. */
export interface Provider {
  readonly title: string;
  readonly baseUrl: string;
  readonly wire: WireName;
  /** The environment variable that holds the key; local servers need none. */
  readonly keyEnv?: string;
  readonly auth: "bearer" | "x-api-key" | "x-goog-api-key" | "none";
  readonly headers?: Readonly<Record<string, string>>;
  readonly target: SchemaTarget;
  readonly quirks?: Quirks;
  /** The server leaves a model's thoughts in its text, between `<think>` tags, unless it was told to take them out. */
  readonly thinkTags?: boolean;
}

/** A server that shows its thoughts accepts them back under the same name. */
const ownThoughts = { echoReasoning: "reasoning_content", onlyOwnReasoning: true } as const;

/** What most local servers share: Chat Completions, one system message, no extras. */
const local = {
  wire: "chat",
  auth: "none",
  target: "llama-cpp",
  quirks: {
    noCacheKey: true,
    noParallelFlag: true,
    maxTokensField: "max_tokens",
    noPlatformFields: true,
    ...ownThoughts,
  },
  thinkTags: true,
} as const;

/** Every provider that is known by name: its address, its wire, and the variable that holds its key. */
export const providers: Readonly<Record<string, Provider>> = {
  openai: {
    title: "OpenAI",
    baseUrl: "https://api.openai.com/v1",
    wire: "responses",
    keyEnv: "OPENAI_API_KEY",
    auth: "bearer",
    target: "openai",
    quirks: { laterSystem: true, customTools: true, allowedTools: true, maxTokensField: "max_completion_tokens" },
  },
  anthropic: {
    title: "Anthropic",
    baseUrl: "https://api.anthropic.com/v1",
    wire: "messages",
    keyEnv: "ANTHROPIC_API_KEY",
    auth: "x-api-key",
    headers: { "anthropic-version": "2023-06-01" },
    target: "anthropic",
  },
  gemini: {
    title: "Google Gemini",
    baseUrl: "https://generativelanguage.googleapis.com/v1beta",
    wire: "gemini",
    keyEnv: "GEMINI_API_KEY",
    auth: "x-goog-api-key",
    target: "gemini",
  },
  openrouter: {
    title: "OpenRouter",
    baseUrl: "https://openrouter.ai/api/v1",
    wire: "chat",
    keyEnv: "OPENROUTER_API_KEY",
    auth: "bearer",
    target: "openai",
    quirks: { echoReasoning: "reasoning", noCacheKey: true },
  },
  deepseek: {
    title: "DeepSeek",
    baseUrl: "https://api.deepseek.com/v1",
    wire: "chat",
    keyEnv: "DEEPSEEK_API_KEY",
    auth: "bearer",
    target: "openai",
    quirks: {
      echoReasoning: "reasoning_content",
      noCacheKey: true,
      noParallelFlag: true,
      noPlatformFields: true,
      maxTokensField: "max_tokens",
    },
  },
  mistral: {
    title: "Mistral",
    baseUrl: "https://api.mistral.ai/v1",
    wire: "chat",
    keyEnv: "MISTRAL_API_KEY",
    auth: "bearer",
    target: "openai",
    quirks: { idLength: 9, emptyContent: true, noCacheKey: true, noPlatformFields: true, maxTokensField: "max_tokens" },
  },
  ollama: {
    title: "Ollama",
    baseUrl: "http://127.0.0.1:11434/v1",
    ...local,
    quirks: { ...local.quirks, echoReasoning: "reasoning" },
  },
  "llama-cpp": { title: "llama.cpp server", baseUrl: "http://127.0.0.1:8080/v1", ...local },
  vllm: {
    title: "vLLM",
    baseUrl: "http://127.0.0.1:8000/v1",
    ...local,
    target: "openai",
    quirks: { ...local.quirks, echoReasoning: "reasoning", onlyOwnReasoning: false },
  },
  "lm-studio": { title: "LM Studio", baseUrl: "http://127.0.0.1:1234/v1", ...local },
  custom: {
    title: "any other server",
    baseUrl: "http://127.0.0.1:8080/v1",
    wire: "chat",
    keyEnv: "CALLGATE_API_KEY",
    auth: "bearer",
    target: "openai",
    quirks: { noCacheKey: true, noPlatformFields: true, ...ownThoughts },
    thinkTags: true,
  },
};

/** The norm of a wire, if no provider was named. */
export function providerForWire(wire: WireName): Provider {
  const byWire: Readonly<Record<WireName, string>> = {
    responses: "openai",
    chat: "custom",
    messages: "anthropic",
    gemini: "gemini",
  };
  return providers[byWire[wire]]!;
}

/**
 * Names that only one provider uses; the first match counts. A name with a slash is a router's, one
 * with a tag is Ollama's.
 */
const nameBeginnings: readonly (readonly [RegExp, string])[] = [
  [/^[\w.-]+\/[\w.:-]+$/, "openrouter"],
  [/^(?:gpt-|chatgpt-|codex-|computer-use-|o[1-9](?:-|$))/, "openai"],
  [/^claude-/, "anthropic"],
  [/^gemini-/, "gemini"],
  [/^deepseek-(?:chat|reasoner)/, "deepseek"],
  [/^(?:mistral|ministral|magistral|codestral|devstral|pixtral)-/, "mistral"],
  [/^[\w.-]+:[\w.-]+$/, "ollama"],
];

/** What is said about a name that is no provider's. */
export function unknownProvider(name: string): string {
  const known = Object.keys(providers);
  const [guess] = nearest(name, known, 1);
  return `there is no provider '${name}'${guess === undefined ? "" : `; did you mean '${guess}'?`} (${known.join(", ")})`;
}

/** The provider of a model, if the name alone tells. */
export function guessProvider(model: string): string | undefined {
  return nameBeginnings.find(([pattern]) => pattern.test(model))?.[1];
}
