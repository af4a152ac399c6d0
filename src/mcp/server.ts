/** An engine as an MCP server: every governed tool for any MCP client, every call down the same line. */
import { AsyncLocalStorage } from "node:async_hooks";
import { Server, type CallToolResult, type ContentBlock, type ServerContext } from "@modelcontextprotocol/server";
import type { Part } from "../base/content.ts";
import type { AnyTool, ApprovalAnswer, ApprovalRequest, Approver, Engine, Json } from "../index.ts";
import { isFreeform } from "../spec/freeform.ts";
import { toSchema } from "../spec/schema.ts";

export interface McpServerOptions {
  readonly engine: Engine;
  /** Which tools are shown; left out: all. */
  readonly shows?: (tool: AnyTool) => boolean;
  readonly version: string;
}

/** The connection a call came in on, so that a question can go back the same way. */
const asking = new AsyncLocalStorage<ServerContext>();

/** One server object per connection. */
export function createMcpServer({ engine, shows = () => true, version }: McpServerOptions): Server {
  const server = new Server({ name: "callgate", version }, { capabilities: { tools: { listChanged: true } } });
  const tools = () => engine.registry.list().filter(shows);
  let count = 0;

  server.setRequestHandler("tools/list", () => ({ tools: tools().map((tool) => describe(tool, engine)) }));
  server.setRequestHandler("tools/call", async (request, ctx) => {
    const { name, arguments: input = {} } = request.params;
    const tool = engine.registry.find(name);
    const id = `mcp_${++count}`;
    const stop = engine.on((event) => {
      if (event.type === "call.progress" && event.id === id) void reportProgress(ctx, event.progress);
    });
    try {
      // A tool that is not shown is not there: its name is left for the registry to refuse.
      const known = tool !== undefined && shows(tool) ? tool.name : `${name} (not offered here)`;
      const asked = {
        id,
        name: known,
        kind: "function",
        arguments: JSON.stringify(input),
        askedAt: Date.now(),
      } as const;
      return toResult(await asking.run(ctx, () => engine.run(asked, ctx.mcpReq.signal)));
    } finally {
      stop();
    }
  });
  const stopListening = engine.registry.onChange(() => void server.sendToolListChanged().catch(() => undefined));
  server.onclose = stopListening;
  return server;
}

/** Names with a slash are not legal in every client: they go out as `server__tool` and come back through the registry. */
function describe(tool: AnyTool, engine: Engine) {
  const description = typeof tool.description === "string" ? tool.description : tool.description(engine.situation());
  const schema = isFreeform(tool.input)
    ? {
        type: "object" as const,
        properties: { input: { type: "string", description: tool.input.label ?? "the text" } },
        required: ["input"],
      }
    : { ...toSchema(tool.input).json, type: "object" as const };
  const readOnly = tool.mutates === false || (tool.mutates === undefined && tool.access === undefined);
  return {
    name: tool.name.includes("/") ? `mcp__${tool.name.replaceAll("/", "__")}` : tool.name,
    description,
    inputSchema: schema,
    ...(tool.output === undefined || isFreeform(tool.output)
      ? {}
      : { outputSchema: { ...toSchema(tool.output).json, type: "object" as const } }),
    annotations: {
      readOnlyHint: readOnly,
      destructiveHint: !readOnly,
      openWorldHint: tool.native?.type === "web_search",
    },
  };
}

function toResult(ended: Awaited<ReturnType<Engine["call"]>>): CallToolResult {
  return {
    content: ended.content.map(toBlock),
    ...(ended.ok ? {} : { isError: true }),
    ...(isRecord(ended.structured) ? { structuredContent: ended.structured } : {}),
  };
}

function isRecord(value: Json | undefined): value is Record<string, Json> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function toBlock(part: Part): ContentBlock {
  switch (part.type) {
    case "text":
      return { type: "text", text: part.text };
    case "image":
      return part.data === undefined
        ? { type: "text", text: `[image ${part.url ?? ""}]` }
        : { type: "image", data: part.data, mimeType: part.mediaType ?? "image/png" };
    case "audio":
      return { type: "audio", data: part.data, mimeType: part.mediaType };
    case "file":
      return { type: "text", text: `[file ${part.name ?? part.url ?? ""}]` };
    case "resource": {
      const { uri, mediaType, text: words, data, name } = part;
      const mime = mediaType === undefined ? {} : { mimeType: mediaType };
      if (words !== undefined) return { type: "resource", resource: { uri, text: words, ...mime } };
      if (data !== undefined) return { type: "resource", resource: { uri, blob: data, ...mime } };
      return { type: "resource_link", uri, name: name ?? uri, ...mime };
    }
  }
}

async function reportProgress(ctx: ServerContext, progress: unknown): Promise<void> {
  const token = ctx.mcpReq._meta?.progressToken;
  if (token === undefined) return;
  const said =
    typeof progress === "string"
      ? { message: progress }
      : (progress as { readonly message?: string; readonly progress?: number; readonly total?: number });
  await ctx.mcpReq
    .notify({
      method: "notifications/progress",
      params: {
        progressToken: token,
        progress: said.progress ?? 0,
        ...(said.total === undefined ? {} : { total: said.total }),
        ...(said.message === undefined ? {} : { message: said.message }),
      },
    })
    .catch(() => undefined); // a client that has gone needs no progress
}

/** Asks the person behind the client that made the call; a client that cannot ask gets the refusal with its reason. */
export function createElicitingApprover(): Approver {
  return {
    async ask(request: ApprovalRequest, signal): Promise<ApprovalAnswer | undefined> {
      const ctx = asking.getStore();
      if (ctx === undefined) return undefined;
      try {
        const { action, content } = await ctx.mcpReq.elicitInput(
          {
            mode: "form",
            message: `${request.call.tool} asks for your approval: ${request.reason}\n${JSON.stringify(request.call.input)}`,
            requestedSchema: {
              type: "object",
              properties: { answer: { type: "string", title: "Allow it?", enum: ["once", "session", "no"] } },
              required: ["answer"],
            },
          },
          { signal },
        );
        const answer = action === "accept" ? content?.["answer"] : "no";
        return answer === "once" || answer === "session" ? { answer } : { answer: "no" };
      } catch {
        return undefined; // no elicitation here: nobody can be asked
      }
    },
  };
}
