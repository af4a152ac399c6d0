/** What one model sees: which tools, and in which form. Data first; a new model family is a new entry. */
import { nearest } from "../base/text.ts";
import type { ToolSpec } from "../spec/model.ts";
import type { AnyTool, Situation } from "../spec/tool.ts";
import { toToolSpecs } from "./tool-spec.ts";

export interface Profile {
  readonly name: string;
  /** Names of built-in tools; `*` at the end takes all that begin so. */
  readonly tools: readonly string[];
  /** Calls as the API has them, or written as text in a dialect. */
  readonly form: "native" | `text:${string}`;
  /** Freeform tools as such where the wire has them; otherwise as functions with one string. */
  readonly freeform: boolean;
  /** How a command's outcome is laid out for the model. */
  readonly layout: "plain" | "seed" | "codex" | "codex-json";
  /** Parameters that few models need are not told of. */
  readonly short: boolean;
  /** Tools that are not built in (the user's folders, MCP servers) are seen too. */
  readonly own: boolean;
}

const shared = { form: "native", freeform: true, layout: "codex", short: false, own: true } as const;

/** The seeds' sets by model family, today's codex, and those for any other model. */
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
  // Seed 000's own set: its shell with elevation, patches as whole files, results under stdout, stderr and exit_code.
  {
    ...shared,
    name: "seed",
    layout: "seed",
    freeform: false,
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
];

/** Model names to profiles, first match wins; `default` for the rest. */
const families: readonly (readonly [RegExp, string])[] = [
  [/^gpt-5-codex$/, "gpt-5-codex"],
  [/^codex-mini-latest$/, "codex-mini-latest"],
  [/^gpt-5$/, "gpt-5"],
  [/^(?:gpt-5[.-]|codex-|gpt-[6-9])/, "codex"],
];

/** Switches by the seeds' names. Left out: as the profile has it. */
export interface Features {
  readonly ShellTool?: boolean;
  readonly UnifiedExec?: boolean;
  readonly ApplyPatchFreeform?: boolean;
  readonly WebSearchRequest?: boolean;
  readonly ViewImageTool?: boolean;
  readonly PlanTool?: boolean;
}

export interface ProfileSettings {
  /** A profile's name; left out, the model's family decides. */
  readonly profile?: string;
  readonly model?: string;
  readonly features?: Features;
  /** Further built-in tools, by name (the seeds' experimental_supported_tools). */
  readonly experimental_supported_tools?: readonly string[];
  /** The user's own profiles; `from` names the one they start from. */
  readonly profiles?: Readonly<Record<string, Partial<Omit<Profile, "name">> & { readonly from?: string }>>;
}

/** TypeError, with the nearest name, for a profile that is not there. */
export function selectProfile(settings: ProfileSettings): Profile {
  const base = findProfile(settings.profile ?? familyOf(settings.model ?? ""), settings, 0);
  return withFeatures(base, settings.features ?? {}, settings.experimental_supported_tools ?? []);
}

export function familyOf(model: string): string {
  // Routers put the vendor before the name: openai/gpt-5.
  const bare = model.slice(model.lastIndexOf("/") + 1).toLowerCase();
  return families.find(([pattern]) => pattern.test(bare))?.[1] ?? "default";
}

function findProfile(name: string, settings: ProfileSettings, depth: number): Profile {
  const own = settings.profiles;
  if (own && Object.hasOwn(own, name) && depth < 10) {
    const { from = "default", ...rest } = own[name]!;
    const base =
      from === name ? profiles.find((profile) => profile.name === name) : findProfile(from, settings, depth + 1);
    return { ...(base ?? profiles[0]!), ...rest, name };
  }
  const found = profiles.find((profile) => profile.name === name);
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

/** The tools a profile shows, in name order. `builtins` are those it chooses among; the rest are the user's own. */
export function chooseTools(
  tools: readonly AnyTool[],
  profile: Profile,
  builtins: readonly string[],
): readonly AnyTool[] {
  const known = new Set(builtins);
  const shown = (name: string) =>
    profile.tools.some((wanted) => (wanted.endsWith("*") ? name.startsWith(wanted.slice(0, -1)) : name === wanted));
  return tools
    .filter(({ name }) => shown(name) || (profile.own && !known.has(name)))
    .toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

/** What goes into a request: the same tools give the same bytes. */
export function offerTools(
  tools: readonly AnyTool[],
  profile: Profile,
  builtins: readonly string[],
  situation?: Situation,
): readonly ToolSpec[] {
  return toToolSpecs(chooseTools(tools, profile, builtins), {
    ...(situation === undefined ? {} : { situation }),
    custom: profile.freeform && profile.form === "native",
    native: profile.form === "native",
    short: profile.short,
  });
}
