// Our MCP server with the tools and resources the conformance suite looks for, defined as anybody would define theirs.
// The suite knows no token: a small proxy adds it, and passes everything else (Host and Origin too) as it came.
import { mkdtempSync } from "node:fs";
import { createServer, request as send } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createEngine, defineTool } from "../dist/index.js";
import { serveMcp } from "../dist/mcp.js";

const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const wav = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=";
const nothing = { type: "object", properties: {} };
const tool = (name, run, input = nothing) => defineTool({ name, description: name, input, mutates: false, run });
const image = { type: "image", mediaType: "image/png", data: png };
const resource = (uri, text) => ({ type: "resource", uri, mediaType: "text/plain", text });

const engine = createEngine({
  workspace: mkdtempSync(join(tmpdir(), "callgate-conformance-")),
  approval: "never",
  sandbox: "full-access",
  tools: [
    tool("test_simple_text", () => "This is a simple text response for testing."),
    tool("test_image_content", () => image),
    tool("test_audio_content", () => ({ type: "audio", mediaType: "audio/wav", data: wav })),
    tool("test_embedded_resource", () => resource("test://embedded-resource", "This is an embedded resource content.")),
    tool("test_multiple_content_types", () => [
      { type: "text", text: "Multiple content types test:" },
      image,
      resource("test://mixed-content-resource", '{"test":"data","value":123}'),
    ]),
    tool("test_error_handling", () => {
      throw new Error("This tool intentionally returns an error for testing");
    }),
    tool("test_tool_with_progress", async (_input, ctx) => {
      for (const progress of [0, 50, 100]) {
        ctx.progress({ progress, total: 100 });
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
      return "done";
    }),
    tool("test_trigger_tool_change", () => {
      engine.registry.add(tool(`test_added_${engine.registry.list().length}`, () => "added"));
      return "changed";
    }),
    tool("json_schema_2020_12_tool", () => "ok", {
      $schema: "https://json-schema.org/draft/2020-12/schema",
      type: "object",
      $defs: {
        address: {
          $anchor: "addressDef",
          type: "object",
          properties: { street: { type: "string" }, city: { type: "string" } },
        },
      },
      properties: {
        name: { type: "string" },
        address: { $ref: "#/$defs/address" },
        contactMethod: { type: "string", enum: ["phone", "email"] },
        phone: { type: "string" },
        email: { type: "string" },
      },
      allOf: [{ anyOf: [{ required: ["phone"] }, { required: ["email"] }] }],
      if: { properties: { contactMethod: { const: "phone" } }, required: ["contactMethod"] },
      // oxlint-disable-next-line no-thenable -- a keyword of JSON Schema
      then: { required: ["phone"] },
      else: { required: ["email"] },
      additionalProperties: false,
    }),
  ],
});

const texts = { "test://static-text": "This is the content of the static text resource." };
const serving = await serveMcp({
  engine,
  port: 0,
  version: "0",
  tell: () => undefined,
  resources: {
    list: async () => [
      { uri: "test://static-text", name: "static text", mediaType: "text/plain" },
      { uri: "test://static-binary", name: "static binary", mediaType: "image/png" },
    ],
    async read(uri) {
      if (uri === "test://static-binary") return { mediaType: "image/png", data: png };
      if (Object.hasOwn(texts, uri)) return { mediaType: "text/plain", text: texts[uri] };
      const id = /^test:\/\/template\/([^/]+)\/data$/.exec(uri)?.[1];
      if (id === undefined) return undefined;
      return {
        mediaType: "application/json",
        text: JSON.stringify({ id, templateTest: true, data: `Data for ${id}` }),
      };
    },
    linkTo: () => undefined,
    templates: [{ uriTemplate: "test://template/{id}/data", name: "template", mimeType: "application/json" }],
  },
});

const { port } = new URL(serving.url);
const proxy = createServer((request, response) => {
  const headers = { ...request.headers, authorization: `Bearer ${serving.token}` };
  const onward = send({ host: "127.0.0.1", port, path: request.url, method: request.method, headers }, (answer) => {
    response.writeHead(answer.statusCode, answer.headers);
    answer.pipe(response);
  });
  onward.on("error", () => response.destroy());
  response.on("close", () => onward.destroy());
  request.pipe(onward);
});
proxy.listen(Number(process.argv[2] ?? 0), "127.0.0.1", () =>
  process.stdout.write(`http://127.0.0.1:${proxy.address().port}/mcp\n`),
);
process.once("SIGTERM", () => process.exit(0));
