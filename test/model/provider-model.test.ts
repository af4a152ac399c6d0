/** Models by provider: the right wire, address and key, and no key to anybody it was not meant for. */
import { createServer, type IncomingHttpHeaders, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createProviderModel, type ProviderModelOptions } from "../../src/model/index.ts";

let server: Server;
let baseUrl: string;
const seen: { url: string; headers: IncomingHttpHeaders }[] = [];
beforeAll(async () => {
  server = createServer((request, response) => {
    seen.push({ url: request.url ?? "", headers: request.headers });
    response.writeHead(400, { "content-type": "application/json" }).end('{"error":{"message":"no"}}');
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
});
afterAll(() => server.close());

const env = { OPENAI_API_KEY: "sk-openai", ANTHROPIC_API_KEY: "sk-anthropic" };

async function requestOf(options: Partial<ProviderModelOptions>) {
  const model = await createProviderModel({ model: "m", baseUrl, env, ...options });
  const input = [{ type: "message", role: "user", content: [{ type: "text", text: "hi" }] }] as const;
  for await (const _event of model.ask({ model: "m", input, tools: [] }, new AbortController().signal)) continue;
  model.close();
  return seen.at(-1)!;
}

test.each([
  [{ provider: "openai" }, "/v1/responses", "authorization", "Bearer sk-openai"],
  [{ provider: "openai", wire: "chat" }, "/v1/chat/completions", "authorization", "Bearer sk-openai"],
  [{ provider: "anthropic" }, "/v1/messages", "x-api-key", "sk-anthropic"],
  [{ provider: "anthropic", apiKey: "mine" }, "/v1/messages", "x-api-key", "mine"],
  [{ provider: "ollama", apiKey: "mine" }, "/v1/chat/completions", "authorization", undefined],
  [{ apiKey: "mine" }, "/v1/chat/completions", "authorization", "Bearer mine"],
] as const)("%j speaks its wire with its key", async (options, url, header, value) => {
  const request = await requestOf(options);
  expect(request.url).toBe(url);
  expect(request.headers[header]).toBe(value);
});

test.each(["responses", "messages", "chat", "gemini"] as const)(
  "an address that merely speaks %s is not sent a provider's key",
  async (wire) => {
    const { headers } = await requestOf({ wire });
    expect(JSON.stringify(headers)).not.toContain("sk-");
  },
);

test("a provider nobody knows is a TypeError that names those there are", async () => {
  await expect(createProviderModel({ provider: "nobody", model: "m" })).rejects.toThrow(
    /there is no provider 'nobody' \(openai, /,
  );
});
