/** MCP servers in the settings: the common `mcpServers` form, with limits and policies per server. */
import { defined, isObject } from "../base/json.ts";
import { distance, nearest } from "../base/text.ts";
import { readOAuth, type OAuthConfig } from "./auth/config.ts";
import { expandSettings } from "./expand.ts";

/** One server of the settings, checked. */
export interface ServerConfig {
  /** The name before the slash of its tools. */
  readonly name: string;
  /** How it is reached. */
  readonly transport: StdioConfig | HttpConfig;
  /** False: it is not started. */
  readonly enabled: boolean;
  /** Without it the session does not start. */
  readonly required: boolean;
  /** How long it may take to start. */
  readonly startTimeoutMs: number;
  /** How long the server may be silent during a call. */
  readonly callTimeoutMs: number;
  /** How long a call may take in total, however much progress it reports. */
  readonly totalTimeoutMs: number;
  /** Only these tools, by their own names; left out: all. */
  readonly enabledTools?: readonly string[];
  /** Tools that are left out, by their own names. */
  readonly disabledTools: readonly string[];
  /** Calls may run beside each other even if the server does not say that they only read. */
  readonly parallel: boolean;
  /** stdio servers run inside the sandbox. */
  readonly sandbox: boolean;
  /** The server may ask for a model's answer, if the host has a model for that. */
  readonly sampling: boolean;
  /**
   * The protocol version: `auto`, `legacy` or a revision. Left out: it is asked for over HTTP, and
   * `legacy` over stdio.
   */
  readonly protocol?: string;
  /** When its calls are asked about. */
  readonly approval: ServerApproval;
  /** How to log in, if the server wants a login. */
  readonly oauth?: OAuthConfig;
}

/** What the settings say about asking, for the whole server and for single tools. */
export interface ServerApproval {
  readonly byDefault?: ToolApproval;
  readonly tools: Readonly<Record<string, ToolApproval>>;
}

/** `auto` leaves it to the policy; `prompt` asks each time; `approve` never asks; `deny` never runs it. */
export type ToolApproval = "auto" | "prompt" | "approve" | "deny";

/** A server that is a program on this machine. */
export interface StdioConfig {
  readonly kind: "stdio";
  /** The program. */
  readonly command: string;
  /** Its arguments. */
  readonly args: readonly string[];
  /** In addition to the few variables that every server gets. */
  readonly env: Readonly<Record<string, string>>;
  /** Names taken from our own environment. */
  readonly envNames: readonly string[];
  /** The folder it runs in. Left out: where all servers start. */
  readonly cwd?: string;
}

/** A server at an address. */
export interface HttpConfig {
  readonly kind: "http";
  /** Its address. */
  readonly url: string;
  /** Sent with every request. */
  readonly headers: Readonly<Record<string, string>>;
  /** A token is never written in a settings file, only the name of the variable that holds it. */
  readonly bearerTokenEnv?: string;
  /** Headers whose values are in these variables. */
  readonly headerEnvs: Readonly<Record<string, string>>;
}

/** The servers found in the settings, and what was wrong with the others. */
export interface ReadServers {
  readonly servers: readonly ServerConfig[];
  readonly problems: readonly ServerProblem[];
}

/** An entry that does not describe a server. */
export interface ServerProblem {
  readonly server: string;
  readonly what: string;
  /** Written correctly, but a variable that it names is not set here. */
  readonly unset?: boolean;
}

const namePattern = /^[A-Za-z0-9_-]{1,64}$/;

/** Reads the settings of MCP servers. One wrong entry never affects another: it is left out and named. `env` holds the values for `${NAME}`. */
export function readServers(table: unknown, env: Readonly<Record<string, string | undefined>> = {}): ReadServers {
  const servers: ServerConfig[] = [];
  const problems: ServerProblem[] = [];
  for (const [name, entry] of Object.entries(isObject(table) ? table : {})) {
    const missing = isObject(entry) && entry["enabled"] !== false ? expandSettings(entry, env).missing : [];
    const read = isObject(entry) ? readServer(name, expandSettings(entry, env).entry) : "it must be a table";
    if (missing.length > 0) problems.push({ server: name, what: describeMissing(missing), unset: true });
    else if (typeof read === "string") problems.push({ server: name, what: read });
    else servers.push(read);
  }
  return { servers, problems };
}

function describeMissing(missing: readonly string[]): string {
  return `it names ${missing.map((variable) => `\${${variable}}`).join(", ")}, which is not set`;
}

function readServer(name: string, entry: Record<string, unknown>): ServerConfig | string {
  if (!namePattern.test(name)) return "a server's name is letters, digits, '_' and '-'";
  if ("bearer_token" in entry || "bearerToken" in entry)
    return "name the variable that holds the token (bearer_token_env_var), not the token";
  const wrong = misspelled(entry) ?? wrongType(entry);
  if (wrong !== undefined) return wrong;
  const transport = readTransport(entry);
  if (typeof transport === "string") return transport;
  const approval = readApproval(entry);
  if (typeof approval === "string") return approval;
  const oauth = readOAuth(entry);
  if (typeof oauth === "string") return oauth;
  const { protocol } = entry;
  const enabledTools = strings(entry["enabled_tools"] ?? entry["enabledTools"]);
  return {
    name,
    transport,
    enabled: entry["enabled"] !== false && entry["disabled"] !== true,
    required: entry["required"] === true,
    startTimeoutMs: readMs(entry, "startup_timeout", 30_000),
    callTimeoutMs: readMs(entry, "tool_timeout", 300_000),
    totalTimeoutMs: readMs(entry, "total_timeout", 3_600_000),
    ...defined({ enabledTools }),
    disabledTools: strings(entry["disabled_tools"] ?? entry["disabledTools"]) ?? [],
    parallel: entry["supports_parallel_tool_calls"] === true || entry["parallel"] === true,
    sandbox: entry["sandbox"] === true,
    sampling: entry["sampling"] === true,
    ...(typeof protocol === "string" ? { protocol } : {}),
    approval,
    ...oauth,
  };
}

/** The keys of an entry, here and in files of other programs that use the common form. */
export const serverKeys: readonly string[] =
  `command args env env_vars cwd url httpUrl headers http_headers env_http_headers bearer_token_env_var bearerTokenEnv enabled disabled required sandbox sampling parallel supports_parallel_tool_calls protocol enabled_tools enabledTools disabled_tools disabledTools default_tools_approval_mode tools oauth scopes type transport timeout trust description startup_timeout_ms startup_timeout_sec tool_timeout_ms tool_timeout_sec total_timeout_ms total_timeout_sec alwaysAllow autoApprove name`.split(
    " ",
  );

/** A word close to one of ours is a typing mistake. Any other belongs to the program for which the file was written. */
function misspelled(entry: Record<string, unknown>): string | undefined {
  for (const key of Object.keys(entry)) {
    const [guess] = serverKeys.includes(key) ? [] : nearest(key, serverKeys, 1);
    if (guess !== undefined && distance(key, guess) <= 2 && key.length > 3)
      return `there is no setting '${key}'; did you mean '${guess}'?`;
  }
  return undefined;
}

const switches = ["enabled", "disabled", "required", "sandbox", "sampling", "parallel", "supports_parallel_tool_calls"];
const tables = ["env", "headers", "http_headers", "env_http_headers"];
const lists = ["args", "env_vars", "enabled_tools", "enabledTools", "disabled_tools", "disabledTools", "scopes"];

/** `sandbox = "true"` or `disabled_tools = "rm"` would otherwise be ignored, so the server is left out instead. */
function wrongType(entry: Record<string, unknown>): string | undefined {
  const given = (key: string) => entry[key] !== undefined && entry[key] !== null;
  const notSwitch = switches.find((key) => given(key) && typeof entry[key] !== "boolean");
  if (notSwitch !== undefined) return `${notSwitch} is true or false`;
  const notList = lists.find((key) => given(key) && strings(entry[key]) === undefined);
  if (notList !== undefined) return `${notList} is a list of strings`;
  const notTable = tables.find((key) => given(key) && !isStringTable(entry[key]));
  return notTable === undefined
    ? undefined
    : `${notTable} is a table of strings: numbers and switches are written in quotes`;
}

const approvals = new Map<unknown, ToolApproval>([
  ["auto", "auto"],
  ["prompt", "prompt"],
  ["ask", "prompt"],
  ["approve", "approve"],
  ["allow", "approve"],
  ["deny", "deny"],
]);

/** If a mode is not understood, the server is left out, because the mode may have been meant to forbid something. */
function readApproval(entry: Record<string, unknown>): ServerApproval | string {
  const given = entry["default_tools_approval_mode"];
  const byDefault = approvals.get(given);
  const known = [...approvals.keys()].join(", ");
  if (given !== undefined && byDefault === undefined) return `default_tools_approval_mode is one of ${known}`;
  const tools: [string, ToolApproval][] = [];
  for (const [tool, settings] of Object.entries(isObject(entry["tools"]) ? entry["tools"] : {})) {
    const mode = isObject(settings) ? settings["approval_mode"] : undefined;
    const approval = approvals.get(mode);
    if (mode !== undefined && approval === undefined) return `tools.${tool}.approval_mode is one of ${known}`;
    if (approval !== undefined) tools.push([tool, approval]);
  }
  return { tools: Object.fromEntries(tools), ...defined({ byDefault }) };
}

function readTransport(entry: Record<string, unknown>): StdioConfig | HttpConfig | string {
  const { command, url, cwd } = entry;
  if (typeof command === "string" && command !== "") {
    return {
      kind: "stdio",
      command,
      args: strings(entry["args"]) ?? [],
      env: table(entry["env"]),
      envNames: strings(entry["env_vars"]) ?? [],
      ...(typeof cwd === "string" ? { cwd } : {}),
    };
  }
  const address = typeof url === "string" ? url : entry["httpUrl"];
  if (typeof address !== "string") return "it needs a command (stdio) or a url (HTTP)";
  if (!URL.canParse(address) || !/^https?:$/.test(new URL(address).protocol)) return `'${address}' is no http address`;
  const bearer = entry["bearer_token_env_var"] ?? entry["bearerTokenEnv"];
  return {
    kind: "http",
    url: address,
    headers: table(entry["http_headers"] ?? entry["headers"]),
    headerEnvs: table(entry["env_http_headers"]),
    ...(typeof bearer === "string" ? { bearerTokenEnv: bearer } : {}),
  };
}

function readMs(entry: Record<string, unknown>, name: string, otherwise: number): number {
  const ms = entry[`${name}_ms`];
  const seconds = entry[`${name}_sec`];
  if (typeof ms === "number" && ms > 0) return ms;
  return typeof seconds === "number" && seconds > 0 ? seconds * 1000 : otherwise;
}

function strings(value: unknown): readonly string[] | undefined {
  return Array.isArray(value) && value.every((entry) => typeof entry === "string") ? value : undefined;
}

/** What `wrongType` has seen to be one, or is not there. */
function table(value: unknown): Readonly<Record<string, string>> {
  return isStringTable(value) ? value : {};
}

function isStringTable(value: unknown): value is Readonly<Record<string, string>> {
  return isObject(value) && Object.values(value).every((held) => typeof held === "string");
}
