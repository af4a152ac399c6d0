/** A secret value stands in many places of a request. It leaves in none of them. */
import { expect, test } from "vitest";
import type { Json } from "../../src/base/json.ts";
import { ask, gateway, rawUpstream, type Body } from "./gateways.ts";

const secret = "sk-very-secret-value-1234";

const user: Json = { type: "message", role: "user", content: "go on" };
const shellCall: Json = {
  type: "shell_call",
  call_id: "c",
  action: { commands: ["env"] },
  environment: { type: "local" },
};
const run = (stdout: string): Json => ({ stdout, stderr: "", outcome: { type: "exit", exit_code: 0 } });

const places: readonly (readonly [name: string, body: Body])[] = [
  ["what was said", { input: `it is ${secret}` }],
  ["the instructions", { input: "hi", instructions: `use ${secret}` }],
  [
    "the output of a shell, as it came",
    { input: [shellCall, { type: "shell_call_output", call_id: "c", output: [run(`TOKEN=${secret}`)] }, user] },
  ],
  [
    "a tool's description",
    {
      input: "hi",
      tools: [
        {
          type: "function",
          name: "t",
          description: `its key is ${secret}`,
          parameters: { type: "object" },
          strict: false,
        },
      ],
    },
  ],
  [
    "a tool's schema",
    {
      input: "hi",
      tools: [
        {
          type: "function",
          name: "t",
          parameters: { type: "object", properties: { key: { type: "string", enum: [secret] } } },
          strict: false,
        },
      ],
    },
  ],
  ["a setting that only this API has", { input: "hi", metadata: { note: secret } }],
  ["an item that nobody knows", { input: [{ type: "odd_item", text: secret }, user] }],
  [
    "a part that nobody knows",
    { input: [{ type: "message", role: "user", content: [{ type: "odd_part", text: secret }] }, user] },
  ],
  [
    "a refusal",
    {
      input: [
        { type: "message", role: "assistant", content: [{ type: "refusal", refusal: `not with ${secret}` }] },
        user,
      ],
    },
  ],
];

test.each(places)("a secret in %s does not leave", async (_name, body) => {
  const upstream = await rawUpstream((_request, response) => {
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify({ object: "response", status: "completed", output: [] }));
  });
  const url = await gateway({
    routes: [{ match: "*", targets: [{ baseUrl: upstream.baseUrl, wire: "responses", model: "m" }] }],
    secrets: [secret],
  });
  await ask(url, "responses", { model: "m", stream: false, ...body });
  expect(upstream.requests).toHaveLength(1);
  expect(upstream.requests[0]?.body).not.toContain(secret);
  expect(upstream.requests[0]?.body).toMatch(/\[secret:[0-9a-f]{12}\]/);
});
