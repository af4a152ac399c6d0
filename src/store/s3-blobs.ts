/**
 * Large pieces in a bucket of an S3-compatible store: signed requests (AWS Signature Version 4), with
 * nothing to install.
 */
import { createHash, createHmac } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { checkOptions, optionsShape } from "../base/shape.ts";
import type { BlobStore } from "./packs.ts";

/** Options of `createS3Blobs`. */
export interface S3BlobsOptions {
  /** Where the bucket is, with its name and a prefix: `https://s3.eu-central-1.amazonaws.com/BUCKET/PREFIX`. */
  readonly url: string;
  /** The id of the key that signs requests. */
  readonly accessKeyId: string;
  /** The key itself. */
  readonly secretAccessKey: string;
  /** The token of temporary credentials. */
  readonly sessionToken?: string;
  /** Left out: `us-east-1`. */
  readonly region?: string;
  /** How often a request that failed through no fault of ours is tried again. */
  readonly retries?: number;
  /** Sends the requests. Left out: the global `fetch`. */
  readonly fetch?: typeof fetch;
  /** The clock, for tests. */
  readonly now?: () => number;
}

const s3Shape = optionsShape<S3BlobsOptions>(
  {
    url: "string",
    accessKeyId: "string",
    secretAccessKey: "string",
    sessionToken: "string",
    region: "string",
    retries: { above: -1 },
    fetch: "function",
    now: "function",
  },
  "url",
  "accessKeyId",
  "secretAccessKey",
);

const requestMs = 120_000;

/** Pieces of sessions' folders in a bucket, addressed by path: AWS, MinIO, R2, Ceph and others understand it. */
export function createS3Blobs(options: S3BlobsOptions): BlobStore {
  checkOptions("createS3Blobs", options, s3Shape);
  const { url, region = "us-east-1", retries = 4, fetch: send = fetch, now = Date.now } = options;
  if (!/^https?:\/\/[^/]+\/[^/]/.test(url))
    throw new TypeError("createS3Blobs: 'url' is an address with the bucket in it, such as https://HOST/BUCKET");
  const root = url.replace(/\/+$/, "");
  const once = async (method: string, name: string, body?: Uint8Array): Promise<Response> => {
    const target = new URL(`${root}/${name}`);
    const headers = signS3({ method, url: target, body: body ?? new Uint8Array(), at: now(), region }, options);
    return send(target, {
      method,
      headers,
      redirect: "error",
      signal: AbortSignal.timeout(requestMs),
      ...(body === undefined ? {} : { body: Buffer.from(body) }),
    });
  };
  const ask = async (method: string, name: string, body?: Uint8Array): Promise<Response> => {
    if (!/^[\w-]+(\/[\w-]+)*$/.test(name)) throw new Error(`'${name}' is no name of a piece`);
    for (let tries = 0; ; tries++) {
      const response = await once(method, name, body).catch((error: unknown) => {
        if (tries >= retries) throw new Error("the store of large files cannot be reached", { cause: error });
        return undefined;
      });
      if (response !== undefined && response.status < 500 && response.status !== 429) return response;
      if (response !== undefined && tries >= retries) return response;
      await response?.body?.cancel();
      await sleep(100 * 2 ** tries);
    }
  };
  const refused = async (what: string, response: Response) => {
    // `<Code>NoSuchBucket</Code>`: the store's own word for what is wrong.
    const code = /<Code>(\w+)<\/Code>/.exec(await response.text().catch(() => ""))?.[1];
    const word = code === undefined ? "" : ` (${code})`;
    return new Error(`the store of large files does not ${what}: HTTP ${response.status}${word}`);
  };
  return {
    async put(name, bytes) {
      const response = await ask("PUT", name, bytes);
      if (!response.ok) throw await refused("take a file", response);
      await response.body?.cancel();
    },
    async get(name) {
      const response = await ask("GET", name);
      if (!response.ok) throw await refused("give a file", response);
      return new Uint8Array(await response.arrayBuffer());
    },
    async remove(name) {
      const response = await ask("DELETE", name);
      if (!response.ok && response.status !== 404) throw await refused("remove a file", response);
      await response.body?.cancel();
    },
  };
}

/** A request to be signed. */
export interface S3Request {
  readonly method: string;
  readonly url: URL;
  readonly body: Uint8Array;
  readonly at: number;
  readonly region: string;
}

/** The headers of a request, with its signature. */
export function signS3(
  { method, url, body, at, region }: S3Request,
  {
    accessKeyId,
    secretAccessKey,
    sessionToken,
  }: Pick<S3BlobsOptions, "accessKeyId" | "secretAccessKey" | "sessionToken">,
): Readonly<Record<string, string>> {
  const time = new Date(at).toISOString().replaceAll(/[-:]|\.\d{3}/g, "");
  const scope = `${time.slice(0, 8)}/${region}/s3/aws4_request`;
  const signed: Readonly<Record<string, string>> = {
    "x-amz-content-sha256": sha256(body),
    "x-amz-date": time,
    ...(sessionToken === undefined ? {} : { "x-amz-security-token": sessionToken }),
  };
  // In the order of their names. `host` is written by whoever sends the request.
  const headers = Object.entries({ host: url.host, ...signed });
  const names = headers.map(([name]) => name).join(";");
  const query = [...url.searchParams].map((pair) => pair.map(encodeURIComponent).join("=")).toSorted();
  const canonical = [
    method,
    url.pathname,
    query.join("&"),
    ...headers.map(([name, value]) => `${name}:${value}`),
    "",
    names,
    signed["x-amz-content-sha256"],
  ].join("\n");
  const words = ["AWS4-HMAC-SHA256", time, scope, sha256(canonical)].join("\n");
  let key: Buffer | string = `AWS4${secretAccessKey}`;
  for (const part of scope.split("/")) key = createHmac("sha256", key).update(part).digest();
  const signature = createHmac("sha256", key).update(words).digest("hex");
  return {
    ...signed,
    authorization: `AWS4-HMAC-SHA256 Credential=${accessKeyId}/${scope}, SignedHeaders=${names}, Signature=${signature}`,
  };
}

function sha256(data: string | Uint8Array): string {
  return createHash("sha256").update(data).digest("hex");
}
