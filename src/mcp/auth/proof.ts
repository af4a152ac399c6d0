/** Tokens that only the holder of a key can use (DPoP, RFC 9449). The key is stored with the login it belongs to. */
import { createHash, generateKeyPairSync, type JsonWebKey } from "node:crypto";
import { DpopSession } from "@modelcontextprotocol/client";

const curve = { name: "ECDSA", namedCurve: "P-256" } as const;

export function createProofKey(): JsonWebKey {
  return generateKeyPairSync("ec", { namedCurve: curve.namedCurve }).privateKey.export({ format: "jwk" });
}

export async function createProofSession(key: JsonWebKey): Promise<DpopSession> {
  const { d: _secret, ...open } = key;
  const { crv = "", kty = "", x = "", y = "" } = open;
  const usable = await crypto.subtle.importKey("jwk", { ...open, ext: true }, curve, true, ["verify"]);
  return DpopSession.create({
    keyPair: {
      privateKey: await crypto.subtle.importKey("jwk", { ...key, ext: false }, curve, false, ["sign"]),
      publicKey: usable,
      publicJwk: { crv, kty, x, y },
      // RFC 7638: these members, in this order.
      thumbprint: createHash("sha256").update(JSON.stringify({ crv, kty, x, y })).digest("base64url"),
      alg: "ES256",
    },
  });
}
