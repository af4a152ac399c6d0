/** A handler's answer in one form, whatever it handed back. */
import type { Part } from "../base/content.ts";
import { text } from "../base/content.ts";
import { CallError } from "../base/error.ts";
import type { Json } from "../base/json.ts";
import { isObject } from "../base/json.ts";
import type { ExecOutcome, ToolOutput } from "../spec/tool.ts";

export interface PlainOutput {
  readonly parts: readonly Part[];
  readonly structured?: Json;
  readonly exec?: ExecOutcome;
  readonly ok: boolean;
}

/** Text, JSON, parts, a ToolResult or MCP content, as one form. What none of these is, is the handler's fault. */
export function readOutput(output: ToolOutput): PlainOutput {
  if (output === undefined) return { parts: [], ok: true };
  if (typeof output === "string") return { parts: [text(output)], ok: true };
  if (Array.isArray(output) && output.length > 0 && output.every(isPart)) return { parts: output, ok: true };
  if (isObject(output)) {
    if (isPart(output)) return { parts: [output], ok: true };
    if (isResult(output)) return readResult(output);
  }
  return { parts: [text(writeJson(output))], structured: output as Json, ok: true };
}

const resultKeys = new Set(["content", "structured", "structuredContent", "ok", "isError", "exec", "_meta"]);

/** A ToolResult or MCP content, told apart from a plain object that merely has a field of that name. */
function isResult(output: Record<string, unknown>): boolean {
  const { content, exec } = output;
  if (!Array.isArray(content) && typeof content !== "string" && !isObject(exec)) return false;
  return Object.keys(output).every((key) => resultKeys.has(key));
}

function readResult(output: Record<string, unknown>): PlainOutput {
  const content = output["content"];
  const parts = typeof content === "string" ? [text(content)] : Array.isArray(content) ? content.map(readPart) : [];
  const structured = output["structured"] ?? output["structuredContent"];
  return {
    parts: parts.length === 0 && structured !== undefined ? [text(writeJson(structured))] : parts,
    ...(structured === undefined ? {} : { structured: structured as Json }),
    ...(isObject(output["exec"]) ? { exec: output["exec"] as unknown as ExecOutcome } : {}),
    ok: output["ok"] !== false && output["isError"] !== true,
  };
}

/** Our own part, or an MCP content block. */
function readPart(block: unknown): Part {
  if (isPart(block)) return block;
  if (!isObject(block)) return text(writeJson(block));
  const mediaType = block["mimeType"];
  switch (block["type"]) {
    case "image":
    case "audio":
      return { type: block["type"], mediaType: String(mediaType), data: String(block["data"]) };
    case "resource":
      return isObject(block["resource"]) ? readResource(block["resource"]) : text(writeJson(block));
    case "resource_link":
      return readResource(block);
    default:
      return text(writeJson(block));
  }
}

function readResource(resource: Record<string, unknown>): Part {
  const { uri, name, mimeType, text: words, blob } = resource;
  return {
    type: "resource",
    uri: String(uri),
    ...(typeof name === "string" ? { name } : {}),
    ...(typeof mimeType === "string" ? { mediaType: mimeType } : {}),
    ...(typeof words === "string" ? { text: words } : {}),
    ...(typeof blob === "string" ? { data: blob } : {}),
  };
}

function isPart(value: unknown): value is Part {
  if (!isObject(value)) return false;
  switch (value["type"]) {
    case "text":
      return typeof value["text"] === "string";
    case "image":
    case "audio":
      return typeof value["mediaType"] === "string" || typeof value["url"] === "string";
    case "file":
      return (
        typeof value["data"] === "string" || typeof value["url"] === "string" || typeof value["fileId"] === "string"
      );
    case "resource":
      return typeof value["uri"] === "string";
    default:
      return false;
  }
}

/** JSON text, or a CallError that says what the handler gave back (a cycle, a function, a bigint). */
export function writeJson(value: unknown): string {
  try {
    const written = JSON.stringify(value) as string | undefined;
    if (written !== undefined) return written;
  } catch (error) {
    throw new CallError("failed", "The tool gave back something that cannot be written as JSON.", { cause: error });
  }
  throw new CallError("failed", `The tool gave back a ${typeof value}, which is no result.`);
}
