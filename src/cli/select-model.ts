/** Turns settings and flags into a model: provider, wire and key, or the built-in offline model. */
import { defined } from "../base/json.ts";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { stateDir } from "../base/paths.ts";
import type { Dialect } from "../dialect/index.ts";
import type { Model, ModelRequest } from "../spec/model.ts";
import { createProviderModel, type ProviderModelOptions } from "../model/provider-model.ts";
import { guessProvider, providerForWire, providers, unknownProvider, type Provider } from "../model/providers.ts";
import { isWireName, wireNames, type Codec, type WireName } from "../wire/codec.ts";
import type { ModelList } from "../model/list-models.ts";
import type { ProfileForm } from "../registry/profile.ts";
import type { Config } from "./config/config.ts";
import { UsageError } from "./io.ts";
import type { ModelRecord } from "./models.ts";

export interface SelectedModel {
  readonly model: Model;
  readonly wire: string;
  readonly provider: string;
  /**
   * Where the model was found, so that a resumed session finds it again: the provider, named or guessed, and
   * the user's own address if there is one.
   */
  readonly named: { readonly provider?: string; readonly base_url?: string };
  close(): Promise<void>;
}

export function isOfflineConfig({ model, base_url, provider }: Config): boolean {
  return model === "offline" || (model === undefined && base_url === undefined && provider === undefined);
}

/**
 * The settings, completed with what is known about the model: what `callgate model add` stored, or the
 * provider that its name points to.
 */
export async function locateModel(
  given: Config,
  env: NodeJS.ProcessEnv,
): Promise<{ readonly config: Config; readonly record: ModelRecord | undefined }> {
  const record = await findRecord(given, env);
  return { config: withProvider(record === undefined ? given : { base_url: record.baseUrl, ...given }), record };
}

function withProvider(config: Config): Config {
  if (config.provider !== undefined || config.base_url !== undefined || isOfflineConfig(config)) return config;
  const provider = guessProvider(config.model ?? "");
  if (provider !== undefined) return { ...config, provider };
  // A wire that only one company uses says who the provider is. Chat and text dialects are used by everybody, so
  // they do not.
  if (config.wire === "responses" || config.wire === "messages" || config.wire === "gemini") return config;
  throw new UsageError(
    `who runs '${config.model}'? Its name does not tell: give --provider (${Object.keys(providers).join(", ")}) or --base-url, or set it in callgate.toml`,
  );
}

/** The variable that should hold a key and does not. Undefined if the key is there, or if none is needed. */
export function missingKey(config: Config, env: NodeJS.ProcessEnv): string | undefined {
  const { provider: name, base_url: address, api_key_env: own } = config;
  if (own !== undefined) return env[own] || env["CALLGATE_API_KEY"] ? undefined : own;
  // Whether the user's own address needs a key is not known here. Its server will say so.
  if (name === undefined || address !== undefined || name === "custom") return undefined;
  const keyEnv = Object.hasOwn(providers, name) ? providers[name]!.keyEnv : undefined;
  return keyEnv === undefined || env[keyEnv] || env["CALLGATE_API_KEY"] ? undefined : keyEnv;
}

/**
 * The model that the settings name: at a provider, or at the user's own address. With neither, it is the
 * built-in offline model.
 */
export async function selectModel(
  given: Config,
  env: NodeJS.ProcessEnv,
  form: ProfileForm = "native",
): Promise<SelectedModel> {
  const { config, record } = await locateModel(given, env);
  const known = record === undefined ? undefined : wireOfRecord(record);
  const read = known !== undefined && (config.wire ?? known.name) === known.name ? known : readWire(config.wire);
  const wanted = withForm(read, form);
  const isOffline = isOfflineConfig(config);
  const { name, provider } = chooseProvider(config, wanted.wire);
  const missing = isOffline ? undefined : missingKey(config, env);
  if (missing !== undefined)
    throw new UsageError(
      `${provider.title} needs a key, and ${missing} is not set: export it, or run 'callgate init' to choose another model`,
    );
  const server = isOffline ? await startOffline(wanted.dialect) : undefined;
  const wire = wanted.wire ?? provider.wire;
  const model = config.model ?? (isOffline ? "offline" : undefined);
  if (model === undefined)
    throw new UsageError("no model is named: set 'model' in callgate.toml, CALLGATE_MODEL or --model");
  const baseUrl = server?.baseUrl ?? readAddress(config.base_url);
  const apiKey = findKey(config, env);
  const codec = await codecOf(wanted, record);
  const http = await createProviderModel({
    model,
    wire,
    env,
    ...defined({ provider: config.provider, baseUrl, apiKey, codec }),
    ...readAnswerLimits(config.answer_limits),
    keyName: config.api_key_env ?? (config.provider && provider.keyEnv) ?? "CALLGATE_API_KEY",
    // A dialect reads the whole text itself, including thoughts.
    ...(wanted.dialect === undefined ? {} : { thinkTags: false }),
    // Templates require a text where Chat allows null, and need the names of tools.
    ...(wanted.native === true ? { quirks: { emptyContent: true, resultNames: true } } : {}),
  });
  return {
    model: wanted.dialect === undefined ? await speakForm(http, wanted.form) : await speakDialect(http, wanted, record),
    wire: config.wire ?? (record !== undefined || wanted.dialect !== undefined ? wanted.name : wire),
    provider: isOffline ? "offline" : name,
    named: isOffline
      ? { provider: "offline" }
      : defined({ provider: config.provider, base_url: withoutLogin(config.base_url) }),
    async close() {
      http.close();
      await server?.close();
    },
  };
}

/** What `callgate model add` keeps about the model of that name, if anything. */
async function findRecord(config: Config, env: NodeJS.ProcessEnv): Promise<ModelRecord | undefined> {
  if (config.model === undefined || config.provider !== undefined) return undefined;
  if (!existsSync(join(stateDir(env), "models"))) return undefined;
  return (await import("./models.ts")).findModel(config.model, env);
}

interface WantedWire {
  readonly name: string;
  readonly wire?: WireName;
  readonly dialect?: string | Dialect;
  /** Tools and calls are sent in the wire's own form. Only the answer is read by the dialect. */
  readonly native?: boolean;
  /** The prompt is rendered here. */
  readonly rendered?: boolean;
  /** The dialect that a profile teaches in addition to the wire's own calls. */
  readonly form?: ProfileForm;
}

function wireOfRecord({ request, dialect }: ModelRecord): WantedWire {
  const name =
    request === "completions" ? request : `${request}:${typeof dialect === "string" ? dialect : dialect.name}`;
  return { name, wire: "chat", dialect, native: request !== "text", rendered: request === "completions" };
}

async function codecOf({ rendered }: WantedWire, record: ModelRecord | undefined): Promise<Codec | undefined> {
  if (rendered !== true) return undefined;
  if (record?.template.source === undefined)
    throw new UsageError(
      "the wire 'completions' needs the model's template: callgate model add NAME --base-url URL --template FILE --wire completions",
    );
  const { createCompletionsCodec } = await import("../model/completions.ts");
  const { template, profile, dialect } = record;
  return createCompletionsCodec({ template: template.source!, tokens: template.tokens, profile, dialect });
}

/** Limits on what a server may send, as far as the settings give them. The others have their defaults. */
function readAnswerLimits(table: Config["answer_limits"]): Pick<ProviderModelOptions, "limits" | "answerLimits"> {
  const given = new Map(Object.entries(table ?? {}).filter((entry) => typeof entry[1] === "number"));
  const read = (name: string, times = 1): number | undefined => {
    const value = given.get(name);
    return typeof value === "number" ? value * times : undefined;
  };
  const totalMs = read("seconds", 1000);
  return {
    ...(totalMs === undefined ? {} : { limits: { totalMs } }),
    answerLimits: defined({
      calls: read("calls"),
      argumentCharacters: read("argument_characters"),
      characters: read("characters"),
      bodyBytes: read("bytes"),
    }),
  };
}

/** The model for commands without a session. It is made only when something asks for it. */
export function lazyModel(config: Config, env: NodeJS.ProcessEnv) {
  let selected: Promise<SelectedModel> | undefined;
  return {
    model: async () => (await (selected ??= selectModel(config, env))).model,
    close: async () => (await selected)?.close(),
  };
}

/** A profile that teaches a dialect beside the wire's own calls. */
async function speakForm(http: Model, form: ProfileForm | undefined): Promise<Model> {
  if (form === undefined || form === "native") return http;
  return (await import("../model/text.ts")).speakForm(http, form);
}

/** A profile's form works on any wire. A dialect that is named in the wire itself takes precedence. */
function withForm(wanted: WantedWire, form: ProfileForm): WantedWire {
  if (wanted.dialect !== undefined || wanted.rendered === true || form === "native") return wanted;
  if (!form.startsWith("text:")) return { ...wanted, form };
  return { ...wanted, name: form, wire: wanted.wire ?? "chat", dialect: form.slice("text:".length) };
}

/** The dialects are loaded only for models that need them: most have calls of their own. */
async function speakDialect(http: Model, wanted: WantedWire, record: ModelRecord | undefined): Promise<Model> {
  const [{ createTextModel }, { findDialect, unknownDialect }] = await Promise.all([
    import("../model/text.ts"),
    import("../dialect/dialects.ts"),
  ]);
  const { dialect = "auto", native = false } = wanted;
  if (typeof dialect === "string" && findDialect(dialect) === undefined)
    throw new UsageError(`${unknownDialect(dialect)} ('callgate dialects' lists them)`);
  const profile = record?.profile;
  return createTextModel(http, dialect, {
    native,
    teach: native && profile?.tools === false,
    ...(record?.writes === undefined || dialect !== record.dialect ? {} : { writes: record.writes }),
    ...(profile === undefined ? {} : { markers: profile.markers, startsIn: (request) => startOf(profile, request) }),
  });
}

/**
 * Whether answers begin inside thoughts. That depends on how the template ends its prompts for the amount of
 * thinking that was requested.
 */
function startOf({ opensThoughts }: ModelRecord["profile"], { reasoning }: ModelRequest): "reasoning" | "text" {
  const effort = reasoning?.effort;
  const opens = effort === undefined ? opensThoughts.default : effort === "none" ? opensThoughts.off : opensThoughts.on;
  return opens ? "reasoning" : "text";
}

/** `text:DIALECT` puts calls and results into Chat's messages as text; `chat+text:DIALECT` only reads answers so. */
function readWire(wire: string | undefined): WantedWire {
  const name = wire ?? "";
  if (wire === undefined) return { name };
  if (wire.startsWith("text:")) return { name, wire: "chat", dialect: wire.slice("text:".length) };
  if (wire.startsWith("chat+text:"))
    return { name, wire: "chat", dialect: wire.slice("chat+text:".length), native: true };
  if (wire === "completions") return { name, wire: "chat", rendered: true };
  if (isWireName(wire)) return { name, wire };
  throw new UsageError(
    `there is no wire '${wire}': ${wireNames.join(", ")}, text:DIALECT, chat+text:DIALECT ('callgate dialects' lists them) or completions`,
  );
}

/**
 * The provider that the settings name; otherwise one with what an unknown server on that wire can be
 * expected to accept.
 */
export function chooseProvider(
  config: Config,
  wire?: WireName,
): { readonly name: string; readonly provider: Provider } {
  if (config.provider !== undefined) {
    if (!Object.hasOwn(providers, config.provider)) {
      throw new UsageError(unknownProvider(config.provider));
    }
    return { name: config.provider, provider: providers[config.provider]! };
  }
  return { name: "custom", provider: providerForWire(wire ?? "chat") };
}

/** Accepts an address as people copy it: that of the API, or that of one request to it. */
function readAddress(address: string | undefined): string | undefined {
  if (address === undefined) return undefined;
  if (!/^https?:/i.test(address) || !URL.canParse(address))
    throw new UsageError(`'${address}' is no address of a model: give one such as http://127.0.0.1:8080/v1`);
  return address.replace(/\/(?:chat\/completions|responses|messages)\/?$/, "");
}

/** An address with a password in it is not stored. */
function withoutLogin(address: string | undefined): string | undefined {
  return address === undefined || !URL.canParse(address) || new URL(address).username !== "" ? undefined : address;
}

/** The models that the provider of the settings lists. */
export async function listModelsOf(given: Config, env: NodeJS.ProcessEnv): Promise<ModelList> {
  const { config } = await locateModel(given, env);
  if (isOfflineConfig(config)) return { ok: true, models: ["offline"], windows: new Map() };
  const { wire } = readWire(config.wire);
  const { listModels } = await import("../model/list-models.ts");
  return listModels({
    env,
    ...defined({
      provider: config.provider,
      baseUrl: readAddress(config.base_url),
      apiKey: findKey(config, env),
      wire,
    }),
  });
}

/** A key that was set for Callgate. A provider's own variable is used only if that provider was named. */
function findKey(config: Config, env: NodeJS.ProcessEnv): string | undefined {
  const own = config.api_key_env === undefined ? undefined : env[config.api_key_env];
  return own || env["CALLGATE_API_KEY"] || undefined;
}

async function startOffline(
  dialect: string | Dialect | undefined,
): Promise<{ readonly baseUrl: string; close(): Promise<void> }> {
  const { createOfflineModel, serveModel } = await import("../testing/index.ts");
  return serveModel(createOfflineModel(), typeof dialect === "string" ? { dialect } : {});
}
