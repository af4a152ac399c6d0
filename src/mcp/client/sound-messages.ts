/**
 * Corrects what servers send for the protocol library, which refuses a whole list for one bad entry.
 * What can be corrected is; what cannot is left out and named.
 */
import { specTypeSchemas, type JSONRPCMessage, type Transport } from "@modelcontextprotocol/client";
import { defined, isObject } from "../../base/json.ts";
import type { KeptSecrets } from "./keep-secrets.ts";

/** Called for a server's tool that is left out, with the reason. */
export type OnRefused = (tool: string, reason: string) => void;

/**
 * From here on, what arrives on this transport is sound. To be called before it is connected.
 * @internal
 */
export function keepSound(transport: Transport, onRefused: OnRefused, secrets: KeptSecrets): void {
  let handler: Transport["onmessage"];
  const send = transport.send.bind(transport);
  transport.send = (...sent) =>
    send(...sent).catch((error: unknown) => {
      throw secrets.error(error);
    });
  Object.defineProperty(transport, "onmessage", {
    configurable: true,
    get: () => handler,
    set(next: Transport["onmessage"]) {
      handler = next && ((message, extra) => next(toSound(secrets.message(message), onRefused), extra));
    },
  });
}

function toSound(message: JSONRPCMessage, onRefused: OnRefused): JSONRPCMessage {
  if (!("result" in message)) return message;
  // Both fields at once count as an error. Otherwise the answer would be ignored, and waited for in vain.
  if ("error" in message) return { jsonrpc: "2.0", id: message.id, error: message.error } as JSONRPCMessage;
  const result: unknown = message.result;
  if (!isObject(result)) return { ...message, result: { content: [asText(result)] } };
  const { tools, content } = result;
  if (Array.isArray(tools)) {
    let refused = 0;
    const tellFew: OnRefused = (tool, reason) => void (++refused <= maxTold && onRefused(tool, reason));
    return { ...message, result: { ...result, tools: tools.flatMap((tool: unknown) => mend(tool, tellFew)) } };
  }
  if (content === undefined || (Array.isArray(content) && content.every(isSoundBlock))) return message;
  const blocks = Array.isArray(content) ? content : content === null ? [] : [content];
  return { ...message, result: { ...result, content: blocks.map(toSoundBlock) } };
}

/** How many bad tools of one list are named. */
const maxTold = 20;

const isText = (value: unknown) => typeof value === "string";
const isBase64 = (value: unknown) => typeof value === "string" && /^[A-Za-z0-9+/]*={0,2}$/.test(value);

const blocks = new Map<unknown, (block: Readonly<Record<string, unknown>>) => boolean>([
  ["text", ({ text }) => isText(text)],
  ["image", ({ data, mimeType }) => isBase64(data) && isText(mimeType)],
  ["audio", ({ data, mimeType }) => isBase64(data) && isText(mimeType)],
  ["resource_link", ({ uri, name }) => isText(uri) && isText(name)],
  [
    "resource",
    ({ resource }) =>
      isObject(resource) && isText(resource["uri"]) && (isText(resource["text"]) || isBase64(resource["blob"])),
  ],
]);

function isSoundBlock(block: unknown): boolean {
  return isObject(block) && blocks.get(block["type"])?.(block) === true;
}

/**
 * Content that is wrong or of an unknown kind is shown as it was written: the call has run, and its
 * result is not thrown away.
 */
function toSoundBlock(block: unknown): unknown {
  return isSoundBlock(block) ? block : asText(block);
}

function asText(value: unknown) {
  return { type: "text", text: typeof value === "string" ? value : JSON.stringify(value) };
}

/** No schema needs this depth, and everything that walks one would fail on it. */
const maxDepth = 100;

function isDeeper(value: unknown, depth: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  return depth === 0 || Object.values(value).some((inner) => isDeeper(inner, depth - 1));
}

/** Whether the library would print these names to stderr. */
function isLoud(name: string, schema: unknown): boolean {
  return /\p{Cc}/u.test(name) || /"x-mcp-header":"[^"]*\\u00/.test(JSON.stringify(schema) ?? "");
}

function mend(tool: unknown, onRefused: OnRefused): readonly unknown[] {
  if (isDeeper(tool, maxDepth)) {
    const named = isObject(tool) && typeof tool["name"] === "string" ? tool["name"] : "(a tool)";
    onRefused(named, `its description is nested more than ${maxDepth} deep`);
    return [];
  }
  if (isObject(tool) && typeof tool["name"] === "string" && isLoud(tool["name"], tool["inputSchema"])) {
    onRefused(tool["name"], "its name, or that of a header, holds control characters");
    return [];
  }
  if (isSound(tool)) return [tool];
  if (!isObject(tool) || typeof tool["name"] !== "string") {
    onRefused("(a tool without a name)", "it is not described as a tool");
    return [];
  }
  const { name, title, description, inputSchema, outputSchema, annotations } = tool;
  const mended = {
    name,
    ...(typeof title === "string" ? { title } : {}),
    ...(typeof description === "string" ? { description } : {}),
    // A schema without a type can only be about the arguments.
    inputSchema: isObject(inputSchema) ? { ...inputSchema, type: "object" } : inputSchema,
    ...(isObject(outputSchema) && outputSchema["type"] === "object" ? { outputSchema } : {}),
    ...(isObject(annotations) ? { annotations } : {}),
  };
  for (const attempt of [mended, withoutExtras(mended)]) if (isSound(attempt)) return [attempt];
  onRefused(name, "its description breaks the protocol");
  return [];
}

function withoutExtras({ name, description, inputSchema }: { readonly [key: string]: unknown }) {
  return { name, ...defined({ description }), inputSchema };
}

function isSound(tool: unknown): boolean {
  const checked = specTypeSchemas.Tool["~standard"].validate(tool);
  return !(checked instanceof Promise) && checked.issues === undefined;
}
