/** Every setting: its type, where else it can be set, and what it does. One row per key; docs/configuration.md is made from it. */
import type { Shape } from "../../base/shape.ts";
import { featuresShape, ownProfilesShape } from "../../registry/profile.ts";
import { toolsConfigShape } from "../../registry/tools-config.ts";

const hook: Shape = {
  fields: { command: "strings", tool: "string", timeout_ms: "number", watches: "boolean" },
  required: ["command"],
};

const allowance: Shape = { fields: { requests: "number", tokens: "number", usd: "number" } };
const gatewayTarget: Shape = {
  fields: {
    provider: "string",
    base_url: "string",
    model: "string",
    wire: "string",
    api_key_env: "string",
    schema: "string",
    reasoning: "string",
    price: { fields: { input: "number", cached: "number", output: "number" }, required: ["input", "output"] },
  },
};

export interface ConfigKey {
  readonly type: "string" | "number" | "boolean" | "strings" | "table";
  /** What a table holds. Left out if other code reads and checks it. */
  readonly shape?: Shape;
  /** Environment variable; the flag is the key with hyphens. */
  readonly env?: string;
  readonly oneOf?: readonly string[];
  readonly about: string;
}

export const configKeys = {
  provider: {
    type: "string",
    env: "CALLGATE_PROVIDER",
    about: "who runs the model: openai, anthropic, gemini, ollama, … or custom",
  },
  model: {
    type: "string",
    env: "CALLGATE_MODEL",
    about: "the model's name at the provider; 'offline' is the built-in planner",
  },
  base_url: { type: "string", env: "CALLGATE_BASE_URL", about: "the address, where it is not the provider's own" },
  wire: {
    type: "string",
    env: "CALLGATE_WIRE",
    about: "responses, chat, messages, gemini, text:DIALECT, chat+text:DIALECT or completions",
  },
  api_key_env: { type: "string", env: "CALLGATE_API_KEY_ENV", about: "the environment variable that holds the key" },
  approval: {
    type: "string",
    env: "CALLGATE_APPROVAL",
    oneOf: ["never", "on-request", "on-failure", "unless-trusted", "auto", "interactive", "disabled"],
    about: "when a person is asked",
  },
  sandbox: {
    type: "string",
    env: "CALLGATE_SANDBOX",
    oneOf: ["read-only", "workspace-write", "full-access", "none", "restricted"],
    about: "what commands may touch",
  },
  held: {
    type: "string",
    env: "CALLGATE_HELD",
    oneOf: ["off", "asked"],
    about: "asked: a command that would be asked about runs with its writes held back, and what it did is asked about",
  },
  undo: {
    type: "string",
    env: "CALLGATE_UNDO",
    oneOf: ["files", "all"],
    about: "what can be taken back: what file tools did, or every confined command too",
  },
  profile: { type: "string", env: "CALLGATE_PROFILE", about: "which tools the model sees, and in which form" },
  writable_roots: { type: "strings", about: "folders beside the workspace that may be changed" },
  network: { type: "strings", about: "hosts that may be contacted: 'host', 'host:port', '*.host', or '*' for all" },
  masked_paths: { type: "strings", about: "paths that may not be read, beside the usual credentials" },
  protected_paths: { type: "strings", about: "further names that nothing may change without a question" },
  asked_paths: { type: "strings", about: "further names that tools ask about before they write them" },
  flagged_paths: { type: "strings", about: "further names that the turn's diff marks as running later" },
  instructions: { type: "string", about: "told to the model after our own instructions" },
  instructions_max_bytes: {
    type: "number",
    about: "bytes of AGENTS.md files that the model is told (32768), the nearest first; 0: none",
  },
  context_window: {
    type: "number",
    env: "CALLGATE_CONTEXT_WINDOW",
    about: "tokens the model can take; the history is shortened before",
  },
  max_output_tokens: { type: "number", about: "tokens per answer" },
  answer_limits: {
    type: "table",
    shape: {
      fields: {
        calls: "number",
        argument_characters: "number",
        characters: "number",
        bytes: "number",
        seconds: "number",
      },
    },
    about:
      "what a model's server may send in one answer: calls (128), argument_characters of one call (1000000), characters (16000000), bytes (268435456), seconds (3600)",
  },
  reasoning_effort: { type: "string", about: "low, medium, high: where the model has it" },
  max_requests: { type: "number", about: "requests per turn" },
  max_calls: { type: "number", about: "tool calls per turn" },
  max_cost_usd: { type: "number", about: "US dollars per turn, by your prices table" },
  max_seconds: { type: "number", about: "seconds per turn" },
  tool_output_tokens: { type: "number", about: "tokens of one tool's output that the model is told (10000)" },
  tool_output_lines: { type: "number", about: "lines of it (2000)" },
  tool_output_bytes: { type: "number", about: "bytes of it (131072)" },
  truncation_policy: {
    type: "table",
    shape: { fields: { max_output_tokens: "number", max_lines: "number" } },
    about: "the same as tool_output_tokens and tool_output_lines, as one table",
  },
  tool_output_keep_bytes: {
    type: "number",
    about: "bytes of one output that are kept in a file for later reading (67108864)",
  },
  tools_dir: { type: "strings", about: "folders of your own tools" },
  tools_group: {
    type: "string",
    oneOf: ["path", "innermost"],
    about: "the group in the name of a tool in folders within folders: the whole path (path), or the last folder",
  },
  defaults: {
    type: "string",
    oneOf: ["own", "all", "none"],
    about: "whose schemas' default values are filled in: tools that run here (own), MCP servers' too (all), nobody's",
  },
  code_mode: {
    type: "boolean",
    env: "CALLGATE_CODE_MODE",
    about: "the model may write scripts that call tools: run_code, in a sandbox of its own (false)",
  },
  disabled_tools: { type: "strings", about: "tools that are not offered" },
  experimental_supported_tools: { type: "strings", about: "further built-in tools to offer, by name" },
  profiles: {
    type: "table",
    shape: ownProfilesShape,
    about: "profiles of your own: [profiles.mine]",
  },
  features: {
    type: "table",
    shape: featuresShape,
    about: "switches by name, for example UnifiedExec = true",
  },
  tools: {
    type: "table",
    shape: toolsConfigShape,
    about: "the built-in tools by codex's switches; each may also stand at the top of the file",
  },
  web_search: {
    type: "table",
    shape: { fields: { command: "strings", url: "string", mcp: "string", argument: "string" } },
    about:
      "where the web is searched when the provider has no search: command (query as its last word) or url (?q=, or {query} in it), both answering with JSON [{title, url, text}], or mcp = 'server/tool' (argument: what it calls the query)",
  },
  normalize: {
    type: "string",
    oneOf: ["basic"],
    about: "every schema gets a type, and integers become numbers, on every wire",
  },
  parallel_tool_calls: { type: "boolean", about: "may the model make several calls in one answer (true)" },
  environment: {
    type: "table",
    shape: {
      fields: {
        inherit: { oneOf: ["all", "core", "safe", "none"] },
        exclude: "strings",
        include_only: "strings",
        set: { each: "string" },
        ignore_default_excludes: "boolean",
      },
    },
    about: "what commands see of the environment",
  },
  command_limits: {
    type: "table",
    shape: {
      fields: {
        processes: "number",
        memory_bytes: "number",
        file_bytes: "number",
        open_files: "number",
        temp_bytes: "number",
      },
    },
    about:
      "what one command may use up: processes and threads (4096), memory_bytes (4/5 of the machine's), file_bytes of one file (8 GiB), open_files of one process (65536), temp_bytes (4 GiB); 0: no limit",
  },
  max_commands: {
    type: "number",
    about: "how many commands run at once (16, or 8 for each processor); more wait for their turn",
  },
  login_files: {
    type: "boolean",
    about: "whether your login files make the environment of commands (true); they are read once and kept for an hour",
  },
  prices: {
    type: "table",
    shape: {
      each: { fields: { input: "number", cached: "number", output: "number" }, required: ["input", "output"] },
    },
    about: 'US dollars per million tokens, by model: [prices."gpt-5*"]',
  },
  gateway: {
    type: "table",
    shape: {
      fields: {
        port: "number",
        enforce: "boolean",
        journal: "boolean",
        secret_files: "strings",
        hide_secrets: "boolean",
        budget: {
          fields: {
            conversation: allowance,
            day: allowance,
            key: allowance,
            max_repeats: "number",
          },
        },
        routes: {
          list: {
            fields: { match: "string", targets: { list: gatewayTarget }, small: gatewayTarget },
            required: ["match", "targets"],
          },
        },
      },
    },
    about: "the gateway: [[gateway.routes]] from the names clients ask for to models, budgets",
  },
  mcp_login_store: {
    type: "string",
    env: "CALLGATE_MCP_LOGIN_STORE",
    oneOf: ["auto", "file", "keyring"],
    about: "where logins of MCP servers are kept; auto: in the keyring where there is one, else in files of mode 0600",
  },
  mcpServers: { type: "table", about: "MCP servers, in the common form" },
  hooks: {
    type: "table",
    shape: { fields: { before: { list: hook }, after: { list: hook } } },
    about: "commands run before and after calls: [[hooks.before]]",
  },
} as const satisfies Readonly<Record<string, ConfigKey>>;

export type ConfigName = keyof typeof configKeys;

export function shapeOf(key: ConfigKey): Shape {
  return key.shape ?? (key.oneOf === undefined ? key.type : { oneOf: key.oneOf });
}
