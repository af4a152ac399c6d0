import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { createFetch } from "../../src/runtime/network.ts";
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
