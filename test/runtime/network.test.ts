import { brotliCompressSync, deflateSync, gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { createFetch } from "../../src/runtime/network.ts";
import { whileCollecting } from "../garbage.ts";
import { serve, toLoopback } from "./network-hosts.ts";

const free = { network: ["*.test:*", "*.other:*"], allowPrivate: true, lookup: toLoopback } as const;

test("a granted host answers as with any fetch", async () => {
  const port = await serve((request, response) => {
    let body = "";
    request.setEncoding("utf8").on("data", (text: string) => (body += text));
    request.on("end", () =>
      response.writeHead(201, { "x-a": "1" }).end(`${request.method} ${request.headers["content-type"]} ${body}`),
    );
  });
  const response = await createFetch(free)(`http://api.test:${port}/`, {
    method: "POST",
    body: JSON.stringify({ a: 1 }),
    headers: { "content-type": "application/json" },
  });
  expect([response.status, response.headers.get("x-a"), response.url]).toEqual([201, "1", `http://api.test:${port}/`]);
  expect(await response.text()).toBe('POST application/json {"a":1}');
});

test("compressed bodies arrive readable, empty ones empty", async () => {
  const port = await serve((request, response) => {
    if (request.url === "/none") response.writeHead(204).end();
    else response.writeHead(200, { "content-encoding": "gzip" }).end(gzipSync("packed"));
  });
  const fetch = createFetch(free);
  expect(await (await fetch(`http://a.test:${port}/`)).text()).toBe("packed");
  expect(await (await fetch(`http://a.test:${port}/none`)).text()).toBe("");
});

test("hosts that were not granted are not contacted", async () => {
  let contacts = 0;
  const port = await serve((_request, response) => response.end(String(++contacts)));
  for (const network of ["off", [], ["other.test"]] as const) {
    await expect(
      createFetch({ network, lookup: toLoopback, allowPrivate: true })(`http://a.test:${port}/`),
    ).rejects.toMatchObject({ code: "network", data: { host: "a.test", port, refused: true } });
  }
  expect(contacts).toBe(0);
});

test("a private address is refused even with the whole network on, and allowed when it is named", async () => {
  const port = await serve((_request, response) => response.end("local"));
  await expect(createFetch({ network: "on" })(`http://127.0.0.1:${port}/`)).rejects.toMatchObject({ code: "network" });
  await expect(
    createFetch({ network: "on", lookup: toLoopback })(`http://rebound.test:${port}/`),
  ).rejects.toMatchObject({ code: "network" });
  expect(await (await createFetch({ network: [`127.0.0.1:${port}`] })(`http://127.0.0.1:${port}/`)).text()).toBe(
    "local",
  );
});

test("a redirect is checked like the first request", async () => {
  const port = await serve((_request, response) => response.writeHead(302, { location: "http://evil.example/" }).end());
  await expect(createFetch(free)(`http://a.test:${port}/`)).rejects.toMatchObject({
    code: "network",
    data: { host: "evil.example" },
  });
});

test("a redirect to another origin carries no credentials, and a POST becomes a GET", async () => {
  const port = await serve((request, response) => {
    if (request.url === "/start") response.writeHead(302, { location: `http://b.other:${port}/end` }).end();
    else
      response.end(
        JSON.stringify([
          request.method,
          request.headers.authorization ?? null,
          request.headers.cookie ?? null,
          request.headers["x-kept"],
        ]),
      );
  });
  const init = { method: "POST", body: "x", headers: { authorization: "secret", cookie: "a=b", "x-kept": "yes" } };
  const response = await createFetch(free)(`http://a.test:${port}/start`, init);
  expect(await response.json()).toEqual(["GET", null, null, "yes"]);
});

test("redirects can be taken by hand, forbidden, and end somewhere", async () => {
  const port = await serve((_request, response) => response.writeHead(307, { location: "/again" }).end());
  const fetch = createFetch(free);
  expect((await fetch(`http://a.test:${port}/`, { redirect: "manual" })).status).toBe(307);
  await expect(fetch(`http://a.test:${port}/`, { redirect: "error" })).rejects.toMatchObject({ code: "network" });
  await expect(fetch(`http://a.test:${port}/`)).rejects.toMatchObject({ code: "network" });
});

test("only http and https, whatever a redirect says", async () => {
  const port = await serve((_request, response) => response.writeHead(302, { location: "file:///etc/passwd" }).end());
  await expect(createFetch(free)(`http://a.test:${port}/`)).rejects.toMatchObject({ code: "network" });
});

test("stopping the call stops the request", async () => {
  const port = await serve(() => {});
  const controller = new AbortController();
  const pending = createFetch({ ...free, signal: controller.signal })(`http://a.test:${port}/`);
  setTimeout(() => controller.abort(new Error("stopped")), 50);
  await expect(pending).rejects.toThrow("stopped");
});

test("an address nobody answers at is told as such", async () => {
  await expect(createFetch(free)("http://a.test:1/")).rejects.toMatchObject({ code: "network" });
});

/** What a server on loopback was asked, in order. */
async function recorded(answer: (path: string) => readonly [number, Record<string, string>]) {
  const asked: { method: string; url: string; body: string; headers: Record<string, unknown> }[] = [];
  const port = await serve((request, response) => {
    let body = "";
    request.setEncoding("utf8").on("data", (text: string) => (body += text));
    request.on("end", () => {
      const { method = "", url = "", headers } = request;
      asked.push({ method, url, body, headers });
      const [status, more] = answer(url);
      response.writeHead(status, more).end("done");
    });
  });
  return { asked, port };
}

test.each([
  [301, "GET", "GET", false],
  [301, "POST", "GET", false],
  [301, "PUT", "PUT", true],
  [302, "POST", "GET", false],
  [302, "DELETE", "DELETE", true],
  [303, "POST", "GET", false],
  [303, "PUT", "GET", false],
  [303, "HEAD", "HEAD", false],
  [307, "POST", "POST", true],
  [308, "PUT", "PUT", true],
] as const)("after %i, %s goes on as %s", async (status, method, next, keepsBody) => {
  const { asked, port } = await recorded((url) => (url === "/start" ? [status, { location: "/end" }] : [200, {}]));
  const body = method === "GET" || method === "HEAD" ? {} : { body: "body", headers: { "content-type": "text/x" } };
  const response = await createFetch(free)(`http://a.test:${port}/start`, { method, ...body });
  expect([response.status, response.url]).toEqual([200, `http://a.test:${port}/end`]);
  expect(asked.map((one) => [one.method, one.url])).toEqual([
    [method, "/start"],
    [next, "/end"],
  ]);
  expect(asked[1]?.body).toBe(keepsBody ? "body" : "");
  expect(asked[1]?.headers["content-type"]).toBe(keepsBody ? "text/x" : undefined);
});

test("a status that only looks like a redirect, and one that leads nowhere, are answers", async () => {
  const { port } = await recorded((url) => (url === "/304" ? [304, { location: "/x" }] : [302, {}]));
  expect((await createFetch(free)(`http://a.test:${port}/304`)).status).toBe(304);
  expect((await createFetch(free)(`http://a.test:${port}/302`)).status).toBe(302);
});

test("credentials stay with the origin they were given for, and are not given back after a detour", async () => {
  const { asked, port } = await recorded((url) =>
    url === "/1"
      ? [307, { location: `http://a.test:${port}/2` }]
      : url === "/2"
        ? [307, { location: `http://b.other:${port}/3` }]
        : url === "/3"
          ? [307, { location: `http://a.test:${port}/4` }]
          : [200, {}],
  );
  await createFetch(free)(`http://a.test:${port}/1`, { headers: { authorization: "secret", cookie: "c", "x-a": "1" } });
  expect(asked.map(({ url, headers }) => [url, headers["authorization"], headers["cookie"], headers["x-a"]])).toEqual([
    ["/1", "secret", "c", "1"],
    ["/2", "secret", "c", "1"],
    ["/3", undefined, undefined, "1"],
    ["/4", undefined, undefined, "1"],
  ]);
});

test("a request that changes something carries the call's key, each its own; one that reads does not", async () => {
  const { asked, port } = await recorded(() => [200, {}]);
  const fetch = createFetch({ ...free, idempotencyKey: "key" });
  const ask = (init: RequestInit) => fetch(`http://a.test:${port}/`, init);
  await ask({});
  await ask({ method: "HEAD" });
  await ask({ method: "POST", body: "1" });
  await ask({ method: "PUT", body: "2" });
  await ask({ method: "POST", body: "3", headers: { "idempotency-key": "own" } });
  await ask({ method: "DELETE" });
  expect(asked.map(({ headers }) => headers["idempotency-key"])).toEqual([
    undefined,
    undefined,
    "key",
    "key/2",
    "own",
    "key/3",
  ]);
  await createFetch(free)(`http://a.test:${port}/`, { method: "POST", body: "x" });
  expect(asked.at(-1)?.headers).not.toHaveProperty("idempotency-key");
});

test.each([
  ["deflate", deflateSync],
  ["br", brotliCompressSync],
  ["GZIP", gzipSync],
] as const)("%s is read as what it packs, and broken data is an error, not the end", async (encoding, pack) => {
  const packed = pack("packed ".repeat(1_000));
  const port = await serve((request, response) =>
    response
      .writeHead(200, { "content-encoding": encoding })
      .end(request.url === "/whole" ? packed : packed.subarray(0, packed.length >> 1)),
  );
  expect(await (await createFetch(free)(`http://a.test:${port}/whole`)).text()).toBe("packed ".repeat(1_000));
  await expect((await createFetch(free)(`http://a.test:${port}/half`)).text()).rejects.toThrow();
});

test("a body that breaks off is an error, not the end", async () => {
  const port = await serve((_request, response) => {
    response.writeHead(200, { "content-length": "100" }).write("half");
    setImmediate(() => response.destroy());
  });
  const response = await createFetch(free)(`http://a.test:${port}/`);
  await expect(response.text()).rejects.toThrow();
});

test("stopping the call stops a body that is being read, and a stopped call asks nothing", async () => {
  let asked = 0;
  const port = await serve((_request, response) => {
    asked++;
    response.writeHead(200).write("beginning");
  });
  const controller = new AbortController();
  const fetch = createFetch({ ...free, signal: controller.signal });
  const response = await fetch(`http://a.test:${port}/`);
  const reading = response.text();
  controller.abort(new Error("stopped"));
  await expect(reading).rejects.toThrow();
  await expect(fetch(`http://a.test:${port}/`)).rejects.toThrow("stopped");
  expect(asked).toBe(1);
});

test("either signal stops a request: the call's, or the one that the handler gave", async () => {
  const port = await serve(() => {});
  for (const own of [true, false]) {
    const [call, given] = [new AbortController(), new AbortController()];
    const pending = createFetch({ ...free, signal: call.signal })(`http://a.test:${port}/`, { signal: given.signal });
    (own ? given : call).abort(new Error(own ? "mine" : "theirs"));
    await expect(pending).rejects.toThrow(own ? "mine" : "theirs");
  }
});

test("a name is looked up once for each request, and the connection uses an address that was checked", async () => {
  const port = await serve((_request, response) => response.end("here"));
  let looked = 0;
  const lookup = async () => {
    // The first answer is checked; a second one would lead somewhere else.
    looked++;
    return [{ address: looked === 1 ? "127.0.0.1" : "127.0.0.2", family: 4 }];
  };
  const response = await createFetch({ ...free, lookup })(`http://a.test:${port}/`);
  expect([await response.text(), looked]).toEqual(["here", 1]);
});

test("headers that come several times arrive as they came", async () => {
  const port = await serve((_request, response) =>
    response
      .writeHead(200, [
        ["set-cookie", "a=1"],
        ["set-cookie", "b=2"],
        ["x-many", "1"],
        ["x-many", "2"],
      ] as never)
      .end(),
  );
  const { headers } = await createFetch(free)(`http://a.test:${port}/`);
  expect([headers.getSetCookie(), headers.get("x-many")]).toEqual([["a=1", "b=2"], "1, 2"]);
});

test.each(["/head", "/body"])("a request that gets no answer (%s) ends with its time or its call", async (path) => {
  const port = await serve((request, response) => void (request.url === "/body" && response.write("a beginning")));
  const call = new AbortController();
  const fetch = createFetch({ ...free, signal: call.signal });
  const read = async (init: RequestInit) => (await fetch(`http://a.test:${port}${path}`, init)).text();
  await whileCollecting(async () => {
    await expect(read({ signal: AbortSignal.timeout(200) })).rejects.toThrow(/aborted/);
    setTimeout(() => call.abort(), 200);
    await expect(read({})).rejects.toThrow(/aborted/);
  });
});
