/**
 * A server's list of tools, made fit for the protocol library, which refuses a whole list for one bad
 * entry: what can be put right is, what cannot is left out and named.
 */
import { specTypeSchemas, type JSONRPCMessage, type Transport } from "@modelcontextprotocol/client";
import { isObject } from "../base/json.ts";

export type OnRefused = (tool: string, reason: string) => void;

/** From here on, lists of tools that arrive on this transport are sound. To be called before it is connected. */
export function keepToolsSound(transport: Transport, onRefused: OnRefused): void {
  let handler: Transport["onmessage"];
  Object.defineProperty(transport, "onmessage", {
    configurable: true,
    get: () => handler,
    set(next: Transport["onmessage"]) {
      handler = next && ((message, extra) => next(withSoundTools(message, onRefused), extra));
    },
  });
}

function withSoundTools<Message extends JSONRPCMessage>(message: Message, onRefused: OnRefused): Message {
  const result = "result" in message ? message.result : undefined;
  const tools: unknown = isObject(result) ? result["tools"] : undefined;
  if (!Array.isArray(tools)) return message;
  return { ...message, result: { ...result, tools: tools.flatMap((tool: unknown) => mend(tool, onRefused)) } };
}

function mend(tool: unknown, onRefused: OnRefused): readonly unknown[] {
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
    // A schema that does not say what it is about can only be about the arguments.
    inputSchema: isObject(inputSchema) ? { ...inputSchema, type: "object" } : inputSchema,
    ...(isObject(outputSchema) && outputSchema["type"] === "object" ? { outputSchema } : {}),
    ...(isObject(annotations) ? { annotations } : {}),
  };
  for (const attempt of [mended, withoutExtras(mended)]) if (isSound(attempt)) return [attempt];
  onRefused(name, "its description breaks the protocol");
  return [];
}

function withoutExtras({ name, description, inputSchema }: { readonly [key: string]: unknown }) {
  return { name, ...(description === undefined ? {} : { description }), inputSchema };
}

function isSound(tool: unknown): boolean {
  const checked = specTypeSchemas.Tool["~standard"].validate(tool);
  return !(checked instanceof Promise) && checked.issues === undefined;
}
