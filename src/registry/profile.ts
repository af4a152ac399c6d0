/** What one model sees: which tools, and in which form. Profiles are data, so a new model family is a new entry. */
import { checkOptions, type Shape } from "../base/shape.ts";
import { nearest } from "../base/text.ts";
import type { SchemaTarget } from "../schema/normalize.ts";
import { applyToolsConfig, toolsConfigShape, type ToolsConfig } from "./tools-config.ts";

/** Which built-in tools a family of models gets, and how it calls them. */
export interface Profile {
  readonly name: string;
  /** Names of built-in tools. A `*` at the end takes all names that begin so. */
  readonly tools: readonly string[];
  /** Calls in the API's own form, written as text in a dialect, or both at once, so that the model chooses. */
  readonly form: ProfileForm;
  /** Freeform tools are offered as such if the wire has them; otherwise as functions with one string. */
  readonly freeform: boolean;
  /** How a command's outcome is laid out for the model. */
  readonly layout: "plain" | "sections" | "codex" | "codex-json";
  /** Leaves out parameters that few models need. */
  readonly short: boolean;
  /** Tools that are not built in (from the user's folders or MCP servers) are shown too. */
  readonly own: boolean;
  /** Tools that are described in another of their forms: `{ apply_patch: "files" }`. */
  readonly forms?: Readonly<Record<string, string>>;
  /**
   * All schemas are first made to fit this target, whatever the provider requires later: `basic` turns
   * integers into numbers and gives every schema a type.
   */
  readonly normalize?: SchemaTarget;
}

/** How a model calls tools: by its API, written as text in a dialect, or whichever it chooses. */
export type ProfileForm = "native" | `text:${string}` | `native+text:${string}`;

const shared = { form: "native", freeform: true, layout: "codex", short: false, own: true } as const;

/** The sets of tools for model families, for today's codex, and for any other model. */
export const profiles: readonly Profile[] = [
  {
    ...shared,
    name: "default",
    layout: "plain",
    short: true,
    tools: ["shell_command", "read_file", "list_dir", "grep_files", "apply_patch", "update_plan", "view_image"],
  },
  { ...shared, name: "codex", tools: ["exec_command", "write_stdin", "apply_patch", "update_plan", "view_image"] },
  { ...shared, name: "gpt-5-codex", tools: ["shell_command", "apply_patch", "view_image"] },
  { ...shared, name: "codex-mini-latest", tools: ["local_shell", "view_image"] },
  { ...shared, name: "gpt-5", layout: "codex-json", tools: ["shell", "view_image"] },
  // For models that know few forms: a shell with elevation, patches as whole files, schemas of five types, and results
  // with a heading for each part.
  {
    ...shared,
    name: "basic",
    layout: "sections",
    freeform: false,
    forms: { apply_patch: "files" },
    normalize: "basic",
    tools: ["local_shell", "apply_patch", "view_image", "web_search"],
  },
  { ...shared, name: "internal", layout: "plain", tools: ["internal_*"] },
  {
    ...shared,
    name: "xml",
    layout: "plain",
    form: "text:xml",
    freeform: false,
    short: true,
    tools: ["shell_command", "read_file", "list_dir", "grep_files", "str_replace_editor", "update_plan"],
  },
  {
    ...shared,
    name: "dual",
    layout: "plain",
    form: "native+text:xml",
    freeform: false,
    short: true,
    tools: ["shell_command", "read_file", "list_dir", "grep_files", "str_replace_editor", "update_plan", "view_image"],
  },
];

/**
 * Maps model names, without vendor, date and `-latest`, to profiles. The first match wins; `default`
 * is for the rest.
 */
const families: readonly (readonly [RegExp, string])[] = [
  [/^gpt-5-codex(?:-mini)?$/, "gpt-5-codex"],
  [/^codex-mini$/, "codex-mini-latest"],
  [/^gpt-5(?:-(?:mini|nano|pro|chat))?$/, "gpt-5"],
  [/^(?:gpt-5[.-]|codex-|gpt-[6-9])/, "codex"],
];

/** Switches by name. Left out: as the profile has them. */
export interface Features {
  readonly ShellTool?: boolean;
  readonly UnifiedExec?: boolean;
  readonly ApplyPatchFreeform?: boolean;
  readonly WebSearchRequest?: boolean;
  readonly ViewImageTool?: boolean;
  readonly PlanTool?: boolean;
}

/** What decides the profile, for whichever model asks. */
export interface OfferSettings {
  /** A profile's name. Left out: the model's family decides. */
  readonly profile?: string;
  /** Switches for groups of built-in tools. */
  readonly features?: Features;
  /** The same switches as one table, by the names of codex's ToolsConfig. */
  readonly config?: ToolsConfig;
  /** Further built-in tools, by name. */
  readonly experimental_supported_tools?: readonly string[];
  /** The target that all schemas are made to fit. Left out: as the profile says. */
  readonly normalize?: SchemaTarget;
  /** The user's own profiles. `from` names the profile they start from. */
  readonly profiles?: Readonly<Record<string, Partial<Omit<Profile, "name">> & { readonly from?: string }>>;
}

/** What a profile is chosen by: the settings and the model. */
export interface ProfileSettings extends OfferSettings {
  /** The model's name, which decides the family. */
  readonly model?: string;
}

const flags = (...names: readonly string[]): Readonly<Record<string, Shape>> =>
  Object.fromEntries(names.map((name) => [name, "boolean"]));

export const featuresShape: Shape = {
  fields: flags("ShellTool", "UnifiedExec", "ApplyPatchFreeform", "WebSearchRequest", "ViewImageTool", "PlanTool"),
};

export const ownProfilesShape: Shape = {
  each: {
    fields: {
      from: "string",
      tools: "strings",
      form: "string",
      layout: { oneOf: ["plain", "sections", "codex", "codex-json"] },
      ...flags("freeform", "short", "own"),
      forms: { each: "string" },
      normalize: { oneOf: ["basic"] },
    },
  },
};

/** The shape of what an engine or a session may say about the tools it offers. */
export const offerShape: Shape = {
  fields: {
    profile: "string",
    features: featuresShape,
    config: toolsConfigShape,
    experimental_supported_tools: "strings",
    normalize: { oneOf: ["basic"] },
    profiles: ownProfilesShape,
  } satisfies Record<keyof OfferSettings, Shape>,
  noun: "option",
};

/** The tools and limits for a model. Throws a TypeError with the nearest name for a profile that does not exist. */
export function selectProfile(settings: ProfileSettings): Profile {
  const { model, ...offer } = settings;
  checkOptions("selectProfile", offer, offerShape);
  const base = findProfile(settings.profile ?? familyOf(model ?? ""), settings, 0);
  if (!/^(?:native|(?:native\+)?text:.+)$/.test(base.form))
    throw new TypeError(`the profile '${base.name}': form is 'native', 'text:DIALECT' or 'native+text:DIALECT'`);
  const featured = withFeatures(base, settings.features ?? {}, settings.experimental_supported_tools ?? []);
  const chosen = applyToolsConfig(featured, settings.config ?? {});
  return settings.normalize === undefined ? chosen : { ...chosen, normalize: settings.normalize };
}

/** The family of a model by its name; `default` if none is known. */
export function familyOf(model: string): string {
  // Routers put the vendor before the name: openai/gpt-5. Dates and `-latest` name a version, not a family.
  const bare = model.slice(model.lastIndexOf("/") + 1).toLowerCase();
  const name = bare.replace(/(?:-latest|-\d{4}-\d{2}-\d{2}|-\d{8}|:[\w.-]+)$/, "");
  return families.find(([pattern]) => pattern.test(name))?.[1] ?? "default";
}

function findProfile(name: string, settings: ProfileSettings, depth: number): Profile {
  const own = settings.profiles;
  if (own && Object.hasOwn(own, name) && depth < 10) {
    const { from = "default", ...rest } = own[name]!;
    const base =
      from === name ? profiles.find((profile) => profile.name === name) : findProfile(from, settings, depth + 1);
    return { ...(base ?? profiles[0]!), ...rest, name };
  }
  // 0.1 called the profile `basic` `seed`.
  const found = profiles.find((profile) => profile.name === (name === "seed" ? "basic" : name));
  if (found) return found;
  const names = [...Object.keys(own ?? {}), ...profiles.map((profile) => profile.name)];
  const [guess] = nearest(name, names, 1);
  throw new TypeError(
    `there is no profile '${name}'${guess === undefined ? "" : `; did you mean '${guess}'?`} (${names.join(", ")})`,
  );
}

const shells = ["shell", "shell_command", "local_shell", "exec_command", "write_stdin"];

function withFeatures(profile: Profile, features: Features, extra: readonly string[]): Profile {
  let tools = [...profile.tools, ...extra];
  const without = (names: readonly string[]) => tools.filter((name) => !names.includes(name));
  const toggle = (name: string, on: boolean | undefined) => {
    if (on !== undefined) tools = on ? [...tools, name] : without([name]);
  };
  if (features.UnifiedExec === true) tools = [...without(shells), "exec_command", "write_stdin"];
  if (features.UnifiedExec === false && tools.includes("exec_command")) tools = [...without(shells), "shell_command"];
  if (features.ShellTool === false) tools = without(shells);
  if (features.ShellTool === true && !tools.some((name) => shells.includes(name))) tools = [...tools, "shell_command"];
  toggle("web_search", features.WebSearchRequest);
  toggle("view_image", features.ViewImageTool);
  toggle("update_plan", features.PlanTool);
  if (features.ApplyPatchFreeform === true) toggle("apply_patch", true);
  return { ...profile, tools: [...new Set(tools)], freeform: features.ApplyPatchFreeform ?? profile.freeform };
}
