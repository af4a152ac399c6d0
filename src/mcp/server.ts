/** An engine as an MCP server: every governed tool for any MCP client, every call down the same line. */
import { ProtocolError, ProtocolErrorCode, Server } from "@modelcontextprotocol/server";
import type { AnyTool, Engine } from "../index.ts";
import { describeResult, describeTool } from "./describe-tool.ts";
import type { ServedResources } from "./served-resources.ts";
import { createServedCalls, type ServedCalls } from "./served-calls.ts";

export interface McpServerOptions {
  readonly engine: Engine;
  /** Which tools are shown; left out: all. */
  readonly shows?: (tool: AnyTool) => boolean;
  readonly version: string;
  /** Shared by all connections to one engine, so that a later request can answer an earlier one's question. */
  readonly calls?: ServedCalls;
  readonly resources?: ServedResources;
  /** Tell this connection when the tools change. Off where something else does. */
  readonly follows?: boolean;
}

const resourcesPerPage = 100;

/** One server object per connection: two clients never share one. */
export function createMcpServer(options: McpServerOptions): Server {
  const { engine, shows = () => true, version, resources } = options;
  const calls = options.calls ?? createServedCalls({ engine });
  const server = new Server(
    { name: "callgate", version },
    { capabilities: { tools: { listChanged: true }, ...(resources ? { resources: {} } : {}) } },
  );

  server.setRequestHandler("tools/list", () => {
    const situation = engine.situation();
    return {
      tools: engine.registry
        .list()
        .filter(shows)
        .map((tool) => describeTool(tool, situation)),
    };
  });
  server.setRequestHandler("tools/call", async (request, ctx) => {
    const { name, arguments: input } = request.params;
    const tool = engine.registry.find(name);
    // A tool that is not shown is not there: its name is left for the registry to refuse.
    const known = tool !== undefined && shows(tool) ? tool.name : `${name} (not offered here)`;
    const client = server.getClientCapabilities();
    const served = await calls.serve({ name: known, input, client }, ctx);
    return "ended" in served ? describeResult(served.ended, (file) => resources?.linkTo(file)) : served.asks;
  });
  if (resources) serveResources(server, resources);
  if (options.follows !== false)
    // oxlint-disable-next-line prefer-add-event-listener -- the protocol library has only this hook
    server.onclose = engine.registry.onChange(() => void server.sendToolListChanged().catch(() => undefined));
  return server;
}

function serveResources(server: Server, resources: ServedResources): void {
  server.setRequestHandler("resources/list", async ({ params }) => {
    const all = await resources.list();
    const from = Number(params?.cursor ?? 0);
    if (!Number.isSafeInteger(from) || from < 0)
      throw new ProtocolError(ProtocolErrorCode.InvalidParams, "that is no cursor of ours");
    const next = from + resourcesPerPage;
    return {
      resources: all.slice(from, next).map(({ mediaType, ...resource }) => ({ ...resource, mimeType: mediaType })),
      ...(next < all.length ? { nextCursor: String(next) } : {}),
    };
  });
  server.setRequestHandler("resources/templates/list", () => ({ resourceTemplates: [...resources.templates] }));
  server.setRequestHandler("resources/read", async ({ params: { uri } }) => {
    const found = await resources.read(uri);
    if (found === undefined)
      throw new ProtocolError(ProtocolErrorCode.ResourceNotFound, `there is no resource ${uri}`, { uri });
    const content = "text" in found ? { text: found.text } : { blob: found.data };
    return { contents: [{ uri, mimeType: found.mediaType, ...content }] };
  });
}
