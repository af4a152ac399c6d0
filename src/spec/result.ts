/**
 * The explicit form of a handler's result. It carries a mark, so that it is never mistaken for plain
 * JSON that happens to have a field named `content`.
 */
import { isPart, type Part } from "../base/content.ts";
import { isObject, type Json } from "../base/json.ts";
import type { CapturedOutput } from "./capability.ts";
import { checkOptions, type Shape } from "../base/shape.ts";

/** Shared by every copy of this package in a process, because a tool may use another copy. */
export const resultMark: unique symbol = Symbol.for("callgate.result");

/** How a command ended, as `ctx.exec` returns it or as a tool states it. It is laid out and cut for the model. */
export interface ExecOutcome {
  readonly stdout: string | CapturedOutput;
  readonly stderr: string | CapturedOutput;
  /** Both streams in the order in which they came. */
  readonly output: string | CapturedOutput;
  readonly exitCode: number | null;
  /** What ended it, if it did not end by itself. */
  readonly signal?: string | null;
  readonly durationMs: number;
  readonly timedOut: boolean;
  readonly heldOpen?: boolean;
  readonly waitingForInput?: boolean;
  readonly sessionId?: number;
  readonly notes?: readonly string[];
  /** For a tool whose processes may outlive the call. Codex's profile has its own layout for these. */
  readonly chunkId?: string;
  /** The call's own limit for what the model gets, below the profile's. */
  readonly maxTokens?: number;
}

/** A block as MCP spells it: `mimeType` instead of `mediaType`, resources one level deeper. */
export interface McpBlock {
  readonly type: string;
  readonly [key: string]: unknown;
}

/** What `result()` is made from. */
export interface ResultFields {
  /** What the model is told: text or parts (MCP's spelling is accepted too). */
  readonly content?: string | readonly (Part | McpBlock)[];
  readonly structured?: Json;
  /** False: the call failed, and `content` says why. */
  readonly ok?: boolean;
  /** The same as `ok: false` with this text. */
  readonly error?: string;
  /** A command's outcome; laid out by the profile. */
  readonly exec?: ExecOutcome;
}

/** What a handler returns if text alone is not enough. Made by `result()`. */
export interface ToolResult extends ResultFields {
  readonly [resultMark]: true;
}

const shape: Shape = {
  fields: {
    content: {
      either: ["string", { list: { either: ["table"], words: "a content part" } }],
      words: "text or a list of content parts",
    },
    structured: "any",
    ok: "boolean",
    error: "string",
    exec: "table",
  } satisfies Record<keyof ResultFields, Shape>,
  noun: "field of a result",
};

/**
 * For a handler whose result is more than plain text or JSON: text beside structured content, a
 * failure without an exception, or a command's outcome.
 */
export function result(fields: ResultFields): ToolResult {
  checkOptions("result", fields, shape);
  return { ...fields, [resultMark]: true };
}

export function isResult(value: unknown): value is ToolResult {
  return isObject(value) && value[resultMark as unknown as string] === true;
}

const blockFields: Readonly<Record<string, readonly string[]>> = {
  text: ["text"],
  image: ["data", "mimeType"],
  audio: ["data", "mimeType"],
  resource_link: ["uri"],
};

const optionalFields = new Set(["annotations", "_meta", "name", "title", "description", "mimeType", "size", "icons"]);

/** A content part, or a block in MCP's spelling with everything it needs. */
export function isBlock(value: unknown): value is Part | McpBlock {
  if (isPart(value)) return true;
  if (!isObject(value) || typeof value["type"] !== "string") return false;
  if (value["type"] === "resource") return isObject(value["resource"]) && typeof value["resource"]["uri"] === "string";
  if (!Object.hasOwn(blockFields, value["type"])) return false;
  const needed = blockFields[value["type"]] ?? [];
  return (
    needed.every((field) => typeof value[field] === "string") &&
    Object.keys(value).every((key) => key === "type" || needed.includes(key) || optionalFields.has(key))
  );
}
