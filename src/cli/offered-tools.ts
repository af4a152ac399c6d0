/** Which tools a model is shown: the settings' choice, or what its family was trained on. */
import { defined } from "../base/json.ts";
import { offerTools, selectProfile, type Features, type Profile, type ProfileSettings } from "../registry/profile.ts";
import type { Engine } from "../router/engine.ts";
import type { AnyTool } from "../index.ts";
import type { ToolSpec } from "../spec/model.ts";
import { testSyncTool } from "../testing/sync-tool.ts";
import { builtins } from "../tools/index.ts";
import type { Config } from "./config/config.ts";
import { UsageError } from "./io.ts";

const builtinNames = [...builtins, testSyncTool].map(({ name }) => name);

/** The profile the settings and the model's family choose. */
export function chooseProfile(config: Config, model: string | undefined): Profile {
  try {
    return selectProfile({
      ...defined({ profile: config.profile, model }),
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
export function createOffer(engine: Engine, profile: Profile, wire: string): () => readonly ToolSpec[] {
  let offered: readonly ToolSpec[] | undefined;
  engine.registry.onChange(() => (offered = undefined));
  const usable = (tool: AnyTool) => isHosted(tool, wire) || !needsService(tool);
  return () =>
    (offered ??= offerTools(engine.registry.list().filter(usable), profile, builtinNames, engine.situation()));
}

/** A tool that works through a function of the host's; the command has none to give. */
function needsService(tool: AnyTool): boolean {
  return typeof tool.metadata?.["needsService"] === "string";
}

/** Run by the provider itself: only the Responses wire carries such tools. */
function isHosted(tool: AnyTool, wire: string): boolean {
  return tool.native !== undefined && wire === "responses";
}
