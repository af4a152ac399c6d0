/**
 * The tools of a registry as one model is offered them: chosen by its profile, and made anew only if
 * something has changed.
 */
import { nearest } from "../base/text.ts";
import type { ToolSpec } from "../spec/model.ts";
import type { AnyTool, Situation } from "../spec/tool.ts";
import type { Profile } from "./profile.ts";
import type { Registry } from "./registry.ts";
import { toToolSpecs, type SpecOptions } from "./tool-spec.ts";

export interface OfferOptions extends Pick<SpecOptions, "services" | "preferServices"> {
  readonly registry: Pick<Registry, "list" | "onChange">;
  readonly profile: Profile;
  readonly situation: () => Situation;
}

/**
 * The list for a request. The same tools in the same situation give the same list, so that equal
 * requests have equal bytes and hit the prompt cache.
 */
export function createOffer({ registry, profile, situation, ...services }: OfferOptions): () => readonly ToolSpec[] {
  let offered: readonly ToolSpec[] | undefined;
  let made = "";
  registry.onChange(() => (offered = undefined));
  return () => {
    const now = situation();
    const key = JSON.stringify(now);
    if (offered === undefined || key !== made) offered = offerTools(registry.list(), profile, now, services);
    made = key;
    return offered;
  };
}

/**
 * The tools a profile shows, in name order: those it names, and those that are always offered. If the
 * description of one tool already declares the servers' tools (code mode), they are not listed a
 * second time.
 */
export function chooseTools(tools: readonly AnyTool[], profile: Profile): readonly AnyTool[] {
  const shown = (name: string) =>
    profile.tools.some((wanted) => (wanted.endsWith("*") ? name.startsWith(wanted.slice(0, -1)) : name === wanted));
  const areDeclared = tools.some(({ metadata }) => metadata?.["declaresServers"] === true);
  return tools
    .filter(({ name, offered }) => shown(name) || (profile.own && offered !== "by-profile"))
    .filter(({ origin }) => origin === undefined || !areDeclared)
    .toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

export function offerTools(
  tools: readonly AnyTool[],
  profile: Profile,
  situation?: Situation,
  services: Pick<SpecOptions, "services" | "preferServices"> = {},
): readonly ToolSpec[] {
  return toToolSpecs(chooseTools(tools, profile), {
    ...(situation === undefined ? {} : { situation }),
    ...specOptions(profile),
    ...services,
  });
}

/** The form in which a profile wants its tools to be described. */
export function specOptions({ form, freeform, short, forms, normalize }: Profile): SpecOptions {
  return {
    custom: freeform && form === "native",
    native: form.startsWith("native"),
    short,
    ...(forms === undefined ? {} : { forms }),
    ...(normalize === undefined ? {} : { normalize }),
  };
}

/** Throws a TypeError for a tool that was asked for by name and does not exist. */
export function checkWanted(wanted: readonly string[] | undefined, tools: readonly Pick<AnyTool, "name">[]): void {
  const names = tools.map(({ name }) => name);
  for (const name of wanted ?? []) {
    if (names.includes(name)) continue;
    const [guess] = nearest(name, names, 1);
    throw new TypeError(
      `experimental_supported_tools: there is no tool '${name}'${guess === undefined ? "" : `; did you mean '${guess}'?`}`,
    );
  }
}
