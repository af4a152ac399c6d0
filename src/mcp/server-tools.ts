/** A server's tools as ours: the same declaration, the same line, the same gate. */
import { isObject, type Json, type JsonObject } from "../base/json.ts";
import { toVisible } from "../gate/show.ts";
import type { AnyTool, McpContent, ToolContext } from "../spec/tool.ts";
import type { Connection } from "./connection.ts";
import type { ServerTool } from "./protocol.ts";
import type { McpEvent } from "./server-metrics.ts";

export interface AdaptOptions {
  readonly connection: Connection;
  /** Told with each call to servers that asked for it. */
  readonly sandboxState?: () => JsonObject;
  readonly emit?: (event: McpEvent) => void;
  /** Before each call: refuses one whose tool is no longer what was looked at. */
  readonly verify?: (tool: string) => Promise<void>;
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

/** Beyond this a description is no description, but a way to fill the model's context. */
const maxDescription = 16_000;

function adapt(tool: ServerTool, options: AdaptOptions): AnyTool {
  const { config } = options.connection;
  const { annotations } = tool;
  const readOnly = annotations?.readOnlyHint === true;
  return {
    name: `${config.name}/${tool.name}`,
    // Words nobody can see are the oldest trick of a hostile server: a model reads what a person would.
    description: toVisible((tool.description ?? annotations?.title ?? tool.name).slice(0, maxDescription)),
    input: showWords(tool.inputSchema as JsonObject),
    ...(isObject(tool.outputSchema) ? { output: tool.outputSchema as JsonObject } : {}),
    // What a server says about itself is a hint, not a fact: it makes calls parallel, the gate decides what they may do.
    mutates: !readOnly,
    parallel: readOnly || config.parallel,
    group: config.name,
    metadata: { server: config.name, tool: tool.name },
    timeoutMs: config.totalTimeoutMs + 5_000,
    run: (input: Json, ctx: ToolContext) => call(tool.name, input, ctx, options),
  };
}

async function call(tool: string, input: Json, ctx: ToolContext, options: AdaptOptions): Promise<McpContent> {
  const { connection, sandboxState, emit, verify } = options;
  const at = { server: connection.config.name, tool, callId: ctx.callId };
  const startedAt = performance.now();
  const ended = (ok: boolean) =>
    emit?.({ type: "server.call.ended", ...at, ok, durationMs: performance.now() - startedAt });
  emit?.({ type: "server.call.started", ...at });
  try {
    await verify?.(tool);
    const result = await connection.callTool(tool, input, {
      signal: ctx.signal,
      callId: ctx.callId,
      onProgress: ({ progress, total, message }) =>
        ctx.progress({
          progress,
          ...(total === undefined ? {} : { total }),
          ...(message === undefined ? {} : { message }),
        }),
      ...(sandboxState ? { sandboxState } : {}),
    });
    ended(result.isError !== true);
    return toContent(result);
  } catch (error) {
    ended(false);
    throw error;
  }
}

/** The descriptions inside a schema, at whatever depth; everything else of it stays as it is. */
function showWords<Value extends Json>(schema: Value): Value {
  if (Array.isArray(schema)) return schema.map(showWords) as Json as Value;
  if (!isObject(schema)) return schema;
  const entries = Object.entries(schema).map(([key, value]) => [
    key,
    (key === "description" || key === "title") && typeof value === "string"
      ? toVisible(value)
      : showWords(value as Json),
  ]);
  return Object.fromEntries(entries) as Value;
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
