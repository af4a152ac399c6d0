import { checkOptions, optionsShape } from "../base/shape.ts";
import { defined } from "../base/json.ts";
import type { Codec, EncodeOptions, Quirks, WireName } from "../wire/codec.ts";
import { createHttpModel, type HttpModel } from "./http.ts";
import type { HttpModelOptions } from "./http-options.ts";
import { providerForWire, providers, unknownProvider, type Provider } from "./providers.ts";

/** A model at a provider from our table, or at your own address that speaks one of the wires. */
export interface ProviderModelOptions extends Pick<
  HttpModelOptions,
  "model" | "limits" | "answerLimits" | "retries" | "keyName"
> {
  /** A name of `providers`. Left out: whatever answers at `baseUrl`. */
  readonly provider?: string;
  /** The address, if it is not the provider's own. */
  readonly baseUrl?: string;
  /** The wire, if it is not the provider's own. For your own address the default is Chat. */
  readonly wire?: WireName;
  /**
   * Left out: from the provider's own variable. It is never sent to your own address unless you also
   * named a provider.
   */
  readonly apiKey?: string;
  /** Left out: as the provider's row says. `false` under a dialect, which reads the text itself, including thoughts. */
  readonly thinkTags?: boolean;
  /** Quirks of this model, in addition to its provider's. */
  readonly quirks?: Quirks;
  /** Used instead of the wire's own codec, for example the one that renders prompts for completion endpoints. */
  readonly codec?: Codec;
  /** The environment that holds the provider's key. Left out: the process's own. */
  readonly env?: Readonly<Record<string, string | undefined>>;
}

/** Where and how a model is asked: everything except the codec itself. */
export interface ProviderAddress {
  readonly wire: WireName;
  readonly baseUrl: string;
  /** The provider's own headers, and the one with the key. */
  readonly headers: Readonly<Record<string, string>>;
  readonly encode: EncodeOptions;
  readonly thinkTags: boolean;
  readonly keyName?: string;
}

export function resolveProvider(options: ProviderModelOptions): ProviderAddress {
  const provider = findProvider(options);
  const { keyName = isStranger(options) ? undefined : provider.keyEnv } = options;
  return {
    wire: options.wire ?? provider.wire,
    baseUrl: options.baseUrl ?? provider.baseUrl,
    headers: { ...provider.headers, ...authHeader(provider, findKey(options, provider)) },
    encode: { target: provider.target, quirks: { ...provider.quirks, ...options.quirks } },
    thinkTags: options.thinkTags ?? provider.thinkTags === true,
    ...defined({ keyName }),
  };
}

/** Only the codec that is spoken is loaded. */
export const loadCodec: Readonly<Record<WireName, () => Promise<Codec>>> = {
  responses: async () => (await import("../wire/responses/index.ts")).responses,
  chat: async () => (await import("../wire/chat/index.ts")).chat,
  messages: async () => (await import("../wire/messages/index.ts")).messages,
  gemini: async () => (await import("../wire/gemini/index.ts")).gemini,
};

const providerModelShape = optionsShape<ProviderModelOptions>(
  {
    model: "string",
    limits: "table",
    answerLimits: "table",
    retries: { above: -1 },
    keyName: "string",
    provider: "string",
    baseUrl: "string",
    wire: "string",
    apiKey: "string",
    thinkTags: "boolean",
    quirks: "table",
    codec: "any",
    env: "table",
  },
  "model",
);

/** A model by its provider's name, or by an address: `createProviderModel({ provider: "anthropic", model: "…" })`. */
export async function createProviderModel(options: ProviderModelOptions): Promise<HttpModel> {
  checkOptions("createProviderModel", options, providerModelShape);
  const { wire, ...address } = resolveProvider(options);
  const { model, limits, answerLimits, retries } = options;
  const codec = options.codec ?? (await loadCodec[wire]());
  return createHttpModel({ model, codec, ...address, ...defined({ limits, answerLimits, retries }) });
}

function findProvider({ provider, wire }: ProviderModelOptions): Provider {
  if (provider === undefined) return providerForWire(wire ?? "chat");
  if (!Object.hasOwn(providers, provider)) throw new TypeError(unknownProvider(provider));
  return providers[provider]!;
}

function findKey(options: ProviderModelOptions, { keyEnv }: Provider): string | undefined {
  const { apiKey, env = process.env } = options;
  return apiKey ?? (keyEnv === undefined || isStranger(options) ? undefined : env[keyEnv] || undefined);
}

/** An address without a named provider: it speaks a provider's wire, but is not that provider. */
function isStranger({ provider, baseUrl }: ProviderModelOptions): boolean {
  return provider === undefined && baseUrl !== undefined;
}

function authHeader({ auth }: Provider, key: string | undefined): Record<string, string> {
  if (key === undefined || auth === "none") return {};
  return auth === "bearer" ? { authorization: `Bearer ${key}` } : { [auth]: key };
}
