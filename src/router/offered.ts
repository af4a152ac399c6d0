/** Which of an engine's tools a model is offered: those of the model's profile, in the profile's form. */
import { defined } from "../base/json.ts";
import { chooseTools, createOffer, specOptions } from "../registry/offer.ts";
import { selectProfile, type OfferSettings, type Profile } from "../registry/profile.ts";
import { toToolSpecs, type SpecOptions } from "../registry/tool-spec.ts";
import type { ToolSpec } from "../spec/model.ts";
import type { Situation } from "../spec/tool.ts";
import type { EncodeOptions } from "../wire/codec.ts";
import type { EngineParts } from "./own-stages.ts";

/** The tools a model is offered now. */
export interface Offered {
  readonly profile: Profile;
  /** The same array as long as nothing has changed. */
  specs(): readonly ToolSpec[];
}

/** Options of `engine.toolsFor`. */
export interface ToolsForOptions extends SpecOptions, EncodeOptions, OfferSettings {
  /** The model's name. Its family decides which built-in tools are offered. */
  readonly model?: string;
}

type Parts = Pick<EngineParts, "options" | "registry">;

/** Combines the engine's own settings with those given for this model. */
export function offerTo(
  { options, registry }: Parts,
  situation: () => Situation,
  model: string | undefined,
  more: OfferSettings = {},
): Offered {
  const profile = selectProfile({ ...options.offer, ...more, ...defined({ model }) });
  const services = Object.keys(options.service ?? {});
  return { profile, specs: createOffer({ registry, profile, situation, services }) };
}

/** The list for one wire: the profile's tools, or those asked for by name. */
export function specsFor(
  { options, registry }: Parts,
  situation: () => Situation,
  { model, profile: name, features, config, profiles, experimental_supported_tools: extra, ...how }: ToolsForOptions,
): readonly ToolSpec[] {
  const { target: _target, quirks: _quirks, normalize, ...own } = how;
  const settings = defined({ model, profile: name, features, config, profiles, normalize });
  const profile = selectProfile({
    ...options.offer,
    ...settings,
    ...(extra === undefined ? {} : { experimental_supported_tools: extra }),
  });
  const tools = own.only === undefined ? chooseTools(registry.list(), profile) : registry.list();
  const services = Object.keys(options.service ?? {});
  return toToolSpecs(tools, { situation: situation(), ...specOptions(profile), services, ...own });
}
