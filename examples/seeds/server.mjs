/** A small MCP server written by hand: two tools, one resource, one template, over stdin and stdout. */
import { createInterface } from "node:readline";

const send = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
const text = (words) => ({ content: [{ type: "text", text: words }] });

const answers = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion,
    capabilities: { tools: {}, resources: {}, experimental: { "codex/sandbox-state": {} } },
    serverInfo: { name: "notes", version: "1" },
  }),
  "tools/list": () => ({
    tools: [
      {
        name: "add",
        description: "Adds two numbers.",
        inputSchema: { type: "object", properties: { a: { type: "integer" }, b: { type: "integer" } } },
        annotations: { readOnlyHint: true },
      },
      { name: "sandbox", description: "The sandbox this server was told of.", inputSchema: { type: "object" } },
    ],
  }),
  "tools/call": ({ name, arguments: input }) => text(name === "add" ? String(input.a + input.b) : told.join(" ")),
  "resources/list": () => ({ resources: [{ uri: "note://1", name: "first note", mimeType: "text/plain" }] }),
  "resources/templates/list": () => ({ resourceTemplates: [{ uriTemplate: "note://{number}", name: "a note" }] }),
  "resources/read": ({ uri }) => ({ contents: [{ uri, mimeType: "text/plain", text: `the note at ${uri}` }] }),
  ping: () => ({}),
};

const told = [];
createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params = {} } = JSON.parse(line);
  if (method === "codex/sandbox-state/update") told.push(params.sandboxPolicy.type);
  if (id === undefined) return;
  const answer = answers[method];
  if (answer === undefined) send({ id, error: { code: -32601, message: `no ${method} here` } });
  else send({ id, result: answer(params) });
});
