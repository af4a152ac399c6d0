import { offerTools, selectProfile, type Features, type Profile, type ProfileSettings } from "../registry/profile.ts";
import type { Engine } from "../router/engine.ts";
import type { ToolSpec } from "../spec/model.ts";
import { builtins } from "../tools/index.ts";
import type { Config } from "./config.ts";
import { UsageError } from "./io.ts";

const builtinNames = builtins.map(({ name }) => name);

/** The profile the settings and the model's family choose. */
export function chooseProfile(config: Config, model: string | undefined): Profile {
  try {
    return selectProfile({
      ...(config.profile === undefined ? {} : { profile: config.profile }),
      ...(model === undefined ? {} : { model }),
      ...(config.features === undefined ? {} : { features: config.features as Features }),
      ...(config.experimental_supported_tools === undefined
        ? {}
        : { experimental_supported_tools: config.experimental_supported_tools }),
      ...(config.profiles === undefined
        ? {}
        : { profiles: config.profiles as NonNullable<ProfileSettings["profiles"]> }),
    });
  } catch (error) {
    if (error instanceof TypeError) throw new UsageError(error.message);
    throw error;
  }
}

/** What the model is offered. Made anew only when the tools change, so that equal requests have equal bytes and cost nothing. */
export function createOffer(engine: Engine, profile: Profile): () => readonly ToolSpec[] {
  let offered: readonly ToolSpec[] | undefined;
  engine.registry.onChange(() => (offered = undefined));
  return () => (offered ??= offerTools(engine.registry.list(), profile, builtinNames, engine.situation()));
}
