/** A handler's answer in one form, whatever it returned. */
import { isPart, text, type Part } from "../base/content.ts";
import { CallError } from "../base/error.ts";
import { isObject, type Json } from "../base/json.ts";
import { isBlock, isResult } from "../spec/result.ts";
import type { ExecOutcome, ToolOutput } from "../spec/tool.ts";

export interface PlainOutput {
  readonly parts: readonly Part[];
  readonly structured?: Json;
  readonly exec?: ExecOutcome;
  readonly ok: boolean;
}

/**
 * Brings text, JSON, parts, a marked result or an MCP result into one form. Anything that cannot be
 * read or written as JSON (a cycle, a function, an object whose fields throw) is the handler's
 * failure: it becomes a CallError, and nothing else is ever thrown.
 */
export function readOutput(output: ToolOutput): PlainOutput {
  try {
    return read(output);
  } catch (error) {
    if (CallError.is(error)) throw error;
    throw new CallError("failed", "The tool gave back something that cannot be read.", { cause: error });
  }
}

function read(output: unknown): PlainOutput {
  if (output === undefined) return { parts: [], ok: true };
  if (output instanceof Error) throw returned(output);
  if (output instanceof Map || output instanceof Set) {
    const kind = output instanceof Map ? "Map" : "Set";
    throw new CallError(
      "failed",
      `The tool gave back a ${kind}, which JSON cannot hold: give back an object or a list.`,
    );
  }
  if (typeof output === "string") return { parts: [text(output)], ok: true };
  if (Array.isArray(output) && output.length > 0 && output.every(isBlock))
    return { parts: output.map(toPart), ok: true };
  if (isPart(output)) return { parts: [output], ok: true };
  if (isResult(output)) return readFields(output);
  if (isMcpResult(output)) {
    const { content, isError, structuredContent: structured } = output;
    return readFields({ content, ok: isError !== true, structured });
  }
  const written = writeJson(output);
  // The journal and clients get exactly what was written as JSON: dates as text, and nothing that only code can hold.
  const structured = JSON.parse(written) as Json;
  return isFailure(structured)
    ? { parts: [text(structured.error)], structured, ok: false }
    : { parts: [text(written)], structured, ok: true };
}

/** An error that was returned and not thrown is a failure all the same: as JSON it would be an empty object. */
function returned(error: Error): CallError {
  return CallError.is(error) ? error : new CallError("failed", error.message || error.name, { cause: error });
}

/** Many tools report a failure as `{ error: "why" }`, alone or with an empty `output`. */
function isFailure(value: Json): value is { readonly error: string } {
  if (!isObject(value) || typeof value["error"] !== "string" || value["error"] === "") return false;
  return Object.entries(value).every(([key, field]) => key === "error" || (key === "output" && (field ?? "") === ""));
}

interface Fields {
  readonly content?: unknown;
  readonly structured?: unknown;
  readonly ok?: unknown;
  readonly error?: unknown;
  readonly exec?: unknown;
}

function readFields({ content = [], structured, ok, error, exec }: Fields): PlainOutput {
  const given = typeof content === "string" ? [text(content)] : Array.isArray(content) ? content.map(toPart) : [];
  const json = structured === undefined ? undefined : writeJson(structured);
  const failed = ok === false || typeof error === "string";
  const words = typeof error === "string" ? [text(error), ...given] : given;
  return {
    parts: words.length === 0 && json !== undefined ? [text(json)] : words,
    ...(json === undefined ? {} : { structured: JSON.parse(json) as Json }),
    ...(exec === undefined ? {} : { exec: readExec(exec) }),
    ok: !failed,
  };
}

/** The outcome of a command is laid out field by field, so a value that lacks one of the fields is not an outcome. */
function readExec(exec: unknown): ExecOutcome {
  const fits =
    isObject(exec) &&
    ["stdout", "stderr", "output"].every((key) => typeof exec[key] === "string" || isCaptured(exec[key])) &&
    (exec["exitCode"] === null || typeof exec["exitCode"] === "number") &&
    typeof exec["durationMs"] === "number" &&
    typeof exec["timedOut"] === "boolean";
  if (!fits) throw new CallError("failed", "The tool gave back a command's outcome without all of its fields.");
  // The fields that every reader relies on were checked above.
  return exec as unknown as ExecOutcome;
}

/** What `ctx.exec` captured of an output. */
function isCaptured(value: unknown): boolean {
  if (!isObject(value)) return false;
  const counts = ["droppedBytes", "totalBytes", "lineBreaks"];
  return (
    typeof value["head"] === "string" &&
    typeof value["tail"] === "string" &&
    counts.every((key) => typeof value[key] === "number")
  );
}

const mcpFields: ReadonlySet<string> = new Set(["content", "isError", "structuredContent", "_meta"]);

/**
 * A complete result as MCP defines it: every block with what it needs, and no other keys. Anything
 * less is plain JSON, because an empty list of content says nothing by itself.
 */
function isMcpResult(value: unknown): value is {
  readonly content: readonly unknown[];
  readonly isError?: boolean;
  readonly structuredContent?: unknown;
} {
  if (!isObject(value) || !Array.isArray(value["content"]) || !value["content"].every(isBlock)) return false;
  const { content, isError, structuredContent } = value;
  return (
    Object.keys(value).every((key) => mcpFields.has(key)) &&
    (isError === undefined || typeof isError === "boolean") &&
    (structuredContent === undefined || isObject(structuredContent)) &&
    (content.length > 0 || isError !== undefined || structuredContent !== undefined)
  );
}

/** One of our own parts, or an MCP content block. */
function toPart(block: unknown): Part {
  if (isPart(block)) return block;
  if (!isObject(block)) return text(writeJson(block));
  const { type, mimeType, data } = block;
  if (type === "text" && typeof block["text"] === "string") return text(block["text"]);
  if ((type === "image" || type === "audio") && typeof data === "string")
    return { type, mediaType: String(mimeType), data };
  if (type === "resource" && isObject(block["resource"])) return toResource(block["resource"]);
  return type === "resource_link" ? toResource(block) : text(writeJson(block));
}

function toResource(resource: Record<string, unknown>): Part {
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

/** The JSON text, or a CallError that says what the handler returned (a cycle, a function, a bigint). */
export function writeJson(value: unknown): string {
  try {
    const written = JSON.stringify(value) as string | undefined;
    if (written !== undefined) return written;
  } catch (error) {
    throw new CallError("failed", "The tool gave back something that cannot be written as JSON.", { cause: error });
  }
  throw new CallError("failed", `The tool gave back a ${typeof value}, which is no result.`);
}
