/**
 * Logging in to HTTP servers with OAuth: discovery, registration and PKCE. Logins are kept on disk and
 * renewed by one process at a time. A browser is opened only for somebody who asked to log in.
 */
import { checkOptions, optionsShape } from "../../base/shape.ts";
import { randomBytes } from "node:crypto";
import {
  auth,
  computeScopeUnion,
  extractWWWAuthenticateParams,
  withDpop,
  type DpopSession,
  type OAuthClientProvider,
  type OAuthDiscoveryState,
} from "@modelcontextprotocol/client";
import { defined } from "../../base/json.ts";
import { openCallback, type Callback } from "./callback.ts";
import { createAuthFetch } from "./fetch.ts";
import { createLoginFile, type Login, type LoginFile } from "./file.ts";
import { createGrant } from "./grants.ts";
import { createProofKey, createProofSession } from "./proof.ts";
import type { OAuthConfig } from "./config.ts";
import type { ServerConfig } from "../config.ts";
import type { Keyring } from "./keyring.ts";
import type { FetchLike, TokenProvider } from "../protocol.ts";

/** The login of one server. */
export interface ServerAuth extends TokenProvider {
  /** Called when the server wants more than the token allows. Afterwards the request may be sent again. */
  onInsufficientScope(wanted: Challenge): Promise<void>;
  /** A `fetch` that proves possession of the key, if the token is bound to one. */
  proving(fetch: FetchLike): FetchLike;
}

/** Shows the person the address of the login page. */
export type OpenPage = (url: URL) => void | Promise<void>;

/** The logins of all servers. */
export interface TokenStore {
  /** Sends and renews earlier logins, and never opens a page. Undefined for servers that need no login of ours. */
  providerFor(config: ServerConfig): ServerAuth | undefined;
  /** The same with a person present: a server that asks for a login gets one. */
  interactive(config: ServerConfig, open: OpenPage): ServerAuth | undefined;
  /** False if there was none. */
  forget(config: ServerConfig): Promise<boolean>;
}

/** Options of `createTokenStore`. */
export interface TokenStoreOptions {
  /** The folder for logins, or for what is known about them where a keyring has the secrets. */
  readonly stateDir: string;
  /** The environment that holds a client's secret, if it has one. Left out: no variable is read. */
  readonly env?: NodeJS.ProcessEnv;
  /** Where secrets are stored. Left out: in the files of `stateDir`. */
  readonly keyring?: Keyring;
  /** The clock, for tests. */
  readonly now?: () => number;
  /** How long a person may take to log in. */
  readonly patienceMs?: number;
}

/** A token this close to its end is renewed before it is used. */
const marginMs = 30_000;

/** A server wants a login, and nobody here can give one. */
class LoginNeeded extends Error {
  override readonly name = "LoginNeeded";
  constructor(server: string) {
    super(`it needs a login: run 'callgate mcp login ${server}'`);
  }
}

const tokenStoreShape = optionsShape<TokenStoreOptions>(
  { stateDir: "string", env: "table", keyring: "any", now: "function", patienceMs: { above: -1 } },
  "stateDir",
);

/**
 * Logins by OAuth, stored in the `keyring` if one is given, otherwise in files of `stateDir`. `createMcpClients` takes
 * its `providerFor` as `authProvider`.
 */
export function createTokenStore(options: TokenStoreOptions): TokenStore {
  checkOptions("createTokenStore", options, tokenStoreShape);
  const { stateDir, keyring } = options;
  const fileOf = (config: ServerConfig) =>
    config.transport.kind === "http" && config.transport.bearerTokenEnv === undefined
      ? createLoginFile(stateDir, config.name, config.transport.url, keyring)
      : undefined;
  const create = (config: ServerConfig, open: OpenPage | undefined) => {
    const file = fileOf(config);
    const { transport } = config;
    if (file === undefined || transport.kind !== "http") return undefined;
    return createServerAuth({ ...options, server: config.name, url: transport.url, file, open, oauth: config.oauth });
  };
  return {
    providerFor: (config) => create(config, undefined),
    interactive: create,
    forget: async (config) => (await fileOf(config)?.remove()) ?? false,
  };
}

interface AuthContext extends TokenStoreOptions {
  readonly server: string;
  readonly url: string;
  readonly file: LoginFile;
  readonly open: OpenPage | undefined;
  readonly oauth: OAuthConfig | undefined;
}

/** What a server says it requires when it refuses. */
export interface Challenge {
  readonly scope?: string | undefined;
  readonly resourceMetadataUrl?: URL | undefined;
}

function createServerAuth(context: AuthContext): ServerAuth {
  const { file, oauth, now = Date.now } = context;
  let sent: string | undefined;
  let asked: string | undefined;
  const needsPerson = context.open === undefined && oauth?.grant === undefined;

  const authorize = (challenge: Challenge, again = false) =>
    file.locked(async () => {
      const login = await file.read();
      // Another process may have logged in in the meantime, so its token is tried first.
      if (!again && login?.tokens && login.tokens.access_token !== sent && !isEnding(login, now())) return;
      if (needsPerson && login?.tokens?.refresh_token === undefined) throw new LoginNeeded(context.server);
      await logIn(context, challenge, again);
    });

  return {
    async token() {
      const login = await file.read();
      if (login?.tokens?.refresh_token !== undefined && isEnding(login, now())) {
        sent = login.tokens.access_token;
        await authorize({});
      }
      return (sent = (await file.read())?.tokens?.access_token);
    },
    async onUnauthorized({ response }) {
      const { resourceMetadataUrl, scope } = extractWWWAuthenticateParams(response);
      asked = computeScopeUnion(asked, scope);
      await authorize({ resourceMetadataUrl, scope: asked });
    },
    async onInsufficientScope({ scope, resourceMetadataUrl }) {
      asked = computeScopeUnion(asked, (await file.read())?.tokens?.scope, scope);
      if (needsPerson) throw new LoginNeeded(context.server);
      // A renewed token would allow no more than the old one. Only the person can grant more.
      await authorize({ resourceMetadataUrl, scope: asked }, true);
    },
    proving: oauth?.dpop ? proveWith(file) : (fetch) => fetch,
  };
}

function proveWith(file: LoginFile): ServerAuth["proving"] {
  const session = createProofs();
  return withDpop(
    async () => session((await file.read())?.proofKey),
    async () => {
      const tokens = (await file.read())?.tokens;
      return tokens?.token_type.toLowerCase() === "dpop" ? tokens.access_token : undefined;
    },
  );
}

/** One session for as long as the key is the same. It also remembers what the server wants in the next proof. */
function createProofs() {
  let last: { readonly key: string; readonly session: Promise<DpopSession> } | undefined;
  return (key: Login["proofKey"]): Promise<DpopSession> | undefined => {
    if (key === undefined) return undefined;
    const text = JSON.stringify(key);
    if (last?.key !== text) last = { key: text, session: createProofSession(key) };
    return last.session;
  };
}

function isEnding(login: Login, now: number): boolean {
  return login.expiresAt !== undefined && login.expiresAt - marginMs < now;
}

/** Renews the token, or has the person log in if that is not enough. */
async function logIn(context: AuthContext, challenge: Challenge, again: boolean): Promise<void> {
  const callback = context.open === undefined ? undefined : await openCallback(context.oauth?.callbackPort);
  try {
    const state = randomBytes(24).toString("base64url");
    const fetchFn = createAuthFetch(context.url);
    const provider = await createProvider(context, state, callback, fetchFn);
    const scope = context.oauth?.scopes?.join(" ") ?? challenge.scope;
    const request = {
      serverUrl: context.url,
      fetchFn,
      ...defined({ scope }),
      ...(challenge.resourceMetadataUrl ? { resourceMetadataUrl: challenge.resourceMetadataUrl } : {}),
    };
    const result = await auth(provider, { ...request, forceReauthorization: again });
    if (result === "AUTHORIZED" || callback === undefined) return;
    const params = await callback.wait(state, AbortSignal.timeout(context.patienceMs ?? 300_000));
    const code = params.get("code");
    if (code === null) throw new Error(`the login was refused: ${params.get("error") ?? "no reason given"}`);
    const iss = params.get("iss");
    await auth(provider, { ...request, authorizationCode: code, ...(iss === null ? {} : { iss }) });
  } finally {
    callback?.close();
  }
}

async function createProvider(
  context: AuthContext,
  state: string,
  callback: Callback | undefined,
  fetch: FetchLike,
): Promise<OAuthClientProvider> {
  const { file, url, server, oauth, env = {}, now = Date.now } = context;
  let login: Login = (await file.read()) ?? { url };
  let verifier = "";
  let discovered: OAuthDiscoveryState | undefined;
  const redirectUrl = callback?.url ?? login.redirectUrl ?? "http://127.0.0.1/callback";
  // A registration is valid for the address it named. Without a browser it is needed only for renewing.
  if (callback !== undefined && login.redirectUrl !== redirectUrl) login = without(login, "client");
  const save = (next: Login) => file.write((login = next));
  const own = knownClient(context, login);
  if (oauth?.dpop && login.proofKey === undefined) await save({ ...login, proofKey: createProofKey() });
  const proof = login.proofKey === undefined ? undefined : createProofSession(login.proofKey);

  return {
    ...(await createGrant({ oauth, env, redirectUrl, fetch })),
    state: () => state,
    ...(oauth?.clientMetadataUrl === undefined ? {} : { clientMetadataUrl: oauth.clientMetadataUrl }),
    clientInformation: () => own ?? login.client,
    // The user's own client is not ours to store; its secret stays where it is.
    ...(own ? {} : { saveClientInformation: (client) => save({ ...login, client, redirectUrl }) }),
    ...(proof === undefined ? {} : { dpop: () => proof }),
    tokens: () => login.tokens,
    saveTokens: (tokens) =>
      save({
        ...without(login, "expiresAt"),
        tokens,
        ...(own && tokens.issuer !== undefined ? { issuer: tokens.issuer } : {}),
        ...(tokens.expires_in === undefined ? {} : { expiresAt: now() + tokens.expires_in * 1000 }),
      }),
    saveCodeVerifier: (made) => void (verifier = made),
    codeVerifier: () => verifier,
    saveDiscoveryState: (found) => void (discovered = found),
    discoveryState: () => discovered,
    async redirectToAuthorization(page) {
      // Passed to a browser as one argument, never to a shell, and only for web addresses.
      if (context.open === undefined) throw new LoginNeeded(server);
      if (page.protocol !== "https:" && page.protocol !== "http:") throw new Error(`${page.href} is no web address`);
      await context.open(page);
    },
    async invalidateCredentials(what) {
      if (what === "all") await save({ url, ...defined({ issuer: login.issuer }) });
      else if (what === "client" || what === "tokens") await save(without(login, what));
      else if (what === "discovery") discovered = undefined;
    },
  };
}

/** A client that was registered by hand, with its secret from the environment, for one authorization server. */
function knownClient({ oauth, env = {} }: AuthContext, login: Login): Login["client"] {
  if (oauth?.clientId === undefined) return undefined;
  const secret = oauth.clientSecretEnv === undefined ? undefined : env[oauth.clientSecretEnv];
  const issuer = oauth.issuer ?? login.issuer;
  return {
    client_id: oauth.clientId,
    ...defined({ client_secret: secret, issuer }),
  };
}

function without(login: Login, key: "client" | "tokens" | "expiresAt"): Login {
  const { [key]: _, ...rest } = login;
  return rest;
}
