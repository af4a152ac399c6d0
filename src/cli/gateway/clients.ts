/** How each agent is pointed at a gateway: the lines to set, or the file to write, exactly as that agent reads them. */

export interface ClientSetup {
  /** The program that `gateway run` starts. */
  readonly program: string;
  readonly env: Readonly<Record<string, string>>;
  /** Arguments that come before the user's own. */
  readonly args: readonly string[];
  /** A file the agent reads, with its place as people know it. */
  readonly file?: { readonly path: string; readonly text: string };
  /** For agents that are told by that file alone: the variable that names another one for a single run. */
  readonly instead?: { readonly variable: string; readonly isFolder: boolean };
}

export interface GatewayAddress {
  readonly url: string;
  readonly key: string;
  readonly model: string;
  /** How many tokens the model can take, where that is known. Agents guess a large number for a model they do not know. */
  readonly contextWindow?: number;
}

export const clientNames = ["codex", "claude", "gemini", "opencode", "pi", "env"] as const;
export type ClientName = (typeof clientNames)[number];

const setups: Readonly<Record<ClientName, (at: GatewayAddress) => ClientSetup>> = {
  codex: ({ url, key, model, contextWindow: window }) => {
    const provider = `model_providers.callgate={name="Callgate",base_url="${url}/v1",env_key="CALLGATE_GATEWAY_KEY",wire_api="responses"}`;
    const size = window === undefined ? [] : ["-c", `model_context_window=${window}`];
    return {
      program: "codex",
      env: { CALLGATE_GATEWAY_KEY: key },
      args: ["-c", 'model_provider="callgate"', "-c", provider, "-m", model, ...size],
      file: {
        path: "~/.codex/config.toml",
        text: [
          `model = "${model}"`,
          'model_provider = "callgate"',
          ...(window === undefined ? [] : [`model_context_window = ${window}`]),
          "",
          "[model_providers.callgate]",
          'name = "Callgate"',
          `base_url = "${url}/v1"`,
          'env_key = "CALLGATE_GATEWAY_KEY"',
          'wire_api = "responses"',
        ].join("\n"),
      },
    };
  },
  claude: ({ url, key, model, contextWindow: window }) => {
    return {
      program: "claude",
      env: {
        ANTHROPIC_BASE_URL: url,
        ANTHROPIC_AUTH_TOKEN: key,
        ANTHROPIC_MODEL: model,
        ANTHROPIC_SMALL_FAST_MODEL: model,
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
        ...(window === undefined ? {} : { CLAUDE_CODE_MAX_CONTEXT_TOKENS: `${window}` }),
      },
      args: [],
    };
  },
  gemini: ({ url, key, model }) => {
    return {
      program: "gemini",
      env: { GOOGLE_GEMINI_BASE_URL: url, GEMINI_API_KEY: key, GEMINI_MODEL: model },
      args: [],
      // With an address of its own it asks which key to use, unless this says it; without a screen it gives up.
      file: {
        path: "~/.gemini/settings.json",
        text: JSON.stringify({ security: { auth: { selectedType: "gemini-api-key" } } }, null, 2),
      },
      instead: { variable: "GEMINI_CLI_SYSTEM_SETTINGS_PATH", isFolder: false },
    };
  },
  opencode: ({ url, key, model, contextWindow: window }) => {
    const limit = window === undefined ? {} : { limit: { context: window, output: answerTokens(window) } };
    const config = {
      $schema: "https://opencode.ai/config.json",
      model: `callgate/${model}`,
      provider: {
        callgate: {
          npm: "@ai-sdk/openai-compatible",
          name: "Callgate",
          options: { baseURL: `${url}/v1`, apiKey: key },
          models: { [model]: { name: model, ...limit } },
        },
      },
    };
    return {
      program: "opencode",
      env: { OPENCODE_CONFIG_CONTENT: JSON.stringify(config) },
      args: [],
      file: { path: "opencode.json", text: JSON.stringify(config, null, 2) },
    };
  },
  pi: ({ url, key, model, contextWindow: window = 128_000 }) => {
    const models = {
      providers: {
        callgate: {
          baseUrl: `${url}/v1`,
          apiKey: "CALLGATE_GATEWAY_KEY",
          api: "openai-responses",
          models: [
            {
              id: model,
              name: model,
              reasoning: true,
              input: ["text", "image"],
              contextWindow: window,
              maxTokens: answerTokens(window),
            },
          ],
        },
      },
    };
    return {
      program: "pi",
      env: { CALLGATE_GATEWAY_KEY: key },
      args: ["--provider", "callgate", "--model", model],
      file: { path: "~/.pi/agent/models.json", text: JSON.stringify(models, null, 2) },
      instead: { variable: "PI_CODING_AGENT_DIR", isFolder: true },
    };
  },
  env: ({ url, key }) => {
    return {
      program: "",
      env: {
        OPENAI_BASE_URL: `${url}/v1`,
        OPENAI_API_KEY: key,
        ANTHROPIC_BASE_URL: url,
        ANTHROPIC_AUTH_TOKEN: key,
        GOOGLE_GEMINI_BASE_URL: url,
        GEMINI_API_KEY: key,
      },
      args: [],
    };
  },
};

/** The longest answer for agents that want to know it: a quarter of what the model can take, and no more than most give. */
function answerTokens(window: number): number {
  return Math.min(16_384, Math.floor(window / 4));
}

export function setupFor(client: ClientName, at: GatewayAddress): ClientSetup {
  return setups[client](at);
}

/** What a person copies: variables in shell syntax, then the file, then the command. */
export function describeSetup(client: ClientName, setup: ClientSetup): readonly string[] {
  const variables = Object.entries(setup.env).map(([name, value]) => `export ${name}=${quote(value)}`);
  const file = setup.file === undefined ? [] : ["", `# ${setup.file.path}`, ...setup.file.text.split("\n")];
  const run = setup.program === "" ? [] : ["", [setup.program, ...setup.args.map(quote)].join(" ")];
  const lines = [
    ...(client === "opencode" ? [] : variables),
    ...file,
    ...(client === "codex" ? ["", "# then, or without the file:"] : []),
    ...run,
  ];
  return lines[0] === "" ? lines.slice(1) : lines;
}

function quote(text: string): string {
  return /^[\w./:@%+=,-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
