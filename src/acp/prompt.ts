/** What an editor sends, translated: prompts to parts, and its MCP servers to the form of the settings. */
import { fileURLToPath } from "node:url";
import type { ContentBlock, McpServer } from "@agentclientprotocol/sdk";
import type { Part } from "../base/content.ts";

export function readPrompt(blocks: readonly ContentBlock[]): readonly Part[] {
  return blocks.map((block): Part => {
    switch (block.type) {
      case "text":
        return { type: "text", text: block.text };
      case "image":
        return { type: "image", data: block.data, mediaType: block.mimeType };
      case "audio":
        return { type: "audio", data: block.data, mediaType: block.mimeType };
      case "resource_link":
        return { type: "text", text: `[${block.name}](${readUri(block.uri)})` };
      case "resource": {
        const { resource } = block;
        return "text" in resource
          ? { type: "text", text: `<file path="${readUri(resource.uri)}">\n${resource.text}\n</file>` }
          : { type: "file", data: resource.blob, name: readUri(resource.uri), mediaType: resource.mimeType ?? "" };
      }
    }
  });
}

/** Models know files by their paths. */
function readUri(uri: string): string {
  try {
    return uri.startsWith("file:") ? fileURLToPath(uri) : uri;
  } catch {
    return uri;
  }
}

/** In the common form. `${NAME}` in an editor's values is literal text, and not a name in our environment. */
export function readMcpServers(servers: readonly McpServer[]): Record<string, Record<string, unknown>> {
  const pairs = (list: readonly { readonly name: string; readonly value: string }[]) =>
    Object.fromEntries(list.map(({ name, value }) => [name, literally(value)]));
  return Object.fromEntries(
    servers.map((server) => [
      server.name,
      "command" in server
        ? { command: literally(server.command), args: server.args.map(literally), env: pairs(server.env) }
        : { type: server.type, url: literally(server.url), headers: pairs(server.headers) },
    ]),
  );
}

/** `${X:-$}{NAME}` reads as `${NAME}` if X is not set, and nobody sets this X. */
function literally(text: string): string {
  return text.replaceAll("${", "${CALLGATE_NEVER_SET:-$}{");
}
