/** A server's tools as ours: the same declaration, the same line, the same gate. */
import type { Tool as ServerTool } from "@modelcontextprotocol/client";
import { isObject, type Json, type JsonObject } from "../base/json.ts";
import type { AnyTool, McpContent, ToolContext } from "../spec/tool.ts";
import type { Connection } from "./connection.ts";

export interface AdaptOptions {
  readonly connection: Connection;
  /** Told with each call to servers that asked for it. */
  readonly sandboxState?: () => JsonObject;
}

export interface Adapted {
  readonly tools: readonly AnyTool[];
  /** Tools that cannot be offered, and why. They take no other tool with them. */
  readonly refused: readonly { readonly tool: string; readonly reason: string }[];
}

export function adaptTools(found: readonly ServerTool[], options: AdaptOptions): Adapted {
  const { config } = options.connection;
  const tools: AnyTool[] = [];
  const refused: { tool: string; reason: string }[] = [];
  const seen = new Set<string>();
  for (const tool of found) {
    const reason = whyNot(tool, seen);
    seen.add(tool.name);
    if (config.disabledTools.includes(tool.name) || (config.enabledTools && !config.enabledTools.includes(tool.name)))
      continue;
    if (reason === undefined) tools.push(adapt(tool, options));
    else refused.push({ tool: `${config.name}/${tool.name}`, reason });
  }
  return { tools, refused };
}

function whyNot(tool: ServerTool, seen: ReadonlySet<string>): string | undefined {
  if (!/^[\w./-]{1,128}$/.test(tool.name)) return "its name is not one a model could write";
  if (seen.has(tool.name)) return "the server lists it twice";
  if (!isObject(tool.inputSchema)) return "its input schema is not an object";
  return undefined;
}

function adapt(tool: ServerTool, { connection, sandboxState }: AdaptOptions): AnyTool {
  const { config } = connection;
  const { annotations } = tool;
  const readOnly = annotations?.readOnlyHint === true;
  return {
    name: `${config.name}/${tool.name}`,
    description: tool.description ?? annotations?.title ?? tool.name,
    input: tool.inputSchema as JsonObject,
    ...(isObject(tool.outputSchema) ? { output: tool.outputSchema as JsonObject } : {}),
    // What a server says about itself is a hint, not a fact: it makes calls parallel, the gate decides what they may do.
    mutates: !readOnly,
    parallel: readOnly || config.parallel,
    group: config.name,
    metadata: { server: config.name, tool: tool.name },
    timeoutMs: config.totalTimeoutMs + 5_000,
    async run(input: Json, ctx: ToolContext): Promise<McpContent> {
      const result = await connection.callTool(tool.name, input, {
        signal: ctx.signal,
        onProgress: ({ progress, total, message }) =>
          ctx.progress({
            progress,
            ...(total === undefined ? {} : { total }),
            ...(message === undefined ? {} : { message }),
          }),
        ...(sandboxState ? { meta: { "callgate/sandbox-state": sandboxState() } } : {}),
      });
      return toContent(result);
    },
  };
}

/** Text that merely repeats the structured content is left to it: the same thing is told once. */
function toContent(result: {
  readonly content?: unknown;
  readonly isError?: boolean | undefined;
  readonly structuredContent?: unknown;
}): McpContent {
  const content = Array.isArray(result.content) ? (result.content as McpContent["content"]) : [];
  return {
    content,
    ...(result.isError === true ? { isError: true } : {}),
    ...(result.structuredContent === undefined ? {} : { structuredContent: result.structuredContent }),
  };
}
