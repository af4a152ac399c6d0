/**
 * The shape stage, from Ran to Ended. Whatever a handler returned becomes parts for a model, cut to
 * one budget in one place; an error becomes words. `result/` knows no wire and runs nothing.
 */
import { text } from "../base/content.ts";
import { isRefusal, type CallError } from "../base/error.ts";
import { extend } from "../base/extend.ts";
import { defined, isObject, type Json } from "../base/json.ts";
import type { Asked, Ended, Permitted, Ran } from "../spec/call.ts";
import type { ExecOutcome } from "../spec/tool.ts";
import { cutOutput, type Spill } from "./cut.ts";
import { heldPart } from "./effects.ts";
import { exitCodeOf, type ExecLayout } from "./layout.ts";
import { readOutput } from "./output.ts";
import { defaultBudget, errorBudget, truncate, type Budget } from "./truncate.ts";

export interface Shaper {
  shape(ran: Ran): Promise<Ended>;
  /** Ends a call early, in whatever state it had reached. */
  refuse(reached: Asked & Partial<Permitted>, error: CallError): Ended;
}

/** How results are cut and laid out. */
export interface ShapeOptions {
  readonly budget?: Partial<Budget>;
  readonly layout?: ExecLayout;
  /** How a call asks to run outside the sandbox, if asking helps. Only the layout `seed` mentions it. */
  readonly elevation?: (call: Asked & Partial<Permitted>) => string | undefined;
  /** Stores what was cut, and says where it can be read. Left out: what is cut is lost. */
  readonly spill?: Spill;
  /** Checks a tool's declared output schema. Issues make the call fail. */
  readonly checkOutput?: (ran: Ran, structured: Json | undefined) => Promise<readonly string[]>;
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
      ...heldPart(ran),
      ...(output.structured === undefined ? {} : { structured: output.structured }),
      ...(ran.cached ? { cached: true as const } : {}),
      ...(output.exec ? { exitCode: exitCodeOf(output.exec) } : {}),
      ...(cut.bytes === 0 ? {} : { cut: { bytes: cut.bytes, ...defined({ file: cut.file }) } }),
    });
  };

  const wordsOf = (error: CallError, reached: Asked & Partial<Permitted>) =>
    options.layout === "seed" ? seedErrorText(error, options.elevation?.(reached)) : errorText(error);

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
function seedErrorText(error: CallError, elevation: string | undefined): string {
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
