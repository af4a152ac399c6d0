// Our MCP server with the tools, prompts and resources the conformance suite looks for, defined as anybody would define
// theirs. The suite knows no token: a small proxy adds it, and passes everything else (Host and Origin too) as it came.
import { mkdtempSync } from "node:fs";
import { createServer, request as send } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createEngine } from "../dist/index.js";
import { createElicitingApprover, createServedPrompts, serveMcp } from "../dist/mcp.js";
import { askingTools } from "./mcp-conformance-asking.mjs";
import { image, pause, resource, tool, wav, png } from "./mcp-conformance-parts.mjs";

const prompts = createServedPrompts([
  { name: "test_simple_prompt", description: "Plain words.", get: () => "This is a simple prompt for testing." },
  {
    name: "test_prompt_with_arguments",
    description: "Words with two others in them.",
    arguments: [
      { name: "arg1", description: "the first", required: true, complete: ["test one", "test two", "other"] },
      { name: "arg2", description: "the second", required: true },
    ],
    get: ({ arg1, arg2 }) => `Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`,
  },
  {
    name: "test_prompt_with_embedded_resource",
    description: "Words about a resource, and the resource.",
    arguments: [{ name: "resourceUri", description: "its address", required: true }],
    get: ({ resourceUri }) => [
      { role: "user", content: resource(resourceUri, "Embedded resource content for testing.") },
      { role: "user", content: "Please process the embedded resource above." },
    ],
  },
  {
    name: "test_prompt_with_image",
    description: "Words about an image, and the image.",
    get: () => [
      { role: "user", content: image },
      { role: "user", content: "Please analyze the image above." },
    ],
  },
  {
    name: "test_input_required_result_prompt",
    description: "Asks what it is about before it says anything.",
    async get(_values, { ask }) {
      const fields = { type: "object", properties: { context: { type: "string" } }, required: ["context"] };
      const { user_context: answer } = await ask({
        user_context: { kind: "form", message: "What context should the prompt use?", fields },
      });
      return `Use this context: ${answer.content.context ?? "none"}`;
    },
  },
]);

const approver = createElicitingApprover();
const engine = createEngine({
  workspace: mkdtempSync(join(tmpdir(), "callgate-conformance-")),
  approver,
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
        await pause(50);
      }
      return "done";
    }),
    tool("test_tool_with_logging", async (_input, ctx) => {
      for (const line of ["Tool execution started", "Tool processing data", "Tool execution completed"]) {
        ctx.log.info(line);
        await pause(50);
      }
      return "Tool with logging executed successfully";
    }),
    tool("test_logging_tool", (_input, ctx) => {
      ctx.log.info("heard by those who asked for it");
      return "logged";
    }),
    tool("test_reconnection", async () => {
      await pause(100);
      return "Reconnection test completed";
    }),
    tool("test_trigger_tool_change", () => {
      engine.registry.add(tool(`test_added_${engine.registry.list().length}`, () => "added"));
      return "changed";
    }),
    tool("test_trigger_prompt_change", () => {
      const name = `test_added_${prompts.list().length}`;
      prompts.add({ name, description: "Added while we ran.", get: () => name });
      return "changed";
    }),
    tool("test_custom_header", ({ region }) => `in ${region}`, {
      type: "object",
      properties: { region: { type: "string", "x-mcp-header": "Region" } },
      required: ["region"],
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
    ...askingTools,
  ],
});

const texts = {
  "test://static-text": "This is the content of the static text resource.",
  "test://watched-resource": "Watched resource content",
};
const watchers = new Set();
const resources = {
  list: async () => [
    ...Object.keys(texts).map((uri) => ({ uri, name: uri.slice(7), mediaType: "text/plain" })),
    { uri: "test://static-binary", name: "static-binary", mediaType: "image/png" },
  ],
  async read(uri) {
    if (uri === "test://static-binary") return { mediaType: "image/png", data: png };
    if (Object.hasOwn(texts, uri)) return { mediaType: "text/plain", text: texts[uri] };
    const id = /^test:\/\/template\/([^/]+)\/data$/.exec(uri)?.[1];
    if (id === undefined) return undefined;
    return { mediaType: "application/json", text: JSON.stringify({ id, templateTest: true, data: `Data for ${id}` }) };
  },
  linkTo: () => undefined,
  templates: [
    {
      uriTemplate: "test://template/{id}/data",
      name: "template",
      mimeType: "application/json",
      complete: { id: ["1", "2", "3"] },
    },
  ],
  onUpdate(listener) {
    watchers.add(listener);
    return () => watchers.delete(listener);
  },
};
setInterval(() => watchers.forEach((tell) => tell("test://watched-resource")), 500).unref();

const tell = () => undefined;
const serving = await serveMcp({ engine, approver, prompts, resources, port: 0, version: "0", tell });
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
