/** A small real OAuth server and an MCP server that only lets its tokens in, both on 127.0.0.1. */
import { createHash, randomBytes } from "node:crypto";
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { toNodeHandler } from "@modelcontextprotocol/node";
import { createMcpHandler } from "@modelcontextprotocol/server";
import { createEngine } from "../../src/index.ts";
import { createMcpServer } from "../../src/mcp/server/server.ts";
import { tools } from "./served.ts";

export interface OAuthServer {
  readonly url: string;
  /** What happened at which endpoint. */
  readonly log: string[];
  /** What the token endpoint was sent. */
  readonly asked: { readonly params: URLSearchParams; readonly headers: IncomingHttpHeaders }[];
  /** Tokens handed out so far are no longer taken. */
  expire(): void;
  /** From now on this scope is asked for as well. */
  demand(scope: string): void;
  close(): Promise<void>;
}

export interface OAuthServerOptions {
  readonly expiresIn?: number;
  /** Who gives out tokens, where it is somebody else. */
  readonly issuer?: string;
  readonly tokenType?: string;
}

export async function startOAuthServer(options: OAuthServerOptions = {}): Promise<OAuthServer> {
  const log: string[] = [];
  const asked: OAuthServer["asked"] = [];
  const clients = new Map<string, readonly string[]>();
  const codes = new Map<string, { challenge: string; client: string; scope: string; redirect: string }>();
  const access = new Map<string, string>();
  const refresh = new Map<string, string>();
  let wanted = "tools";
  const engine = createEngine({ tools: tools({ notes: [], aborted: [] }), approval: "never", sandbox: "full-access" });
  const handle = toNodeHandler(createMcpHandler(() => createMcpServer({ engine, version: "0" })));
  const base = () => `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const json = (response: ServerResponse, value: unknown, status = 200) => {
    response.writeHead(status, { "content-type": "application/json" });
    response.end(JSON.stringify(value));
  };
  const grant = (scope: string) => {
    const [token, renewal] = [randomBytes(8).toString("hex"), randomBytes(8).toString("hex")];
    access.set(token, scope);
    refresh.set(renewal, scope);
    const expires = options.expiresIn === undefined ? {} : { expires_in: options.expiresIn };
    return {
      access_token: token,
      token_type: options.tokenType ?? "Bearer",
      refresh_token: renewal,
      scope,
      ...expires,
    };
  };

  const routes: Record<string, (request: IncomingMessage, response: ServerResponse, url: URL) => Promise<void> | void> =
    {
      "/.well-known/oauth-protected-resource/mcp": (_request, response) =>
        json(response, {
          resource: `${base()}/mcp`,
          authorization_servers: [options.issuer ?? base()],
          scopes_supported: ["tools"],
        }),
      "/.well-known/oauth-authorization-server": (_request, response) =>
        json(response, {
          issuer: base(),
          authorization_endpoint: `${base()}/authorize`,
          token_endpoint: `${base()}/token`,
          registration_endpoint: `${base()}/register`,
          response_types_supported: ["code"],
          grant_types_supported: ["authorization_code", "refresh_token"],
          code_challenge_methods_supported: ["S256"],
          token_endpoint_auth_methods_supported: ["none"],
        }),
      async "/register"(request, response) {
        const asked = JSON.parse(await body(request)) as { redirect_uris: string[] };
        const client = randomBytes(4).toString("hex");
        clients.set(client, asked.redirect_uris);
        json(response, { ...asked, client_id: client }, 201);
      },
      "/authorize"(_request, response, { searchParams: params }) {
        const redirect = params.get("redirect_uri") ?? "";
        const client = params.get("client_id") ?? "";
        if (!clients.get(client)?.includes(redirect) || params.get("code_challenge_method") !== "S256")
          return json(response, { error: "invalid_request" }, 400);
        const code = randomBytes(8).toString("hex");
        const scope = params.get("scope") ?? "tools";
        codes.set(code, { challenge: params.get("code_challenge") ?? "", client, scope, redirect });
        const back = new URL(redirect);
        back.searchParams.set("code", code);
        back.searchParams.set("state", params.get("state") ?? "");
        response.writeHead(302, { location: back.href });
        response.end();
      },
      async "/token"(request, response) {
        const params = new URLSearchParams(await body(request));
        log.push(params.get("grant_type") ?? "");
        asked.push({ params, headers: request.headers });
        // Whoever comes with credentials or a token of their own is taken at their word; the tests look at what was sent.
        if (/client_credentials|jwt-bearer/.test(params.get("grant_type") ?? ""))
          return json(response, grant(params.get("scope") ?? "tools"));
        if (params.get("grant_type")?.endsWith("token-exchange")) {
          const type = "urn:ietf:params:oauth:token-type:id-jag";
          return json(response, { issued_token_type: type, access_token: "exchanged", token_type: "N_A" });
        }
        if (params.get("grant_type") === "refresh_token") {
          const scope = refresh.get(params.get("refresh_token") ?? "");
          // Each renewal is good once: two processes that renewed at the same time would lock each other out.
          refresh.delete(params.get("refresh_token") ?? "");
          return scope === undefined ? json(response, { error: "invalid_grant" }, 400) : json(response, grant(scope));
        }
        const code = codes.get(params.get("code") ?? "");
        const proof = createHash("sha256")
          .update(params.get("code_verifier") ?? "")
          .digest("base64url");
        if (code === undefined || code.challenge !== proof) return json(response, { error: "invalid_grant" }, 400);
        json(response, grant(code.scope));
      },
      async "/mcp"(request, response) {
        const token = (request.headers.authorization ?? "").replace(/^(Bearer|DPoP) /, "");
        const scope = access.get(token);
        const about = `resource_metadata="${base()}/.well-known/oauth-protected-resource/mcp", scope="${wanted}"`;
        if (scope === undefined) {
          response.writeHead(401, { "www-authenticate": `Bearer ${about}` });
          return void response.end();
        }
        if (!wanted.split(" ").every((one) => scope.split(" ").includes(one))) {
          response.writeHead(403, { "www-authenticate": `Bearer error="insufficient_scope", ${about}` });
          return void response.end();
        }
        await handle(request as Parameters<typeof handle>[0], response);
      },
    };
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? "/", base());
    const route = routes[url.pathname];
    if (url.pathname !== "/mcp" && url.pathname !== "/token") log.push(url.pathname);
    if (route === undefined) return json(response, {}, 404);
    void Promise.resolve(route(request, response, url)).catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `${base()}/mcp`,
    log,
    asked,
    expire: () => access.clear(),
    demand: (scope) => void (wanted = `tools ${scope}`),
    async close() {
      server.close();
      server.closeAllConnections();
      await engine.close();
    },
  };
}

async function body(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString("utf8");
}
