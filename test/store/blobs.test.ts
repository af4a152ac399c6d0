/** Where large pieces are kept: a folder and a bucket behave alike; the bucket is a real S3-compatible server's. */
import S3rver from "@20minutes/s3rver";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createFolderBlobs, createS3Blobs, type BlobStore } from "../../src/serve/index.ts";
import { signS3 } from "../../src/store/s3-blobs.ts";

const keys = { accessKeyId: "S3RVER", secretAccessKey: "S3RVER" };
const newFolder = () => mkdtempSync(join(tmpdir(), "callgate-blobs-"));
let server: S3rver;
let url: string;

beforeAll(async () => {
  server = new S3rver({
    port: 0,
    address: "127.0.0.1",
    silent: true,
    directory: newFolder(),
    configureBuckets: [{ name: "sessions", configs: [] }],
  });
  const { port } = await server.run();
  url = `http://127.0.0.1:${port}/sessions`;
});
afterAll(() => server.close());

describe.each<[string, () => BlobStore]>([
  ["a folder", () => createFolderBlobs(newFolder())],
  ["a bucket", () => createS3Blobs({ url, ...keys })],
  ["a part of a bucket", () => createS3Blobs({ url: `${url}/deep/er/`, ...keys })],
])("%s", (_name, open) => {
  test("gives back what was put, and has removed what was removed", async () => {
    const blobs = open();
    const bytes = Uint8Array.from({ length: 3_000_000 }, (_, n) => (n * 7919) % 256);
    await blobs.put("a-session/part_1", bytes);
    await blobs.put("a-session/part_2", new Uint8Array());
    expect(Buffer.compare(await blobs.get("a-session/part_1"), bytes)).toBe(0);
    expect((await blobs.get("a-session/part_2")).length).toBe(0);
    await blobs.put("a-session/part_2", Buffer.from("again"));
    expect(Buffer.from(await blobs.get("a-session/part_2")).toString()).toBe("again");
    await blobs.remove("a-session/part_1");
    await blobs.remove("a-session/part_1");
    await expect(blobs.get("a-session/part_1")).rejects.toThrow();
  });

  test.each(["../up", "/root", "a//b", "a b", "", "a?acl", "a/%2e%2e/b"])("takes no name like %j", async (name) => {
    const blobs = open();
    await expect((async () => blobs.put(name, new Uint8Array()))()).rejects.toThrow("is no name of a piece");
    await expect((async () => blobs.get(name))()).rejects.toThrow("is no name of a piece");
  });
});

test("a wrong key and a bucket that is not there are told in the store's own word", async () => {
  const wrong = createS3Blobs({ url, ...keys, secretAccessKey: "wrong" });
  await expect(wrong.put("x", new Uint8Array())).rejects.toThrow("HTTP 403 (SignatureDoesNotMatch)");
  const nowhere = createS3Blobs({ url: url.replace("sessions", "nowhere"), ...keys });
  await expect(nowhere.put("x", new Uint8Array())).rejects.toThrow("HTTP 404 (NoSuchBucket)");
  expect(() => createS3Blobs({ url: "https://s3.example", ...keys })).toThrow("with the bucket in it");
});

test("a store that stumbles is asked again, and one that is gone is told", async () => {
  let asked = 0;
  const stumbling: typeof fetch = async (input, init) =>
    ++asked < 3 ? new Response("", { status: 503 }) : fetch(input, init);
  await createS3Blobs({ url, ...keys, fetch: stumbling }).put("again", Buffer.from("x"));
  expect(asked).toBe(3);
  const gone = createS3Blobs({ url: "http://127.0.0.1:1/bucket", ...keys, retries: 1 });
  await expect(gone.get("x")).rejects.toThrow("cannot be reached");
});

// From Amazon's own description of the signature.
test.each([
  ["?lifecycle", "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"],
  ["?max-keys=2&prefix=J", "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"],
])("a request for %s is signed as Amazon's example is", (query, signature) => {
  const { authorization } = signS3(
    {
      method: "GET",
      url: new URL(`https://examplebucket.s3.amazonaws.com/${query}`),
      body: new Uint8Array(),
      at: Date.UTC(2013, 4, 24),
      region: "us-east-1",
    },
    { accessKeyId: "AKIAIOSFODNN7EXAMPLE", secretAccessKey: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY" },
  );
  expect(authorization).toMatch(
    /^AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE\/20130524\/us-east-1\/s3\/aws4_request, /,
  );
  expect(authorization).toContain(`Signature=${signature}`);
});
