/**
 * The shape stage, from Ran to Ended. Whatever a handler returned becomes parts for a model, cut to
 * one budget in one place; an error becomes words. `result/` knows no wire and runs nothing.
 */
import { isPart, text, type Part } from "../base/content.ts";
import { CallError, isRefusal } from "../base/error.ts";
import { extend } from "../base/extend.ts";
import { defined, isObject, type Json } from "../base/json.ts";
import type { Asked, Ended, Permitted, Ran } from "../spec/call.ts";
import { isBlock, isResult } from "../spec/result.ts";
import type { ExecOutcome, ToolOutput } from "../spec/tool.ts";
import { cutOutput, exitCodeOf, type ExecLayout, type HandlerResult, type Spill } from "./cut.ts";
import { heldPart } from "./effects.ts";
import { defaultBudget, errorBudget, truncate, type Budget } from "./truncate.ts";

export interface Shaper {
  shape(ran: Ran): Promise<Ended>;
  /** Ends a call early, in whatever state it had reached. */
  refuse(reached: Asked & Partial<Permitted>, error: CallError): Ended;
}

/** How results are cut and laid out. */
export interface ShapeOptions {
  /** How much of an output a model gets, where that differs from the default. */
  readonly budget?: Partial<Budget>;
  /** How the outcome of a command is laid out. Left out: as the model's profile says. */
  readonly layout?: ExecLayout;
  /** How a call asks to run outside the sandbox, if asking helps. Only the layout `sections` mentions it. */
  readonly elevation?: (call: Asked & Partial<Permitted>) => string | undefined;
  /** Stores what was cut, and says where it can be read. Left out: what is cut is lost. */
  readonly spill?: Spill;
  /** Checks a tool's declared output schema. Issues make the call fail. */
  readonly checkOutput?: (ran: Ran, structured: Json | undefined) => Promise<readonly string[]>;
  /** The clock, for tests. */
  readonly now?: () => number;
}

export function createShaper(options: ShapeOptions = {}): Shaper {
  const common = { ...defaultBudget, ...options.budget };
  const now = options.now ?? Date.now;

  const shape = async (ran: Ran): Promise<Ended> => {
    if (ran.error) return { ...refuse(ran, ran.error), ...heldPart(ran) };
    const output = readOutput(ran.output);
    const problems = output.ok ? ((await options.checkOutput?.(ran, output.structured)) ?? []) : [];
    const cut = await cutOutput(output, common, {
      layout: options.layout ?? "plain",
      callId: ran.id,
      spill: options.spill,
    });
    const failed =
      problems.length > 0
        ? [text(`Error: the tool's result does not match its output schema: ${problems.join("; ")}`)]
        : undefined;
    const ok = output.ok && failed === undefined && isSuccess(output.exec);
    return extend(ending(ran, now()), {
      ok,
      ...(ok ? {} : { code: output.exec?.timedOut ? ("timeout" as const) : ("failed" as const) }),
      content: failed ?? [...cut.parts, ...(ran.remarks ?? []).map((remark) => text(remark))],
      ...(ran.denied === undefined ? {} : { denied: ran.denied }),
      ...heldPart(ran),
      ...(output.structured === undefined ? {} : { structured: output.structured }),
      ...(ran.cached ? { cached: true as const } : {}),
      ...(output.exec ? { exitCode: exitCodeOf(output.exec) } : {}),
      ...(cut.bytes === 0 ? {} : { cut: { bytes: cut.bytes, ...defined({ file: cut.file }) } }),
    });
  };

  const wordsOf = (error: CallError, reached: Asked & Partial<Permitted>) =>
    options.layout === "sections" ? sectionsErrorText(error, options.elevation?.(reached)) : errorText(error);

  const refuse = (reached: Asked & Partial<Permitted>, error: CallError): Ended => ({
    ...ending(reached, now()),
    ok: false,
    code: error.code,
    content: [text(truncate(wordsOf(error, reached), errorBudget).text)],
    ...(error.data === undefined ? {} : { structured: { error: error.code, data: error.data as Json } }),
    ...(isObject(error.data) && error.data["stopTurn"] === true ? { stopsTurn: true } : {}),
  });

  return { shape, refuse };
}

/** What a model reads when a call ended without a result. */
export function errorText(error: CallError): string {
  return `Error: ${error.message}${error.hint === undefined ? "" : `\n${error.hint}`}`;
}

/** A short sentence for each kind of error, followed by ours. */
function sectionsErrorText(error: CallError, elevation: string | undefined): string {
  const { code, message, hint } = error;
  const told = `${message}${hint === undefined ? "" : `\n${hint}`}`;
  if (code === "unknown_tool" || code === "invalid_input") return `Error: ${told}`;
  if (code === "failed") return `Error: Execution failed: ${told}`;
  if (isRefusal(code) || code === "sandbox_denied")
    return `Error: Permission denied.${elevation === undefined ? "" : ` Use ${elevation} if needed`}\n${told}`;
  return `Error: Tool execution error: ${told}`;
}

/**
 * The fields that an ending shares with the states before it. They are plain JSON, so the tool itself
 * is never among them.
 */
function ending(call: Asked & Partial<Permitted>, endedAt: number) {
  const { id, name, kind, arguments: raw, askedAt, namespace, parent, markerless, untyped } = call;
  const { input, access, grant, ruling, notes } = call;
  return {
    id,
    name,
    kind,
    arguments: raw,
    askedAt,
    ...(namespace === undefined ? {} : { namespace }),
    ...(parent === undefined ? {} : { parent }),
    ...(markerless === undefined ? {} : { markerless }),
    ...(untyped === undefined ? {} : { untyped }),
    ...(call.tool === undefined ? {} : { tool: call.tool.name }),
    ...(input === undefined ? {} : { input }),
    ...(access === undefined ? {} : { access }),
    ...(grant === undefined ? {} : { grant }),
    ...(ruling === undefined ? {} : { ruling }),
    ...(notes === undefined || notes.length === 0 ? {} : { notes }),
    endedAt,
    durationMs: endedAt - askedAt,
  };
}

/** A command that ended with another code than 0 did not do what was asked. One that is still running may yet do it. */
function isSuccess(exec: ExecOutcome | undefined): boolean {
  return exec === undefined || exec.sessionId !== undefined || (exec.exitCode === 0 && !exec.timedOut);
}

/**
 * Brings text, JSON, parts, a marked result or an MCP result into one form. Anything that cannot be
 * read or written as JSON (a cycle, a function, an object whose fields throw) is the handler's
 * failure: it becomes a CallError, and nothing else is ever thrown.
 */
export function readOutput(output: ToolOutput): HandlerResult {
  try {
    return read(output);
  } catch (error) {
    if (CallError.is(error)) throw error;
    throw new CallError("failed", "The tool gave back something that cannot be read.", { cause: error });
  }
}

function read(output: unknown): HandlerResult {
  if (output === undefined) return { content: [], ok: true };
  if (output instanceof Error) throw returned(output);
  if (output instanceof Map || output instanceof Set) {
    const kind = output instanceof Map ? "Map" : "Set";
    throw new CallError(
      "failed",
      `The tool gave back a ${kind}, which JSON cannot hold: give back an object or a list.`,
    );
  }
  if (typeof output === "string") return { content: [text(output)], ok: true };
  if (Array.isArray(output) && output.length > 0 && output.every(isBlock))
    return { content: output.map(toPart), ok: true };
  if (isPart(output)) return { content: [output], ok: true };
  if (isResult(output)) return readFields(output);
  if (isMcpResult(output)) {
    const { content, isError, structuredContent: structured } = output;
    return readFields({ content, ok: isError !== true, structured });
  }
  const written = writeJson(output);
  // The journal and clients get exactly what was written as JSON: dates as text, and nothing that only code can hold.
  const structured = JSON.parse(written) as Json;
  return isFailure(structured)
    ? { content: [text(structured.error)], structured, ok: false }
    : { content: [text(written)], structured, ok: true };
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

function readFields({ content = [], structured, ok, error, exec }: Fields): HandlerResult {
  const given = typeof content === "string" ? [text(content)] : Array.isArray(content) ? content.map(toPart) : [];
  const json = structured === undefined ? undefined : writeJson(structured);
  const failed = ok === false || typeof error === "string";
  const words = typeof error === "string" ? [text(error), ...given] : given;
  return {
    content: words.length === 0 && json !== undefined ? [text(json)] : words,
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
