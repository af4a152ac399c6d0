/** Settings and flags to a model: provider, wire, key, or the built-in offline one. */
import { defined } from "../base/json.ts";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { stateDir } from "../base/paths.ts";
import type { Dialect } from "../dialect/index.ts";
import type { Model, ModelRequest } from "../spec/model.ts";
import { createProviderModel, type ProviderModelOptions } from "../model/provider-model.ts";
import { guessProvider, providerForWire, providers, type Provider } from "../model/providers.ts";
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
  /** Where it was found, to be found again: the provider, named or guessed, and an address of one's own. */
  readonly named: { readonly provider?: string; readonly base_url?: string };
  close(): Promise<void>;
}

export function isOfflineConfig({ model, base_url, provider }: Config): boolean {
  return model === "offline" || (model === undefined && base_url === undefined && provider === undefined);
}

/** The settings with what is known of the model: what `callgate model add` keeps of it, or the provider its name tells. */
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
  // A wire of its own stands for who made it; a text dialect and Chat are spoken by everybody.
  if (config.wire === "responses" || config.wire === "messages" || config.wire === "gemini") return config;
  throw new UsageError(
    `who runs '${config.model}'? Its name does not tell: give --provider (${Object.keys(providers).join(", ")}) or --base-url, or set it in callgate.toml`,
  );
}

/** The variable that must hold a key and does not; undefined where the key is there, or none is needed. */
export function missingKey(config: Config, env: NodeJS.ProcessEnv): string | undefined {
  const { provider: name, base_url: address, api_key_env: own } = config;
  if (own !== undefined) return env[own] || env["CALLGATE_API_KEY"] ? undefined : own;
  // At an address of one's own nobody knows whether a key is needed: the server says so.
  if (name === undefined || address !== undefined || name === "custom") return undefined;
  const keyEnv = Object.hasOwn(providers, name) ? providers[name]!.keyEnv : undefined;
  return keyEnv === undefined || env[keyEnv] || env["CALLGATE_API_KEY"] ? undefined : keyEnv;
}

/** Config to a model: a provider, an address of one's own, or, with neither, the built-in offline planner. */
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
    // A dialect reads the text itself, thoughts and all.
    ...(wanted.dialect === undefined ? {} : { thinkTags: false }),
    // A template wants words where Chat may have null, and asks for the names of tools.
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
  /** Tools and calls go out as the wire has them; only the answer is read by the dialect. */
  readonly native?: boolean;
  /** The prompt is rendered here. */
  readonly rendered?: boolean;
  /** What a profile teaches beside the wire's own calls. */
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

/** What a server may send, as far as the settings say; the rest has its defaults. */
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

/** The model of commands without a session: made when something asks for it, if ever. */
export function lazyModel(config: Config, env: NodeJS.ProcessEnv) {
  let selected: Promise<SelectedModel> | undefined;
  return {
    model: async () => (await (selected ??= selectModel(config, env))).model,
    close: async () => (await selected)?.close(),
  };
}

/** Loaded only for models that need it: most have calls of their own. */
/** A profile that teaches a dialect beside the wire's own calls. */
async function speakForm(http: Model, form: ProfileForm | undefined): Promise<Model> {
  if (form === undefined || form === "native") return http;
  return (await import("../model/text.ts")).speakForm(http, form);
}

/** A profile's form goes over any wire; a dialect that the wire itself names comes before it. */
function withForm(wanted: WantedWire, form: ProfileForm): WantedWire {
  if (wanted.dialect !== undefined || wanted.rendered === true || form === "native") return wanted;
  if (!form.startsWith("text:")) return { ...wanted, form };
  return { ...wanted, name: form, wire: wanted.wire ?? "chat", dialect: form.slice("text:".length) };
}

async function speakDialect(http: Model, wanted: WantedWire, record: ModelRecord | undefined): Promise<Model> {
  const [{ createTextModel }, { findDialect }] = await Promise.all([
    import("../model/text.ts"),
    import("../dialect/index.ts"),
  ]);
  const { dialect = "auto", native = false } = wanted;
  if (typeof dialect === "string" && findDialect(dialect) === undefined)
    throw new UsageError(`there is no dialect '${dialect}' ('callgate dialects' lists them)`);
  const profile = record?.profile;
  return createTextModel(http, dialect, {
    native,
    teach: native && profile?.tools === false,
    ...(record?.writes === undefined || dialect !== record.dialect ? {} : { writes: record.writes }),
    ...(profile === undefined ? {} : { markers: profile.markers, startsIn: (request) => startOf(profile, request) }),
  });
}

/** Where answers begin: as the template opens its prompts, for what the request asked of thinking. */
function startOf({ opensThoughts }: ModelRecord["profile"], { reasoning }: ModelRequest): "reasoning" | "text" {
  const effort = reasoning?.effort;
  const opens = effort === undefined ? opensThoughts.default : effort === "none" ? opensThoughts.off : opensThoughts.on;
  return opens ? "reasoning" : "text";
}

/** `text:DIALECT` writes calls and results into Chat's messages; `chat+text:DIALECT` only reads the answer so. */
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

/** The one the settings name, else what a stranger on that wire can be expected to take. */
export function chooseProvider(
  config: Config,
  wire?: WireName,
): { readonly name: string; readonly provider: Provider } {
  if (config.provider !== undefined) {
    if (!Object.hasOwn(providers, config.provider)) {
      throw new UsageError(`there is no provider '${config.provider}': ${Object.keys(providers).join(", ")}`);
    }
    return { name: config.provider, provider: providers[config.provider]! };
  }
  return { name: "custom", provider: providerForWire(wire ?? "chat") };
}

/** An address as people have it at hand: that of the API, or of one request to it. */
function readAddress(address: string | undefined): string | undefined {
  if (address === undefined) return undefined;
  if (!/^https?:/i.test(address) || !URL.canParse(address))
    throw new UsageError(`'${address}' is no address of a model: give one such as http://127.0.0.1:8080/v1`);
  return address.replace(/\/(?:chat\/completions|responses|messages)\/?$/, "");
}

/** An address with a password in it is not written down. */
function withoutLogin(address: string | undefined): string | undefined {
  return address === undefined || !URL.canParse(address) || new URL(address).username !== "" ? undefined : address;
}

/** The models the settings' provider has, by its own list. */
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

/** A key that was set for us; a provider's own variable is looked at where the provider was named. */
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
