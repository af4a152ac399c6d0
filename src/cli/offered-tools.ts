/** Which tools a model is shown: the settings' choice, or what its family was trained on. */
import { defined } from "../base/json.ts";
import type { AnyTool, DeferOptions } from "../index.ts";
import { deferTools } from "../registry/search.ts";
import type { ToolSpec } from "../spec/model.ts";
import { checkWanted, chooseTools, createOffer } from "../registry/offer.ts";
import { selectProfile, type OfferSettings, type Profile } from "../registry/profile.ts";
import type { Engine } from "../router/engine.ts";
import { testSyncTool } from "../testing/sync-tool.ts";
import { byProfile, codingTools } from "../tools/coding.ts";
import { webSearchService } from "../tools/web-search.ts";
import type { Config } from "./config/config.ts";
import { UsageError } from "./io.ts";

/** The tools that are built into the command: those that the profile names, or all of them. */
export async function commandTools(profile?: Profile): Promise<readonly AnyTool[]> {
  const usual = byProfile([...codingTools, testSyncTool]);
  // The others are many, and most sessions want none of them.
  const wantsMore = profile?.tools.some((name) => !usual.some((tool) => tool.name === name)) ?? true;
  const more = wantsMore ? byProfile((await import("../tools/internal/index.ts")).internalTools) : [];
  const all = [...usual, ...more];
  return profile === undefined ? all : chooseTools(all, profile);
}

/** What the model is offered. `provider` runs it; `custom` if nobody knows what it supports. */
export function offerToModel(engine: Engine, profile: Profile, config: Config, provider: string) {
  const hasSearch = config.web_search !== undefined;
  return createOffer({
    registry: engine.registry,
    profile,
    situation: engine.situation,
    services: hasSearch ? [webSearchService] : [],
    // Your own server may speak the wire without having a search.
    preferServices: hasSearch && provider === "custom",
  });
}

/** The settings that say what is offered, checked by their shapes when they were read. */
function offerSettings(config: Config): OfferSettings {
  const { profile, features, tools, profiles, normalize, experimental_supported_tools: extra } = config;
  return defined({
    profile,
    features,
    config: tools,
    profiles,
    normalize,
    experimental_supported_tools: extra,
  }) as OfferSettings;
}

/** The profile the settings and the model's family choose. */
export async function chooseProfile(config: Config, model: string | undefined): Promise<Profile> {
  try {
    const settings = offerSettings(config);
    for (const { experimental_supported_tools: wanted } of [settings, settings.config ?? {}])
      if (wanted !== undefined) checkWanted(wanted, await commandTools());
    return selectProfile({ ...settings, ...defined({ model }) });
  } catch (error) {
    if (error instanceof TypeError) throw new UsageError(error.message);
    throw error;
  }
}

/** From these models on, their own APIs load what a search found. Other providers of the model may not know how. */
const loading: readonly (readonly [provider: string, wire: string, model: RegExp])[] = [
  ["openai", "responses", /^gpt-(?:5\.(?:[4-9]|\d\d)|[6-9]|\d\d)/],
  ["anthropic", "messages", /^claude-(?:opus|sonnet)-(?:4-[5-9]|[5-9])/],
];

/** Who is asked: the provider's name, the wire and the model's name. */
export interface AskedModel {
  readonly provider: string;
  readonly wire: string;
  readonly model: string;
}

/** What the model is offered, and what it has to search for. OpenAI's Chat Completions accepts 128 tools. */
export function deferForModel(list: () => readonly ToolSpec[], config: Config, { provider, wire, model }: AskedModel) {
  return deferTools(list, {
    form: searchForm(provider, wire, model),
    ...defined({ window: config.context_window, maxTools: wire === "chat" ? 128 : undefined }),
  });
}

/** How this model calls a tool that was found: under its own name if that is known to work. */
export function searchForm(provider: string, wire: string, model: string): NonNullable<DeferOptions["form"]> {
  const isKnown = loading.some(([one, over, name]) => one === provider && over === wire && name.test(model));
  return isKnown ? "loaded" : "call_tool";
}
