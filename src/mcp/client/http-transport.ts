/** HTTP servers: headers from settings and variables, a limit on the size of one answer, and the older SSE form. */
import {
  extractWWWAuthenticateParams,
  SdkHttpError,
  SSEClientTransport,
  StreamableHTTPClientTransport,
  type FetchLike,
  type Transport,
} from "@modelcontextprotocol/client";
import { defined } from "../../base/json.ts";
import type { ServerAuth } from "../auth/auth.ts";
import type { HttpConfig } from "../config.ts";
import type { KeptSecrets } from "./keep-secrets.ts";
import { limitedFetch } from "./limited-fetch.ts";

export interface HttpOptions {
  readonly env: NodeJS.ProcessEnv;
  readonly secrets: KeptSecrets;
  readonly authProvider?: ServerAuth;
}

export function createHttpTransport(config: HttpConfig, options: HttpOptions): Transport {
  return new StreamableHTTPClientTransport(new URL(config.url), settingsOf(config, options));
}

/** The form from before streamable HTTP. */
export function createSseTransport(config: HttpConfig, options: HttpOptions): Transport {
  return new SSEClientTransport(new URL(config.url), settingsOf(config, options));
}

/** Servers from before streamable HTTP refuse its first POST with one of these, as the specification says. */
export function isNotStreamable(error: unknown): boolean {
  const status = statusOf(error);
  return status === 400 || status === 404 || status === 405;
}

/** The server has lost our session, so nothing of the request was run. */
export function isSessionLost(error: unknown): boolean {
  const status = statusOf(error);
  return status === 404 || status === 410;
}

function statusOf(error: unknown): number | undefined {
  for (let at = error; at instanceof Error; at = at.cause) if (SdkHttpError.isInstance(at)) return at.status;
  return undefined;
}

function settingsOf(config: HttpConfig, { env, authProvider, secrets }: HttpOptions) {
  const watched = secrets.watching(limitedFetch);
  return {
    requestInit: { headers: headersOf(config, env) },
    fetch: authProvider === undefined ? watched : steppingUp(authProvider, watched),
    ...defined({ authProvider }),
  };
}

function headersOf(config: HttpConfig, env: NodeJS.ProcessEnv): Record<string, string> {
  const fromEnv = Object.entries(config.headerEnvs).flatMap(([header, name]) =>
    env[name] === undefined ? [] : [[header, env[name]]],
  );
  const token = config.bearerTokenEnv === undefined ? undefined : env[config.bearerTokenEnv];
  return {
    ...config.headers,
    ...Object.fromEntries(fromEnv),
    ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
  };
}

/** A server that wants a wider token has run nothing, so the request is sent once more with the new one. */
function steppingUp(auth: ServerAuth, fetch: FetchLike): FetchLike {
  const proved = auth.proving(fetch);
  return async (url, init) => {
    const response = await proved(url, init);
    if (response.status !== 403) return response;
    const { error, scope, resourceMetadataUrl } = extractWWWAuthenticateParams(response);
    if (error !== "insufficient_scope") return response;
    await response.body?.cancel();
    await auth.onInsufficientScope({ scope, resourceMetadataUrl });
    const headers = new Headers(init?.headers);
    headers.set("authorization", `Bearer ${(await auth.token()) ?? ""}`);
    return proved(url, { ...init, headers });
  };
}
