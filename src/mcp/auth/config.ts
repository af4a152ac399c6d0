/**
 * How a server's settings say who we are: by a login in a browser, with our own secret or key, or with
 * an identity token.
 */
import { isObject } from "../../base/json.ts";

/** How to log in to a server by OAuth. */
export interface OAuthConfig {
  /** The id that we are registered under. Left out: we register ourselves. */
  readonly clientId?: string;
  /** The variable that holds the client's secret, if it has one. */
  readonly clientSecretEnv?: string;
  /** The only authorization server to which our own credentials may go. Left out: the first that accepted them. */
  readonly issuer?: string;
  /** A document on the web that describes this client, for servers that take its address as the client's name. */
  readonly clientMetadataUrl?: string;
  /** Left out: a person logs in with a browser. Otherwise nobody is asked. */
  readonly grant?: "client_credentials" | "jwt_bearer";
  /** A private key in PEM that signs instead of a secret. */
  readonly privateKey?: SecretSource;
  /** A token that says who we, or the person, are. */
  readonly identity?: IdentityConfig;
  /** Tokens are bound to our key, so that nobody else can use them (RFC 9449). */
  readonly dpop?: boolean;
  /** What to ask for. Left out: what the server names. */
  readonly scopes?: readonly string[];
  /** The port that the browser is sent back to. Left out: any free one. */
  readonly callbackPort?: number;
}

/** How a company's own login is used for a server. */
export interface IdentityConfig {
  /** Where that token is read from. */
  readonly token: SecretSource;
  /**
   * The company's own login, which exchanges the token for one that the server accepts. Left out: the
   * server accepts this one.
   */
  readonly provider?: string;
  /** Its token endpoint, if its own documents do not name it. */
  readonly tokenEndpoint?: string;
  /** Our client id there. */
  readonly clientId?: string;
  /** The variable that holds our secret there, if we have one. */
  readonly clientSecretEnv?: string;
}

/** Where a secret is stored; never the secret itself. */
export type SecretSource =
  | { readonly env: string }
  | { readonly file: string }
  /** A program that prints it. */
  | { readonly command: readonly string[] };

/** The settings, or what is wrong with them. */
export function readOAuth(entry: Record<string, unknown>): { readonly oauth?: OAuthConfig } | string {
  const table = isObject(entry["oauth"]) ? entry["oauth"] : {};
  const wrong = wrongType(table);
  if (wrong !== undefined) return wrong;
  for (const secret of ["client_secret", "private_key", "identity_token", "identity_client_secret"])
    if (secret in table) return `name the variable or file that holds it (oauth.${secret}_env_var), not the ${secret}`;
  const grant = grants.get(table["grant_type"]);
  if (table["grant_type"] !== undefined && grant === undefined)
    return `oauth.grant_type is one of ${[...grants.keys()].join(", ")}`;
  const identity = readIdentity(table);
  const privateKey = readSource(table, "private_key");
  const text = (key: string) => (typeof table[key] === "string" ? table[key] : undefined);
  const scopes = stringList(entry["scopes"] ?? table["scopes"]);
  const port = table["callback_port"];
  const oauth = withoutMissing<OAuthConfig>({
    clientId: text("client_id"),
    clientSecretEnv: text("client_secret_env_var"),
    issuer: text("issuer"),
    clientMetadataUrl: text("client_metadata_url"),
    grant: identity === undefined ? (grant ?? undefined) : "jwt_bearer",
    privateKey,
    identity,
    dpop: table["dpop"] === true ? true : undefined,
    callbackPort: typeof port === "number" ? port : undefined,
    scopes,
  });
  if (oauth.grant === "jwt_bearer" && identity === undefined)
    return "oauth.grant_type 'jwt_bearer' needs an identity_token_env_var, identity_token_file or identity_token_command";
  if ((oauth.privateKey || oauth.grant === "client_credentials") && oauth.clientId === undefined)
    return "oauth needs a client_id to log in as ourselves";
  return Object.keys(oauth).length === 0 ? {} : { oauth };
}

const texts =
  "client_id client_secret_env_var issuer client_metadata_url private_key_env_var private_key_file identity_token_env_var identity_token_file identity_provider identity_token_endpoint identity_client_id identity_client_secret_env_var".split(
    " ",
  );
const lists = ["scopes", "private_key_command", "identity_token_command"];

/** A setting of another type would otherwise be ignored: `dpop = "true"` would ask for tokens that anybody can use. */
function wrongType(table: Record<string, unknown>): string | undefined {
  const notText = texts.find((key) => table[key] !== undefined && typeof table[key] !== "string");
  if (notText !== undefined) return `oauth.${notText} is a text`;
  const notList = lists.find((key) => table[key] !== undefined && stringList(table[key]) === undefined);
  if (notList !== undefined) return `oauth.${notList} is a list of strings`;
  if (table["dpop"] !== undefined && typeof table["dpop"] !== "boolean") return "oauth.dpop is true or false";
  const port = table["callback_port"];
  return port === undefined || typeof port === "number" ? undefined : "oauth.callback_port is a number";
}

const grants = new Map<unknown, OAuthConfig["grant"] | null>([
  ["authorization_code", null],
  ["client_credentials", "client_credentials"],
  ["jwt_bearer", "jwt_bearer"],
  ["urn:ietf:params:oauth:grant-type:jwt-bearer", "jwt_bearer"],
]);

function readIdentity(table: Record<string, unknown>): IdentityConfig | undefined {
  const token = readSource(table, "identity_token");
  if (token === undefined) return undefined;
  const text = (key: string) => (typeof table[key] === "string" ? table[key] : undefined);
  return withoutMissing<IdentityConfig>({
    token,
    provider: text("identity_provider"),
    tokenEndpoint: text("identity_token_endpoint"),
    clientId: text("identity_client_id"),
    clientSecretEnv: text("identity_client_secret_env_var"),
  });
}

function readSource(table: Record<string, unknown>, name: string): SecretSource | undefined {
  const env = table[`${name}_env_var`];
  if (typeof env === "string") return { env };
  const file = table[`${name}_file`];
  if (typeof file === "string") return { file };
  const command = stringList(table[`${name}_command`]);
  return command === undefined || command.length === 0 ? undefined : { command };
}

function stringList(value: unknown): readonly string[] | undefined {
  return Array.isArray(value) && value.every((entry) => typeof entry === "string") ? value : undefined;
}

/** Drops what is undefined: a setting that was not made is not there. */
function withoutMissing<Value extends object>(value: { readonly [Key in keyof Value]: Value[Key] | undefined }): Value {
  return Object.fromEntries(Object.entries(value).filter(([, held]) => held !== undefined)) as Value;
}
