/** A server's tools as ours: the same declaration, the same line, the same gate. */
import { defined, isObject, type Json, type JsonObject } from "../../base/json.ts";
import { toVisible } from "../../gate/show.ts";
import { result, type McpBlock, type ToolResult } from "../../spec/result.ts";
import type { AnyTool, ToolContext } from "../../spec/tool.ts";
import type { Connection } from "./connection.ts";
import type { ServerTool } from "../protocol.ts";
import type { McpEvent } from "./metrics.ts";

export interface AdaptOptions {
  readonly connection: Connection;
  /** Told with each call to servers that asked for it. */
  readonly sandboxState?: () => JsonObject;
  readonly emit?: (event: McpEvent) => void;
  /** Called before each call. It refuses a call whose tool is no longer what somebody looked at. */
  readonly verify?: (tool: string) => Promise<void>;
}

export interface Adapted {
  readonly tools: readonly AnyTool[];
  /** Tools that cannot be offered, and why. They do not affect other tools. */
  readonly refused: readonly { readonly tool: string; readonly reason: string }[];
}

export function adaptTools(found: readonly ServerTool[], options: AdaptOptions): Adapted {
  const { config } = options.connection;
  const tools: AnyTool[] = [];
  const refused: { tool: string; reason: string }[] = [];
  const seen = new Set<string>();
  for (const tool of found.slice(0, maxTools)) {
    const reason = whyNot(tool, seen);
    seen.add(tool.name);
    if (config.disabledTools.includes(tool.name) || (config.enabledTools && !config.enabledTools.includes(tool.name)))
      continue;
    if (reason === undefined) tools.push(adapt(tool, options));
    else if (refused.length < maxRefused) refused.push({ tool: `${config.name}/${tool.name}`, reason });
  }
  if (found.length > maxTools)
    refused.push({
      tool: `the rest of ${config.name}`,
      reason: `it lists ${found.length} tools, ${maxTools} are read`,
    });
  return { tools, refused };
}

/** More than any model could be offered, and than any server needs. */
const maxTools = 2_048;
/** How many refused tools are named. */
const maxRefused = 20;
const maxSchemaChars = 256 * 1024;

function whyNot(tool: ServerTool, seen: ReadonlySet<string>): string | undefined {
  if (!/^[\w./-]{1,128}$/.test(tool.name)) return "its name is not one a model could write";
  if (seen.has(tool.name)) return "the server lists it twice";
  if (!isObject(tool.inputSchema)) return "its input schema is not an object";
  const text = JSON.stringify(tool.inputSchema);
  if (text.length > maxSchemaChars) return `its input schema is longer than ${maxSchemaChars / 1024} KB`;
  if (smuggles(tool.inputSchema as JsonObject)) return "its input schema holds characters nobody can see";
  return undefined;
}

/**
 * Escapes, text direction and the tag alphabet: characters that a machine reads and a person does not
 * see. Emoji need none of them.
 */
const smuggled = new RegExp(
  String.raw`[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u200b\u202a-\u202e\u2060-\u2069\u{e0000}-\u{e0fff}]`,
  "u",
);

/** In names and values, which cannot be escaped as descriptions can. */
function smuggles(schema: Json): boolean {
  if (typeof schema === "string") return smuggled.test(schema);
  if (Array.isArray(schema)) return schema.some(smuggles);
  if (!isObject(schema)) return false;
  return Object.entries(schema).some(
    ([key, value]) => smuggled.test(key) || (!(isWords(key) && typeof value === "string") && smuggles(value)),
  );
}

/** A longer text is not a description, but a way to fill the model's context. */
const maxDescription = 16_000;

function adapt(tool: ServerTool, options: AdaptOptions): AnyTool {
  const { config } = options.connection;
  const { annotations } = tool;
  const readOnly = onlyReads(tool);
  return {
    name: `${config.name}/${tool.name}`,
    // Invisible words are the oldest trick of a hostile server, so a model reads only what a person would see.
    description: toVisible((tool.description ?? annotations?.title ?? tool.name).slice(0, maxDescription)),
    input: showWords(tool.inputSchema as JsonObject),
    ...(isObject(tool.outputSchema) ? { output: tool.outputSchema } : {}),
    mutates: !readOnly,
    parallel: readOnly || config.parallel,
    group: config.name,
    origin: { server: config.name, name: tool.name },
    metadata: { server: config.name, tool: tool.name },
    timeoutMs: config.totalTimeoutMs + 5_000,
    run: (input: Json, ctx: ToolContext) => call(tool.name, input, ctx, options),
  };
}

const reading = new Set("get list read search find show describe fetch query view check count lookup".split(" "));
const changing = new Set(
  (
    "add append apply approve book buy cancel close commit copy create delete deploy destroy disable drop edit enable " +
    "exec execute format grant insert install invoke kill merge modify move order overwrite patch pay post publish " +
    "purge push put remove rename replace reset restart revoke run send set shutdown start stop submit transfer " +
    "truncate uninstall update upload wipe withdraw write"
  ).split(" "),
);

/**
 * A server states that a tool only reads, and the gate asks less about such tools. It is believed
 * unless it contradicts itself: by its other hints, or by a name that says what the tool does.
 */
function onlyReads({ name, annotations }: ServerTool): boolean {
  if (annotations?.readOnlyHint !== true || annotations.destructiveHint === true) return false;
  const words = name
    .replaceAll(/([a-z0-9])([A-Z])/g, "$1_$2")
    .toLowerCase()
    .split(/[^a-z0-9]+/);
  const verb = words.find((word) => reading.has(word) || changing.has(word));
  return verb === undefined || reading.has(verb);
}

async function call(tool: string, input: Json, ctx: ToolContext, options: AdaptOptions): Promise<ToolResult> {
  const { connection, sandboxState, emit, verify } = options;
  const at = { server: connection.config.name, tool, callId: ctx.callId };
  const startedAt = performance.now();
  const ended = (ok: boolean) =>
    emit?.({ type: "server.call.ended", ...at, ok, durationMs: performance.now() - startedAt });
  emit?.({ type: "server.call.started", ...at });
  try {
    await verify?.(tool);
    const answer = await connection.callTool(tool, input, {
      signal: ctx.signal,
      callId: ctx.callId,
      idempotencyKey: ctx.idempotencyKey,
      onProgress: ({ progress, total, message }) =>
        ctx.progress({
          progress,
          ...defined({ total, message }),
        }),
      ...(sandboxState ? { sandboxState } : {}),
    });
    ended(answer.isError !== true);
    return toContent(answer);
  } catch (error) {
    ended(false);
    throw error;
  }
}

/** Changes the descriptions inside a schema, at any depth. Everything else stays as it is. */
function showWords<Value extends Json>(schema: Value): Value {
  if (Array.isArray(schema)) return schema.map(showWords) as Json as Value;
  if (!isObject(schema)) return schema;
  const entries = Object.entries(schema).map(([key, value]) => [
    key,
    isWords(key) && typeof value === "string" ? toVisible(value.slice(0, maxDescription)) : showWords(value),
  ]);
  return Object.fromEntries(entries) as Value;
}

function isWords(key: string): boolean {
  return key === "description" || key === "title" || key === "$comment";
}

/** Whatever a server sent, marked as a result, even if it is empty or has unknown blocks. */
function toContent(given: {
  readonly content?: unknown;
  readonly isError?: boolean | undefined;
  readonly structuredContent?: unknown;
}): ToolResult {
  const content = Array.isArray(given.content) ? (given.content as readonly unknown[]).filter(isObject) : [];
  return result({
    // Blocks of a kind we do not know are written out as JSON.
    content: content as unknown as readonly McpBlock[],
    ok: given.isError !== true,
    // It came as JSON from the server.
    ...(given.structuredContent === undefined ? {} : { structured: given.structuredContent as Json }),
  });
}
