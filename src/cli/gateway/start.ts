/** Starts a gateway from settings and flags. */
import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { errorCode } from "../../base/error.ts";
import { defined } from "../../base/json.ts";
import { stateDir } from "../../base/paths.ts";
import { nearest } from "../../base/text.ts";
import { type SandboxName, toSettings } from "../../gate/modes.ts";
import { createPolicy } from "../../gate/options.ts";
import type { Policy } from "../../gate/policy.ts";
import {
  createKey,
  createPolicyJudge,
  type Gateway,
  type GatewayOptions,
  openKeyFile,
  type RequestRecord,
  type RouteOptions,
  secretsOf,
  startGateway,
  type TargetOptions,
} from "../../gateway/index.ts";
import { hashKey } from "../../gateway/keys.ts";
import { createTelemetry } from "../../result/telemetry.ts";
import type { Config } from "../config/config.ts";
import { say, UsageError } from "../io.ts";
import { readRules } from "../policy/rules.ts";
import { runLaterOptions } from "../policy/run-later.ts";
import { chooseProvider, isOfflineConfig, listModelsOf, locateModel, missingKey } from "../select-model.ts";
import { createSearch } from "../web-search.ts";

export interface GatewaySettings {
  readonly port?: number;
  readonly enforce?: boolean;
  readonly journal?: boolean;
  readonly secret_files?: readonly string[];
  readonly hide_secrets?: boolean;
  readonly budget?: GatewayOptions["budget"] & { readonly max_repeats?: number };
  readonly routes?: readonly RouteSettings[];
}

interface TargetSettings {
  readonly provider?: string;
  readonly base_url?: string;
  readonly model?: string;
  readonly wire?: string;
  readonly api_key_env?: string;
  readonly schema?: NonNullable<TargetOptions["schema"]>;
  readonly reasoning?: string;
  readonly price?: NonNullable<TargetOptions["price"]>;
}

interface RouteSettings {
  readonly match: string;
  readonly targets: readonly TargetSettings[];
  readonly small?: TargetSettings;
}

export interface StartOptions {
  readonly config: Config;
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
  readonly port?: number;
  readonly host?: string;
  readonly noKey?: boolean;
  readonly enforce?: boolean;
  readonly smallModel?: string;
  readonly onRequest?: (record: RequestRecord) => void;
}

/** Where a gateway listens by default, so that clients need to be set up only once. */
export const defaultPort = 8317;

export interface StartedGateway extends Gateway {
  /** Calls that the policy refuses do not reach the client. */
  readonly enforce: boolean;
  /** The key that clients need. Undefined if they need none. */
  readonly key?: string;
  /** The name that clients may ask for, for the lines that set them up. */
  readonly model: string;
}

export async function startFromSettings(options: StartOptions): Promise<StartedGateway> {
  const { cwd, env, smallModel } = options;
  const config = await withAddress(options.config, env);
  // Checked against its shape when the settings were read.
  const settings = (config.gateway ?? {}) as GatewaySettings;
  const offline = await offlineTarget(config);
  const routes = toRoutes(config, settings, env, offline?.target, smallModel);
  const dir = stateDir(env);
  const enforce = options.enforce ?? settings.enforce ?? false;
  const key = options.noKey === true ? undefined : createKey();
  /** The key of this start. Its name is always the same, so that budgets go on after a restart. */
  const ownKey = key === undefined ? [] : [{ name: "started", hash: hashKey(key), createdAt: "" }];
  const keyFile = openKeyFile(keyPath(env));
  const { max_repeats: maxRepeats, ...budget } = settings.budget ?? {};
  const gateway = await startChecked({
    routes,
    keys: key === undefined ? "none" : () => [...ownKey, ...keyFile.list()],
    ...defined({ port: options.port ?? settings.port }),
    stateDir: dir,
    journal: settings.journal !== false,
    secret: readSecret(join(dir, "gateway", "secret")),
    secrets:
      settings.hide_secrets === false ? [] : [...secretsOf(env), ...fileSecrets(settings.secret_files ?? [], cwd)],
    budget: { ...budget, ...defined({ maxRepeats }) },
    judge: createPolicyJudge(await policyFor(config, cwd, env)),
    enforce,
    env,
    onError: (error) => say(`callgate: a request failed: ${error instanceof Error ? error.message : String(error)}`),
    ...defined({ telemetry: await createTelemetry() }),
    ...defined({ host: options.host, onRequest: options.onRequest, search: createSearch(config, cwd) }),
  });
  return {
    ...gateway,
    enforce,
    ...defined({ key }),
    model: config.model ?? routes.find(({ match }) => !match.includes("*"))?.match ?? "default",
    async close() {
      await gateway.close();
      await offline?.close();
    },
  };
}

/**
 * The settings with the address that the model's name tells, as a session would find it. A name that tells none, or a
 * key that is missing, is said here and not to the first client, which would only see that nothing can be reached.
 */
async function withAddress(given: Config, env: NodeJS.ProcessEnv): Promise<Config> {
  const { config, record } = await locateModel(given, env);
  const missing = isOfflineConfig(config) ? undefined : missingKey(config, env);
  if (missing !== undefined)
    throw new UsageError(
      `${chooseProvider(config).provider.title} needs a key, and ${missing} is not set: export it, or name another model`,
    );
  if (record === undefined || config.wire !== undefined || typeof record.dialect !== "string") return config;
  return { ...config, wire: `text:${record.dialect}` };
}

/**
 * Before an agent is started: agents that cannot reach their model wait and try again for minutes without a word.
 * Routes of the settings have targets to fall back on, so they are left to the gateway. The answer is how many tokens
 * the model can take, if the settings or the server say so.
 */
export async function lookForModel({ config, env }: Pick<StartOptions, "config" | "env">): Promise<number | undefined> {
  const { routes = [] } = (config.gateway ?? {}) as GatewaySettings;
  if (routes.length > 0 || isOfflineConfig(config)) return config.context_window;
  const located = await withAddress(config, env);
  const listed = await listModelsOf(located, env);
  if (!listed.ok && listed.reason === "unreachable")
    throw new UsageError(`${listed.detail}: start the model's server, or give its address with --base-url`);
  const { model = "" } = located;
  const window = config.context_window ?? (listed.ok ? listed.windows.get(model) : undefined);
  if (!listed.ok || listed.models.length === 0 || listed.models.includes(model)) return window;
  const [guess] = nearest(model, listed.models, 1);
  const few = listed.models.slice(0, 5).join(", ");
  const hint =
    guess === undefined ? `it has ${few}${listed.models.length > 5 ? ", …" : ""}` : `did you mean '${guess}'?`;
  say(`callgate: the server does not list a model '${model}'; ${hint}`);
  return window;
}

/** The client asks its own user and has its own sandbox or none, so the only decision left here is a refusal. */
async function policyFor(config: Config, cwd: string, env: NodeJS.ProcessEnv): Promise<Policy> {
  return createPolicy({
    settings: { ...toSettings(undefined, config.sandbox as SandboxName | undefined), approval: "on-request" },
    workspace: cwd,
    confinement: { name: "the client's own", available: false },
    ...runLaterOptions(config, cwd, env),
    rules: await readRules(cwd, env),
  });
}

/** The user has to correct what is wrong with the settings. */
function startChecked(options: GatewayOptions): Promise<Gateway> {
  return startGateway({ port: defaultPort, ...options }).catch((error: unknown) => {
    const code = errorCode(error);
    const isInUse = code === "EADDRINUSE";
    if (isInUse && options.port === undefined) return startGateway({ ...options, port: 0 });
    if (isInUse) throw new UsageError(`port ${options.port} is taken: choose another with --port`);
    if (code === "ENOTFOUND" || code === "EADDRNOTAVAIL" || code === "EACCES")
      throw new UsageError(
        `cannot listen on ${options.host ?? "127.0.0.1"}: ${error instanceof Error ? error.message : code}`,
      );
    throw error instanceof TypeError ? new UsageError(error.message) : error;
  });
}

export function keyPath(env: NodeJS.ProcessEnv): string {
  return join(stateDir(env), "gateway", "keys.json");
}

function toRoutes(
  config: Config,
  settings: GatewaySettings,
  env: NodeJS.ProcessEnv,
  offline: TargetOptions | undefined,
  smallModel: string | undefined,
): readonly RouteOptions[] {
  const main: TargetOptions = offline ?? {
    ...defined({ provider: config.provider, baseUrl: config.base_url, model: config.model, wire: config.wire }),
    ...defined({ apiKey: keyFrom(config.api_key_env, env) ?? (env["CALLGATE_API_KEY"] || undefined) }),
  };
  const small: TargetOptions | undefined = smallModel === undefined ? undefined : { ...main, model: smallModel };
  const own = (settings.routes ?? []).map((route) => toRoute(route, env));
  const isNamed = config.model !== undefined || config.base_url !== undefined || config.provider !== undefined;
  // Whatever name a client asks for goes to the model that was named. Routes of the settings come first.
  const any: RouteOptions = { match: "*", targets: [main], ...defined({ small }) };
  const named: readonly RouteOptions[] = config.model === undefined ? [] : [{ ...any, match: config.model }];
  return own.length > 0 && !isNamed ? own : [...own, ...named, any];
}

function toRoute({ match, targets, small }: RouteSettings, env: NodeJS.ProcessEnv): RouteOptions {
  if (targets.length === 0) throw new UsageError(`gateway.routes: '${match}' has no targets`);
  const open = (target: TargetSettings): TargetOptions => {
    const { base_url: baseUrl, api_key_env: keyEnv, ...rest } = target;
    return { ...rest, ...defined({ baseUrl, apiKey: keyFrom(keyEnv, env) }) };
  };
  return { match, targets: targets.map(open), ...(small === undefined ? {} : { small: open(small) }) };
}

function keyFrom(name: string | undefined, env: NodeJS.ProcessEnv): string | undefined {
  if (name === undefined) return undefined;
  const value = env[name];
  if (value === undefined || value === "")
    throw new UsageError(`the variable ${name}, which should hold a key, is not set`);
  return value;
}

/** Without a model the built-in planner answers, so that everything can be tried. */
async function offlineTarget(
  config: Config,
): Promise<{ readonly target: TargetOptions; close(): Promise<void> } | undefined> {
  const settings = (config.gateway ?? {}) as GatewaySettings;
  const hasRoutes = (settings.routes?.length ?? 0) > 0;
  if (!isOfflineConfig(config) || (config.model !== "offline" && hasRoutes)) return undefined;
  const { createOfflineModel, serveModel } = await import("../../testing/index.ts");
  const dialect = config.wire?.startsWith("text:") ? config.wire.slice("text:".length) : undefined;
  const server = await serveModel(createOfflineModel(), defined({ dialect }));
  return {
    target: { baseUrl: server.baseUrl, model: "offline", ...defined({ wire: config.wire }) },
    close: server.close,
  };
}

/** The same in every start, so that what clients carry for us is still valid after a restart. */
function readSecret(path: string): string {
  if (existsSync(path)) return readFileSync(path, "utf8").trim();
  const secret = randomBytes(32).toString("hex");
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  writeFileSync(path, `${secret}\n`, { mode: 0o600 });
  return secret;
}

/** Each line of a credentials file, and each value behind `=` or `:` in it. */
function fileSecrets(files: readonly string[], cwd: string): readonly string[] {
  return files.flatMap((file) => {
    const path = resolve(cwd, file);
    if (!existsSync(path)) throw new UsageError(`gateway.secret_files: there is no file ${path}`);
    return readFileSync(path, "utf8")
      .split("\n")
      .flatMap((line) => {
        const value = /^[\w.-]+\s*[=:]\s*["']?(.+?)["']?\s*$/.exec(line.trim())?.[1] ?? line.trim();
        return value.length >= 12 && !value.startsWith("#") ? [value] : [];
      });
  });
}
