/**
 * The table of switches that codex calls ToolsConfig, accepted as it is: one object says which
 * built-in tools there are.
 */
import type { Shape } from "../base/shape.ts";

/** Which tools a session has, in codex's words. */
export interface ToolsConfig {
  /** Offers `update_plan`. */
  readonly include_plan_tool?: boolean;
  /** Offers `apply_patch`. */
  readonly include_apply_patch_tool?: boolean;
  /** Offers `view_image`. */
  readonly include_view_image_tool?: boolean;
  /** Offers `web_search`. */
  readonly tools_web_search_request?: boolean;
  /** The same as `tools_web_search_request`. */
  readonly web_search_request?: boolean;
  /** The same as `shell_type: "unified_exec"`. */
  readonly use_experimental_streamable_shell_tool?: boolean;
  /** Which tool runs commands. */
  readonly shell_type?: ShellType;
  /**
   * `freeform`: text under a grammar, if the wire has grammars. `function`: one string. `files`: whole
   * files as JSON.
   */
  readonly apply_patch_tool_type?: PatchType;
  /** Further built-in tools, by name. */
  readonly experimental_supported_tools?: readonly string[];
  /** The engine's approval mode and sandbox, under any of their names. */
  readonly approval_policy?: string;
  /** The sandbox, under any of its names. */
  readonly sandbox_policy?: string;
}

type ShellType = "default" | "shell" | "shell_command" | "local" | "unified_exec" | "disabled";
type PatchType = "freeform" | "function" | "files";

const shellTools: Readonly<Record<ShellType, readonly string[] | undefined>> = {
  default: ["shell"],
  shell: ["shell"],
  shell_command: ["shell_command"],
  local: ["local_shell"],
  unified_exec: ["exec_command", "write_stdin"],
  disabled: [],
};

export const toolsConfigFields = {
  include_plan_tool: "boolean",
  include_apply_patch_tool: "boolean",
  include_view_image_tool: "boolean",
  tools_web_search_request: "boolean",
  web_search_request: "boolean",
  use_experimental_streamable_shell_tool: "boolean",
  shell_type: { oneOf: Object.keys(shellTools) },
  apply_patch_tool_type: { oneOf: ["freeform", "function", "files"] },
  experimental_supported_tools: "strings",
  approval_policy: "string",
  sandbox_policy: "string",
} satisfies Record<keyof ToolsConfig, Shape>;

export const toolsConfigShape: Shape = { fields: toolsConfigFields };

/** What the switches change in a profile. */
interface Choice {
  readonly tools: readonly string[];
  readonly freeform: boolean;
  readonly forms?: Readonly<Record<string, string>>;
}

const everyShell = new Set(Object.values(shellTools).flatMap((names) => names ?? []));

export function applyToolsConfig<Chosen extends Choice>(profile: Chosen, config: ToolsConfig): Chosen {
  const streamable = config.use_experimental_streamable_shell_tool === true ? "unified_exec" : undefined;
  const shell = shellTools[config.shell_type ?? streamable ?? "default"];
  const isShellStated = config.shell_type !== undefined || streamable !== undefined;
  const patchType = config.apply_patch_tool_type;
  const wanted: readonly (readonly [string, boolean | undefined])[] = [
    ["update_plan", config.include_plan_tool],
    ["apply_patch", config.include_apply_patch_tool ?? (patchType === undefined ? undefined : true)],
    ["view_image", config.include_view_image_tool],
    ["web_search", config.tools_web_search_request ?? config.web_search_request],
  ];
  const off = new Set(wanted.filter(([, on]) => on === false).map(([name]) => name));
  const tools = [
    ...profile.tools.filter((name) => !off.has(name) && !(isShellStated && everyShell.has(name))),
    ...(isShellStated ? (shell ?? []) : []),
    ...wanted.filter(([, on]) => on === true).map(([name]) => name),
    ...(config.experimental_supported_tools ?? []),
  ];
  return { ...profile, tools: [...new Set(tools)], ...patchForm(profile, patchType) };
}

function patchForm(profile: Choice, type: PatchType | undefined): Partial<Choice> {
  if (type === undefined) return {};
  const { apply_patch: _form, ...others } = profile.forms ?? {};
  if (type === "freeform") return { freeform: true, forms: others };
  return { forms: { ...others, apply_patch: type } };
}
