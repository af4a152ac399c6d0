/**
 * How a browser gets access: by a link that works once, or by a token that a person types into the page.
 * Either way it gets a cookie that no script can read.
 */
import { randomBytes } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { Problem } from "./problem.ts";
import type { Service } from "./service.ts";
import { hashToken, issueToken, type Principal } from "./tenants.ts";

const cookieName = "callgate";
const cookieMs = 30 * 86_400_000;
const linkMs = 15 * 60_000;

type Headers = Readonly<Record<string, string>>;

export interface Entrance {
  /** A code that lets one browser in, once. */
  createCode(principal: Principal): string;
  /** The headers for a browser that came with a code. */
  useCode(code: string, request: IncomingMessage): Promise<Headers>;
  /** The headers for a browser whose request carries a token that is known. */
  keepToken(request: IncomingMessage): Headers;
}

export function createEntrance(service: Service): Entrance {
  const codes = new Map<string, { readonly principal: Principal; readonly until: number }>();
  return {
    createCode(principal) {
      const code = randomBytes(24).toString("base64url");
      codes.set(hashToken(code), { principal, until: service.now() + linkMs });
      return code;
    },
    async useCode(code, request) {
      const known = codes.get(hashToken(code));
      codes.delete(hashToken(code));
      if (known !== undefined && known.until >= service.now()) {
        const { token } = await issueToken(service.tokens, { ...known.principal, lifetimeMs: cookieMs }, service.now());
        return toCookie(token);
      }
      // Everybody gets the page. It opens if this browser was given access before, and otherwise explains how to get
      // it.
      if (request.headers.accept?.includes("text/html") === true) return {};
      throw new Problem(403, "link", "This link was used already, or is too old. 'callgate serve' prints a new one.");
    },
    keepToken(request) {
      const token = readBearer(request);
      if (token === undefined) throw new Problem(401, "token", "The token has to come as 'Authorization: Bearer'.");
      // The cookie is the token itself, so a revoked token gives no browser access any more.
      return toCookie(token);
    },
  };
}

function toCookie(token: string): Headers {
  return { "set-cookie": `${cookieName}=${token}; Path=/; HttpOnly; SameSite=Strict; Max-Age=${cookieMs / 1000}` };
}

export function readBearer(request: IncomingMessage): string | undefined {
  return /^Bearer\s+(\S+)$/i.exec(request.headers.authorization ?? "")?.[1];
}

export function readCookie(header: string | undefined): string | undefined {
  for (const pair of (header ?? "").split(";")) {
    const [name, value] = pair.trim().split("=");
    if (name === cookieName) return value;
  }
  return undefined;
}
