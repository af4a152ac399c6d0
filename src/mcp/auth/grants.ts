/** How we get a token: through the person's browser, as ourselves, or with a token that says who we are. */
import { createPrivateKey, type KeyObject } from "node:crypto";
import {
  createPrivateKeyJwtAuth,
  discoverAndRequestJwtAuthGrant,
  requestJwtAuthorizationGrant,
  type FetchLike,
  type OAuthClientProvider,
} from "@modelcontextprotocol/client";
import { defined } from "../../base/json.ts";
import type { IdentityConfig, OAuthConfig } from "./config.ts";
import { readSecret } from "./secret.ts";

const jwtBearer = "urn:ietf:params:oauth:grant-type:jwt-bearer";

export interface GrantContext {
  readonly oauth: OAuthConfig | undefined;
  readonly env: NodeJS.ProcessEnv;
  readonly redirectUrl: string;
  readonly fetch: FetchLike;
}

type Grant = Pick<
  OAuthClientProvider,
  | "redirectUrl"
  | "clientMetadata"
  | "prepareTokenRequest"
  | "addClientAuthentication"
  | "saveAuthorizationServerUrl"
  | "saveResourceUrl"
>;

export async function createGrant(context: GrantContext): Promise<Grant> {
  const { oauth, redirectUrl } = context;
  const client = { client_name: "Callgate", redirect_uris: [redirectUrl] };
  const signed = await signFor(context);
  if (oauth?.grant === "client_credentials")
    return {
      redirectUrl: undefined,
      clientMetadata: { ...client, grant_types: [oauth.grant] },
      prepareTokenRequest: (scope) => toParams({ grant_type: "client_credentials", scope }),
      ...signed,
    };
  if (oauth?.identity !== undefined)
    return {
      redirectUrl: undefined,
      clientMetadata: { ...client, grant_types: [jwtBearer] },
      ...bearIdentity(oauth.identity, context),
      ...signed,
    };
  return {
    redirectUrl,
    clientMetadata: {
      ...client,
      grant_types: ["authorization_code", "refresh_token"],
      response_types: ["code"],
      token_endpoint_auth_method: "none",
    },
    ...signed,
  };
}

/**
 * The token as it is, or what the company's login returns for it, valid for one server and one
 * authorization server.
 */
function bearIdentity(identity: IdentityConfig, { env, fetch }: GrantContext): Partial<Grant> {
  let audience = "";
  let resource = "";
  const assertionFor = async (scope: string | undefined) => {
    const idToken = await readSecret(identity.token, env);
    const { provider, tokenEndpoint } = identity;
    if (provider === undefined && tokenEndpoint === undefined) return idToken;
    const secret = identity.clientSecretEnv === undefined ? undefined : env[identity.clientSecretEnv];
    const request = {
      idToken,
      clientId: identity.clientId ?? "",
      audience,
      resource,
      fetchFn: fetch,
      ...defined({ clientSecret: secret, scope }),
    };
    const exchanged =
      tokenEndpoint === undefined
        ? await discoverAndRequestJwtAuthGrant({ ...request, idpUrl: provider ?? "" })
        : await requestJwtAuthorizationGrant({ ...request, tokenEndpoint });
    return exchanged.jwtAuthGrant;
  };
  return {
    saveAuthorizationServerUrl: (url) => void (audience = url),
    saveResourceUrl: (url) => void (resource = url),
    prepareTokenRequest: async (scope) =>
      toParams({ grant_type: jwtBearer, assertion: await assertionFor(scope), scope }),
  };
}

/** A signature instead of a secret, if the settings name a key. */
async function signFor({ oauth, env }: GrantContext): Promise<Pick<Grant, "addClientAuthentication">> {
  if (oauth?.privateKey === undefined || oauth.clientId === undefined) return {};
  const key = createPrivateKey(await readSecret(oauth.privateKey, env));
  const { clientId } = oauth;
  return {
    addClientAuthentication: createPrivateKeyJwtAuth({
      issuer: clientId,
      subject: clientId,
      privateKey: { ...key.export({ format: "jwk" }) },
      alg: algorithmOf(key),
    }),
  };
}

const algorithms = new Map([
  ["ec prime256v1", "ES256"],
  ["ec secp384r1", "ES384"],
  ["ec secp521r1", "ES512"],
  ["rsa", "RS256"],
  ["ed25519", "EdDSA"],
]);

function algorithmOf({ asymmetricKeyType: type, asymmetricKeyDetails: details }: KeyObject): string {
  const kind = [type ?? "unknown", details?.namedCurve].join(" ").trim();
  const algorithm = algorithms.get(kind);
  if (algorithm === undefined) throw new Error(`a private key of the kind '${kind}' cannot sign a login`);
  return algorithm;
}

function toParams(values: Readonly<Record<string, string | undefined>>): URLSearchParams {
  return new URLSearchParams(
    Object.entries(values).filter((entry): entry is [string, string] => entry[1] !== undefined),
  );
}
