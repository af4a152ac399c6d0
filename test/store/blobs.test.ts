/** Where large pieces are kept: a folder and a bucket behave alike; the bucket is a real S3-compatible server's. */
import S3rver from "@20minutes/s3rver";
import { mkdtempSync, readdirSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createFolderBlobs, createS3Blobs, type BlobStore } from "../../src/serve/index.ts";
import { blobName } from "../../src/store/packs.ts";
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

describe("a bucket's answers", () => {
  /** A store that gives these answers one after the other, and keeps what it was asked. */
  const answering = (...answers: readonly (Response | Error)[]) => {
    const asked: { readonly url: string; readonly method: string | undefined; readonly headers: Headers }[] = [];
    const send: typeof fetch = async (input, init) => {
      asked.push({ url: String(input), method: init?.method, headers: new Headers(init?.headers) });
      expect(init?.redirect).toBe("error"); // a signature is meant for one host
      const answer = answers[asked.length - 1] ?? new Response("", { status: 500 });
      if (answer instanceof Error) throw answer;
      return answer;
    };
    return { asked, send };
  };
  const blobs = (send: typeof fetch, more: object = {}) =>
    createS3Blobs({ url: "https://s3.example/bucket/prefix/", ...keys, fetch: send, retries: 1, ...more });

  test.each([403, 404, 400, 409])("a %i is an answer, and not asked for again", async (status) => {
    const { asked, send } = answering(new Response("<Error><Code>SomeWord</Code></Error>", { status }));
    await expect(blobs(send).get("a")).rejects.toThrow(`does not give a file: HTTP ${status} (SomeWord)`);
    expect(asked).toHaveLength(1);
  });

  test.each([429, 500, 503])("a %i is asked again, so often and no more", async (status) => {
    const again = answering(new Response("", { status }), new Response("piece"));
    expect(Buffer.from(await blobs(again.send).get("a")).toString()).toBe("piece");
    expect(again.asked).toHaveLength(2);
    const always = answering(new Response("", { status }), new Response("", { status }), new Response("too late"));
    await expect(blobs(always.send).put("a", new Uint8Array())).rejects.toThrow(`does not take a file: HTTP ${status}`);
    expect(always.asked).toHaveLength(2);
  });

  test("a connection that breaks is tried again, and its cause is kept", async () => {
    const broken = new TypeError("fetch failed");
    const again = answering(broken, new Response(""));
    await blobs(again.send).put("a", new Uint8Array());
    expect(again.asked.map(({ method }) => method)).toEqual(["PUT", "PUT"]);
    const gone = blobs(answering(broken, broken).send).remove("a");
    await expect(gone).rejects.toMatchObject({ message: expect.stringContaining("cannot be reached"), cause: broken });
  });

  test("removing what is not there is no error; another refusal is", async () => {
    await blobs(answering(new Response("", { status: 404 })).send).remove("a");
    const refused = answering(new Response("no words", { status: 403 }));
    await expect(blobs(refused.send).remove("a")).rejects.toThrow(/does not remove a file: HTTP 403$/);
  });

  test("the address is bucket, prefix and name; the token of passing credentials is signed with the rest", async () => {
    const { asked, send } = answering(new Response(""), new Response(""));
    await blobs(send, { sessionToken: "token", region: "eu-central-1", now: () => 0 }).put("a/b", Buffer.from("x"));
    await blobs(send, { now: () => 0 }).put("a/b", Buffer.from("x"));
    const [withToken, without] = asked;
    expect(withToken!.url).toBe("https://s3.example/bucket/prefix/a/b");
    expect(withToken!.headers.get("x-amz-security-token")).toBe("token");
    expect(withToken!.headers.get("x-amz-date")).toBe("19700101T000000Z");
    expect(withToken!.headers.get("authorization")).toMatch(
      /19700101\/eu-central-1\/s3\/aws4_request, SignedHeaders=host;x-amz-content-sha256;x-amz-date;x-amz-security-token,/,
    );
    expect(without!.headers.has("x-amz-security-token")).toBe(false);
    expect(without!.headers.get("authorization")).toContain("us-east-1");
  });

  test.each(["method", "path", "body", "time", "key"])("another %s has another signature", (what) => {
    const sign = (changed: string) =>
      signS3(
        {
          method: changed === "method" ? "PUT" : "GET",
          url: new URL(`https://s3.example/bucket/${changed === "path" ? "b" : "a"}`),
          body: Buffer.from(changed === "body" ? "y" : "x"),
          at: changed === "time" ? 1_000 : 0,
          region: "r",
        },
        { accessKeyId: "id", secretAccessKey: changed === "key" ? "other" : "secret" },
      )["authorization"];
    expect(sign(what)).not.toBe(sign("nothing"));
    expect(sign("nothing")).toBe(sign("nothing"));
  });

  test.each([{ retries: -1 }, { regions: "x" }, { url: "ftp://host/bucket" }])(
    "%j is refused when it is given",
    (more) => {
      expect(() => blobs(fetch, more)).toThrow(TypeError);
    },
  );
});

test("in a folder a piece is there as a whole or not at all, for its owner alone, and nothing is left over", async () => {
  const folder = newFolder();
  const blobs = createFolderBlobs(folder);
  const pieces = ["a", "b"].map((letter) => Buffer.alloc(400_000, letter));
  await blobs.put("s/piece", pieces[0]!);
  const written = Promise.all(Array.from({ length: 6 }, (_, n) => blobs.put("s/piece", pieces[n % 2]!)));
  for (let n = 0; n < 12; n++) {
    const read = Buffer.from(await blobs.get("s/piece"));
    expect(pieces.some((piece) => piece.equals(read))).toBe(true);
  }
  await written;
  expect(readdirSync(join(folder, "s"))).toEqual(["piece"]);
  expect(statSync(join(folder, "s", "piece")).mode & 0o777).toBe(0o600);
  expect(statSync(join(folder, "s")).mode & 0o777).toBe(0o700);
});

test("a piece is named after its session and its bytes", () => {
  const [a, b] = [Buffer.from("a"), Buffer.from("b")];
  expect(blobName("s", a)).toMatch(/^s\/[0-9a-f]{64}$/);
  expect(blobName("s", a)).toBe(blobName("s", Buffer.from("a")));
  expect(new Set([blobName("s", a), blobName("s", b), blobName("t", a)]).size).toBe(3);
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
