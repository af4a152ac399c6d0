import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { engineIn, newWorkspace } from "../workspace.ts";

let server: Server;
let origin: string;
beforeAll(async () => {
  server = createServer((request, response) => {
    if (request.url === "/missing") response.statusCode = 404;
    request
      .on("data", () => undefined)
      .on("end", () => {
        response.setHeader("content-type", "text/plain");
        response.end(`${request.method} ${request.url} ${String(request.headers["x-test"] ?? "")}`);
      });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => server.close());

const open = (ws = newWorkspace()) =>
  engineIn(ws, { sandbox: "full-access", approver: { ask: async () => ({ answer: "once" }) }, approval: "on-request" });

test("a request answers with status, headers and body", async () => {
  const answer = JSON.parse(
    await open().ask("internal_network_request", {
      url: `${origin}/x`,
      method: "POST",
      body: "b",
      headers: { "x-test": "h" },
    }),
  ) as object;
  expect(answer).toMatchObject({ status: 200, headers: { "content-type": "text/plain" }, body: "POST /x h" });
  const patient = { url: `${origin}/x`, timeout: 10 ** 12 };
  expect(await open().ask("internal_network_request", patient)).toContain('"status": 200');
  await expect(open().ask("internal_network_request", { url: "file:///etc/passwd" })).rejects.toThrow(/http and https/);
  await expect(open().ask("internal_network_request", { url: "not an address" })).rejects.toThrow(/not an address/);
});

test("a download lands in the workspace; a failed one leaves nothing", async () => {
  const ws = newWorkspace();
  await open(ws).ask("internal_network_download", { url: `${origin}/f`, path: "d/f.txt" });
  expect(readFileSync(join(ws, "d/f.txt"), "utf8")).toContain("GET /f");
  await expect(open(ws).ask("internal_network_download", { url: `${origin}/missing`, path: "m" })).rejects.toThrow(
    /404/,
  );
});

test("without leave the network is not reached", async () => {
  await expect(engineIn(newWorkspace()).ask("internal_network_request", { url: `${origin}/x` })).rejects.toThrow();
});

test("system facts are told, secrets are not", async () => {
  process.env["CALLGATE_TEST_API_KEY"] = "hidden";
  process.env["CALLGATE_TEST_PLAIN"] = "shown";
  process.env["CALLGATE_TEST_ADDRESS"] = "redis://user:pass@host/0";
  try {
    const { ask } = engineIn(newWorkspace());
    const all = await ask("internal_system_env", {});
    expect(all).toContain('"CALLGATE_TEST_PLAIN": "shown"');
    expect(all).not.toMatch(/hidden|user:pass/);
    expect(await ask("internal_system_env", { name: "CALLGATE_TEST_API_KEY" })).toContain("not shown");
    await expect(ask("internal_system_env", { name: "__proto__" })).rejects.toThrow(/no environment variable/);
    expect(JSON.parse(await ask("internal_system_info", {}))).toMatchObject({
      node: process.version,
      platform: process.platform,
    });
  } finally {
    for (const name of ["API_KEY", "PLAIN", "ADDRESS"]) delete process.env[`CALLGATE_TEST_${name}`];
  }
});
