/**
 * Which model answers: routes from the name a client asks for to a chain of targets. A target that fails is left out
 * for a while; a conversation stays where it began, because caches and sealed state belong to one provider.
 */
import { defined } from "../base/json.ts";
import type { Model, ModelError, ModelRequest, Usage } from "../spec/model.ts";
import type { SchemaTarget } from "../schema/normalize.ts";
import { createHttpModel, type HttpModel } from "../model/http.ts";
import { findDialect, unknownDialect } from "../dialect/dialects.ts";
import { createTextModel } from "../model/text.ts";
import { type ProviderAddress, resolveProvider } from "../model/provider-model.ts";
import { costOf, type Price } from "../session/price.ts";
import type { WireName } from "../wire/codec.ts";
import { isWireName } from "../wire/codec.ts";
import { codecs } from "../wire/index.ts";

/** One model at one place. */
export interface TargetOptions {
  /** A name of the providers' table. Left out: whoever answers at `baseUrl`. */
  readonly provider?: string;
  /** The address, if it is not the provider's own. */
  readonly baseUrl?: string;
  /** Left out: the name that the client asked for. */
  readonly model?: string;
  /** `responses`, `chat`, `messages`, `gemini`, or `text:DIALECT` for a model that only writes text. */
  readonly wire?: string;
  /** Left out: from the provider's own variable. */
  readonly apiKey?: string;
  /** The schema rules that tools are lowered to, if not the provider's own. */
  readonly schema?: SchemaTarget;
  /** The reasoning effort to ask for, whatever the client says. */
  readonly reasoning?: string;
  /** What its tokens cost, for budgets in dollars. */
  readonly price?: Price;
}

/** Which models answer when a client asks for one of these names. */
export interface RouteOptions {
  /** The client's name for the model; `*` stands for any characters. */
  readonly match: string;
  /** Asked in this order: the next one when the one before fails. */
  readonly targets: readonly TargetOptions[];
  /** Asked instead for side questions: requests without tools that want a short answer (titles, summaries). */
  readonly small?: TargetOptions;
}

export interface Target {
  /** For people and journals: `openai gpt-5.5`. */
  readonly name: string;
  readonly provider?: string;
  readonly model: string;
  /** As it was given: `chat`, `text:hermes`. */
  readonly wire: string;
  /** The wire itself, where requests go out as they are and not as text. */
  readonly native?: WireName;
  readonly address: ProviderAddress;
  ask: Model["ask"];
  prepare(request: ModelRequest): ModelRequest;
  cost(usage: Usage): number;
}

export interface Upstreams {
  /** The targets to try for this request, the best first. Empty: no route takes the name. */
  choose(request: ModelRequest, conversation: string): readonly Target[];
  report(target: Target, conversation: string, failure: ModelError | undefined): void;
  /** The names that clients may ask for. */
  models(): readonly string[];
  close(): void;
}

export interface UpstreamOptions {
  readonly routes: readonly RouteOptions[];
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly now?: () => number;
}

/** Clients ask again themselves, and multiply what we would add: one quick second try, before anything was shown. */
const retries = 1;
const coolDownMs = 15_000;
const maxCoolDownMs = 300_000;
const maxRemembered = 10_000;

interface Health {
  failures: number;
  until: number;
}

export function createUpstreams(options: UpstreamOptions): Upstreams {
  const { routes, now = Date.now, env = process.env } = options;
  if (routes.length === 0) throw new TypeError("gateway: routes is empty; name at least one model");
  const opened = new Map<string, Target & { close(): void }>();
  const health = new Map<string, Health>();
  const homes = new Map<string, string>();
  const patterns = routes.map((route) => ({ route, pattern: toPattern(route.match) }));

  const open = (target: TargetOptions, asked: string): Target => {
    const model = target.model ?? asked;
    // Two routes may name the same model with different keys, efforts or prices.
    const key = JSON.stringify({ ...target, model });
    let known = opened.get(key);
    if (known === undefined) opened.set(key, (known = openTarget(target, model, env)));
    return known;
  };
  // A wrong provider, wire or dialect is told at the start and not to the first client.
  for (const { targets, small } of routes)
    for (const target of small === undefined ? targets : [...targets, small]) open(target, "default");
  const isWell = ({ name }: Target) => (health.get(name)?.until ?? 0) <= now();

  return {
    choose(request, conversation) {
      const found = patterns.find(({ pattern }) => pattern.test(request.model))?.route;
      if (found === undefined) return [];
      if (found.small !== undefined && isSideQuestion(request)) return [open(found.small, request.model)];
      const all = found.targets.map((target) => open(target, request.model));
      const home = homes.get(conversation);
      const well = all.filter(isWell);
      const usable = well.length > 0 ? well : all;
      return usable.toSorted((a, b) => Number(b.name === home) - Number(a.name === home));
    },
    report(target, conversation, failure) {
      if (failure === undefined) {
        health.delete(target.name);
        homes.delete(conversation);
        homes.set(conversation, target.name);
        for (const oldest of homes.keys()) {
          if (homes.size <= maxRemembered) break;
          homes.delete(oldest);
        }
        return;
      }
      if (!isTargetsFault(failure)) return;
      const failures = (health.get(target.name)?.failures ?? 0) + 1;
      const pause = failure.retryAfterMs ?? Math.min(coolDownMs * 2 ** (failures - 1), maxCoolDownMs);
      health.set(target.name, { failures, until: now() + pause });
    },
    models: () =>
      [
        ...new Set(routes.flatMap(({ match, targets }) => [match, ...targets.map(({ model }) => model ?? match)])),
      ].filter((name) => !name.includes("*")),
    close() {
      for (const target of opened.values()) target.close();
    },
  };
}

/** The place is in trouble, and another one may not be. A refused request would be refused there as well. */
export function isTargetsFault(failure: ModelError): boolean {
  return ["network", "overloaded", "rate_limit", "auth", "unknown_model", "billing"].includes(failure.type ?? "");
}

function openTarget(
  options: TargetOptions,
  model: string,
  env: Readonly<Record<string, string | undefined>>,
): Target & { close(): void } {
  const { provider, baseUrl, apiKey, wire, reasoning, price } = options;
  const dialect = wire?.startsWith("text:") ? wire.slice("text:".length) : undefined;
  const native = dialect === undefined ? wire : "chat";
  if (native !== undefined && !isWireName(native))
    throw new TypeError(`gateway: there is no wire '${wire}': responses, chat, messages, gemini or text:DIALECT`);
  const address = resolveProvider({ model, env, ...defined({ provider, baseUrl, apiKey, wire: native }) });
  if (!/^https?:$/.test(URL.canParse(address.baseUrl) ? new URL(address.baseUrl).protocol : ""))
    throw new TypeError(
      `gateway: '${address.baseUrl}' is not the address of a server such as http://127.0.0.1:8080/v1`,
    );
  const codec = codecs[address.wire];
  const http: HttpModel = createHttpModel({
    model,
    codec,
    baseUrl: address.baseUrl,
    headers: address.headers,
    retries,
    encode: { ...address.encode, ...defined({ target: options.schema }) },
    thinkTags: dialect === undefined && address.thinkTags,
    ...defined({ keyName: address.keyName }),
  });
  if (dialect !== undefined && findDialect(dialect) === undefined)
    throw new TypeError(`gateway: ${unknownDialect(dialect)} ('callgate dialects' lists them)`);
  const asking = dialect === undefined ? http : createTextModel(http, dialect);
  return {
    name: `${provider ?? new URL(address.baseUrl).host} ${model}`,
    ...defined({ provider }),
    model,
    wire: wire ?? address.wire,
    ...(dialect === undefined ? { native: address.wire } : {}),
    address,
    ask: (request, signal) => asking.ask(request, signal),
    prepare: (request) => ({
      ...request,
      model,
      ...(reasoning === undefined ? {} : { reasoning: { ...request.reasoning, effort: reasoning } }),
    }),
    cost: (usage) => (price === undefined ? 0 : costOf(usage, price)),
    close: () => http.close(),
  };
}

/** Titles, summaries of a few words, checks of the connection: no tools and a short answer. */
function isSideQuestion(request: ModelRequest): boolean {
  const hasCalls = request.input.some((item) => item.type === "call");
  return request.tools.length === 0 && (request.loaded?.length ?? 0) === 0 && !hasCalls && request.input.length <= 3;
}

function toPattern(match: string): RegExp {
  const parts = match.split("*").map((part) => part.replaceAll(/[.+?^${}()|[\]\\]/g, String.raw`\$&`));
  return new RegExp(`^${parts.join(".*")}$`);
}
