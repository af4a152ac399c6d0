/** An engine as an MCP server: every governed tool for any MCP client, with every call on the same line. */
import { McpServer, type ServerContext } from "@modelcontextprotocol/server";
import type { AnyTool, Conversation, Engine } from "../../index.ts";
import { describeResult, describeTool, inputSchema } from "./describe-tool.ts";
import { createMultiRound, type MultiRound } from "./multi-round.ts";
import { serveCompletions } from "./serve-completions.ts";
import { servePrompts } from "./serve-prompts.ts";
import { serveResources } from "./serve-resources.ts";
import { createServedCalls, type ServedCalls } from "./served-calls.ts";
import type { ServedPrompts } from "./served-prompts.ts";
import type { ResourcesFor } from "./serve-options.ts";

export interface McpServerOptions {
  readonly engine: Engine;
  readonly version: string;
  /** Which tools are shown; left out: all. */
  readonly shows?: (tool: AnyTool) => boolean;
  /** The conversation that the calls belong to. Left out: one for this connection, which ends with it. */
  readonly conversation?: (request: ServerContext | undefined) => Conversation;
  readonly resources?: ResourcesFor;
  readonly prompts?: ServedPrompts;
  /**
   * These two are shared by all connections to one engine, so that a later request can answer an earlier
   * one's question.
   */
  readonly calls?: ServedCalls;
  readonly multiRound?: MultiRound;
  /** Whether to tell this connection about changes. False if something else does. */
  readonly follows?: boolean;
}

/** One server object per connection: two clients never share one. */
export function createMcpServer(options: McpServerOptions): McpServer {
  const { engine, version, shows = () => true, prompts } = options;
  const multiRound = options.multiRound ?? createMultiRound();
  const calls = options.calls ?? createServedCalls({ multiRound });
  let own: Conversation | undefined;
  const conversation = options.conversation ?? (() => (own ??= engine.conversation()));
  const { resources } = options;
  const resourcesOf = resources && ((request?: ServerContext) => resources(conversation(request)));
  const find = (name: string): AnyTool | undefined => {
    const tool = engine.registry.find(name);
    return tool !== undefined && shows(tool) ? tool : undefined;
  };

  const product = new McpServer({ name: "callgate", version });
  const { server } = product;
  // The library asks for it when headers repeat arguments (`x-mcp-header`), and knows only tools that were registered
  // with it.
  product.toolInputSchemaJson = (name) => {
    const tool = find(name);
    return tool && inputSchema(tool);
  };
  server.registerCapabilities({ tools: { listChanged: true }, logging: {} });
  server.setRequestHandler("tools/list", () => {
    const situation = engine.situation();
    const names = engine.registry.spellings();
    const listed = engine.registry.list().filter(shows);
    return { tools: listed.map((tool) => describeTool(tool, names.get(tool.name) ?? tool.name, situation)) };
  });
  server.setRequestHandler("tools/call", async ({ params }, ctx) => {
    // A tool that is not shown does not exist for the client, so the registry refuses its name.
    const name = find(params.name)?.name ?? `${params.name} (not offered here)`;
    const served = await calls.serve(
      { name, input: params.arguments },
      { client: server.getClientCapabilities(), ctx },
      conversation(ctx),
    );
    return "done" in served ? describeResult(served.done, (file) => resourcesOf?.(ctx).linkTo(file)) : served.asks;
  });
  const follows = options.follows !== false;
  const endings = [
    ...(follows ? [engine.registry.onChange(() => void server.sendToolListChanged().catch(() => undefined))] : []),
    ...(prompts ? servePrompts(server, { prompts, multiRound, follows }) : []),
    ...(resourcesOf ? serveResources(server, { resourcesOf, follows }) : []),
  ];
  if (prompts || resourcesOf) serveCompletions(server, prompts, resourcesOf);
  // oxlint-disable-next-line prefer-add-event-listener -- the protocol library has only this hook
  server.onclose = () => {
    for (const end of endings) end();
    void own?.close();
  };
  return product;
}
