/** The page's files from the build. Nothing in them is inline, and nothing is fetched from another host. */
import { createReadStream, statSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { extname, join, normalize } from "node:path";
import { pipeline } from "node:stream";
import { createBrotliDecompress } from "node:zlib";
import { Problem } from "./problem.ts";

const types: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
  ".png": "image/png",
  ".ico": "image/x-icon",
  ".woff2": "font/woff2",
  ".json": "application/json",
  ".webmanifest": "application/manifest+json",
};

const policy =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; " +
  "manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const headers = {
  "content-security-policy": policy,
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "x-frame-options": "DENY",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
};

const hint = `<!doctype html><meta charset="utf-8"><title>callgate serve</title>
<p>The service is running. Its page is not built here: run <code>npm run build</code>, or use the API (<a href="/openapi.json">its description</a>).</p>
`;

export function answerPage(
  path: string,
  request: IncomingMessage,
  response: ServerResponse,
  folder: string | undefined,
): void {
  if (folder === undefined) {
    if (path !== "/") throw new Problem(404, "not-found", `There is nothing at ${path}.`);
    response.writeHead(200, { ...headers, "content-type": "text/html; charset=utf-8", "cache-control": "no-store" });
    response.end(hint);
    return;
  }
  const isFile = /^\/[\w./-]+\.\w+$/.test(path) && !normalize(path).includes("..");
  // Addresses of the page itself, such as /sessions/ID, are all answered with it.
  const file = join(folder, isFile ? normalize(path) : "index.html");
  // The build compresses what it can. A folder of the user's own holds plain files.
  const compressed = !isThere(file) && isThere(`${file}.br`);
  if (!compressed && !isThere(file)) throw new Problem(404, "not-found", `There is nothing at ${path}.`);
  const asItIs = compressed && takesBrotli(request);
  response.writeHead(200, {
    ...headers,
    "content-type": types[extname(file)] ?? "application/octet-stream",
    "cache-control": isFile && path.startsWith("/assets/") ? "no-cache" : "no-store",
    ...(compressed ? { vary: "accept-encoding" } : {}),
    ...(asItIs ? { "content-encoding": "br" } : {}),
  });
  const content = createReadStream(compressed ? `${file}.br` : file);
  // What fails on its way ends the answer: pipeline destroys both sides.
  const done = (): void => undefined;
  if (compressed && !asItIs) pipeline(content, createBrotliDecompress(), response, done);
  else pipeline(content, response, done);
}

function isThere(file: string): boolean {
  return statSync(file, { throwIfNoEntry: false })?.isFile() === true;
}

/** Browsers offer it only to addresses that they trust, such as localhost. `br;q=0` is a no. */
function takesBrotli({ headers: { "accept-encoding": accepted = "" } }: IncomingMessage): boolean {
  return /(?:^|[\s,])br(?:$|[\s,;])(?!\s*q=0(?:\.0*)?\s*(?:,|$))/i.test(String(accepted));
}
