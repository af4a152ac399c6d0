/**
 * Which variables a command gets. It is an allow-list: a name that is not known to be harmless stays
 * out, and a name that looks like a secret stays out even if everything else is inherited. Codex's
 * names for the settings work too.
 */
import { isObject } from "../base/json.ts";

/** Which variables of the engine's own environment a command gets. */
export interface EnvironmentPolicy {
  /**
   * `safe` (the default): names known to be harmless, for people and tool chains. `core`: the dozen that
   * a shell needs. `all`: everything except secrets. `none`: nothing.
   */
  readonly inherit?: "safe" | "core" | "all" | "none";
  /** True: names that look like secrets are kept. */
  readonly ignoreDefaultExcludes?: boolean;
  /** Names to leave out, with `*` and `?`, in any case. */
  readonly exclude?: readonly string[];
  /** Variables that are always set, before `includeOnly` applies. */
  readonly set?: Readonly<Record<string, string>>;
  /** If not empty, only these names remain in the end. */
  readonly includeOnly?: readonly string[];
}

type Variables = Readonly<Record<string, string | undefined>>;

const core = ["PATH", "SHELL", "TMPDIR", "TEMP", "TMP", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "USER"];

/** Programs on Windows do not start without these. */
const windowsCore = [
  ..."PATHEXT SYSTEMROOT SYSTEMDRIVE WINDIR COMSPEC USERNAME USERDOMAIN USERPROFILE HOMEDRIVE HOMEPATH APPDATA".split(
    " ",
  ),
  ..."LOCALAPPDATA PROGRAMDATA PROGRAMFILES PROGRAMFILES(X86) COMMONPROGRAMFILES NUMBER_OF_PROCESSORS".split(" "),
];

/** Variables for where tool chains are and how text looks. None of them makes a program run other code. */
const harmless = [
  ..."LANGUAGE LC_* TZ TERM COLORTERM NO_COLOR FORCE_COLOR CI COLUMNS LINES HOSTNAME PWD".split(" "),
  ..."XDG_CONFIG_HOME XDG_CACHE_HOME XDG_DATA_HOME XDG_STATE_HOME XDG_DATA_DIRS XDG_CONFIG_DIRS".split(" "),
  ..."NVM_DIR NVM_BIN FNM_DIR FNM_MULTISHELL_PATH VOLTA_HOME PNPM_HOME COREPACK_HOME BUN_INSTALL DENO_DIR NODE_ENV".split(
    " ",
  ),
  ..."PYENV_ROOT PYENV_VERSION VIRTUAL_ENV CONDA_PREFIX CONDA_DEFAULT_ENV UV_CACHE_DIR PIP_CACHE_DIR POETRY_HOME".split(
    " ",
  ),
  ..."CARGO_HOME RUSTUP_HOME RUSTUP_TOOLCHAIN GOPATH GOROOT GOCACHE GOMODCACHE GOOS GOARCH JAVA_HOME JDK_HOME".split(
    " ",
  ),
  ..."MAVEN_HOME GRADLE_HOME GRADLE_USER_HOME SDKMAN_DIR ANDROID_HOME ANDROID_SDK_ROOT DOTNET_ROOT RBENV_ROOT".split(
    " ",
  ),
  ..."GEM_HOME GEM_PATH PKG_CONFIG_PATH SSL_CERT_FILE SSL_CERT_DIR NIX_PATH NIX_PROFILES ASDF_DIR ASDF_DATA_DIR".split(
    " ",
  ),
];

/** Codex's three patterns, and other words that names of secrets contain. */
const secrets = [
  ..."*KEY* *SECRET* *TOKEN* *PASSWORD* *PASSWD* *PASSPHRASE* *CREDENTIAL* *_AUTH *_AUTH_* *COOKIE* *_PAT".split(" "),
  ..."DATABASE_URL *_DSN *CONNECTION_STRING* NPM_CONFIG__AUTH* PGPASSFILE NETRC".split(" "),
];

/**
 * Sockets of the host, through which others would act for the command. They are inherited only if everything
 * is inherited, secrets included.
 */
const sockets = [
  "SSH_AUTH_SOCK",
  "SSH_AGENT_PID",
  "GPG_AGENT_INFO",
  "DOCKER_HOST",
  "CONTAINER_HOST",
  "DBUS_*",
  "XDG_RUNTIME_DIR",
];

/** Whether the name of a variable says that it holds a key. */
export const isSecretName: (name: string) => boolean = matcher(secrets);

/** The order is codex's: inherit, leave out secrets, exclude, set, include only. */
export function commandEnvironment(from: Variables, policy: EnvironmentPolicy = {}): Record<string, string> {
  const { inherit = "safe", ignoreDefaultExcludes = false, exclude = [], set = {}, includeOnly = [] } = policy;
  const isInherited = inherited(inherit);
  const isSecret = ignoreDefaultExcludes ? never : isSecretName;
  const isSocket = inherit === "all" && ignoreDefaultExcludes ? never : matcher(sockets);
  const isExcluded = matcher(exclude);
  const kept = Object.entries(from).filter(
    (entry): entry is [string, string] =>
      entry[1] !== undefined &&
      isInherited(entry[0]) &&
      !isSecret(entry[0]) &&
      !isSocket(entry[0]) &&
      !isExcluded(entry[0]),
  );
  const all = [...kept, ...Object.entries(set)];
  const isWanted = includeOnly.length === 0 ? always : matcher(includeOnly);
  return Object.fromEntries(all.filter(([name]) => isWanted(name)));
}

type NameTest = (name: string) => boolean;

const always: NameTest = () => true;
const never: NameTest = () => false;

function inherited(how: NonNullable<EnvironmentPolicy["inherit"]>): NameTest {
  if (how === "all") return always;
  if (how === "none") return never;
  const platform = process.platform === "win32" ? [...core, ...windowsCore] : core;
  return matcher(how === "core" ? platform : [...platform, ...harmless]);
}

function matcher(patterns: readonly string[]): NameTest {
  if (patterns.length === 0) return never;
  // Compared in upper case, because V8 takes milliseconds to compile an expression that ignores case.
  const capitals = patterns.map((pattern) => pattern.toUpperCase());
  const plain = new Set(capitals.filter((pattern) => !/[*?]/.test(pattern)));
  const source = capitals
    .filter((pattern) => !plain.has(pattern))
    .map((pattern) =>
      pattern
        .replaceAll(/[.+^${}()|[\]\\]/g, "\\$&")
        .replaceAll("*", ".*")
        .replaceAll("?", "."),
    );
  const expression = source.length === 0 ? undefined : new RegExp(`^(?:${source.join("|")})$`, "s");
  return (name) => plain.has(name.toUpperCase()) || expression?.test(name.toUpperCase()) === true;
}

/** The policy as a config file writes it. Undefined for anything else. */
export function toEnvironmentPolicy(value: Readonly<Record<string, unknown>>): EnvironmentPolicy | undefined {
  const inherit = value["inherit"];
  if (inherit !== undefined && !isOneOf(inherit)) return undefined;
  const exclude = names(value["exclude"]);
  const includeOnly = names(value["include_only"] ?? value["includeOnly"]);
  const set = value["set"];
  const ignore = value["ignore_default_excludes"] ?? value["ignoreDefaultExcludes"];
  if (exclude === undefined || includeOnly === undefined || (ignore !== undefined && typeof ignore !== "boolean"))
    return undefined;
  if (set !== undefined && !isVariables(set)) return undefined;
  return {
    ...(inherit === undefined ? {} : { inherit }),
    ...(ignore === undefined ? {} : { ignoreDefaultExcludes: ignore }),
    ...(set === undefined ? {} : { set }),
    exclude,
    includeOnly,
  };
}

function isOneOf(value: unknown): value is NonNullable<EnvironmentPolicy["inherit"]> {
  return value === "safe" || value === "core" || value === "all" || value === "none";
}

function names(value: unknown): readonly string[] | undefined {
  if (value === undefined) return [];
  return Array.isArray(value) && value.every((item) => typeof item === "string") ? value : undefined;
}

function isVariables(value: unknown): value is Readonly<Record<string, string>> {
  return isObject(value) && Object.values(value).every((item) => typeof item === "string");
}

/**
 * Keeps commands from asking, paging and colouring when nobody answers or looks. It is laid over the
 * inherited environment; what a request sets itself comes on top.
 */
export const quietEnv: Readonly<Record<string, string>> = {
  GIT_TERMINAL_PROMPT: "0",
  GIT_PAGER: "cat",
  GH_PAGER: "cat",
  GH_PROMPT_DISABLED: "1",
  PAGER: "cat",
  SSH_ASKPASS_REQUIRE: "never",
  DEBIAN_FRONTEND: "noninteractive",
  PIP_NO_INPUT: "1",
  NO_COLOR: "1",
  TERM: "dumb",
};

/** The same for a terminal, where programs may ask and use colours. */
export const terminalEnv: Readonly<Record<string, string>> = {
  PAGER: "cat",
  GIT_PAGER: "cat",
  GH_PAGER: "cat",
  TERM: "xterm-256color",
};
