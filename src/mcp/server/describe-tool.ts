/** Our tools and their results in MCP's terms. */
import type { CallToolResult, ContentBlock, Tool as ServedTool } from "@modelcontextprotocol/server";
import type { Part } from "../../base/content.ts";
import { defined, isObject } from "../../base/json.ts";
import type { AnyTool, Ended, Situation } from "../../index.ts";
import { isFreeform } from "../../spec/freeform.ts";
import { toSchema } from "../../schema/schema.ts";

/** `name` is in a form that every client accepts, and comes back through the registry. */
export function describeTool(tool: AnyTool, name: string, situation: Situation): ServedTool {
  const description = typeof tool.description === "string" ? tool.description : tool.description(situation);
  const readOnly = tool.mutates === false || (tool.mutates === undefined && tool.access === undefined);
  const output = outputSchema(tool);
  return {
    name,
    description,
    inputSchema: inputSchema(tool),
    ...defined({ outputSchema: output }),
    annotations: {
      readOnlyHint: readOnly,
      destructiveHint: !readOnly,
      openWorldHint: tool.origin !== undefined || tool.native?.type === "web_search",
    },
  };
}

/** As it was written, including `x-mcp-header`. */
export function inputSchema(tool: AnyTool): ServedTool["inputSchema"] {
  if (!isFreeform(tool.input)) return { ...toSchema(tool.input).json, type: "object" };
  return {
    type: "object",
    properties: { input: { type: "string", description: tool.input.label ?? "the text" } },
    required: ["input"],
  };
}

/** Most clients know only results that are objects, so other results are given as text alone. */
function outputSchema(tool: AnyTool): ServedTool["outputSchema"] | undefined {
  if (tool.output === undefined || isFreeform(tool.output)) return undefined;
  const { json } = toSchema(tool.output);
  return json["type"] === "object" ? { ...json, type: "object" } : undefined;
}

/** `linkTo` names the resource that holds the whole of a cut output. */
export function describeResult(ended: Ended, linkTo: (file: string) => string | undefined): CallToolResult {
  const link = ended.cut?.file === undefined ? undefined : linkTo(ended.cut.file);
  return {
    content: [
      ...ended.content.map(toBlock),
      ...(link === undefined ? [] : [{ type: "resource_link" as const, uri: link, name: "the whole output" }]),
    ],
    ...(ended.ok ? {} : { isError: true }),
    ...(isObject(ended.structured) ? { structuredContent: ended.structured } : {}),
  };
}

export function toBlock(part: Part): ContentBlock {
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
