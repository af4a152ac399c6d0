/**
 * What a handler gave back, as a model reads it: the outcome of a command is laid out in the form that
 * the model was trained on, and everything is cut to one budget. This is the one place where output is
 * cut. Texts, resources, blobs and media share the budget, which is spent in order.
 */
import { constants } from "node:os";
import { text, type Part } from "../base/content.ts";
import { defined } from "../base/json.ts";
import { estimateTokens, imageTokens } from "../base/tokens.ts";
import type { Ended } from "../spec/call.ts";
import type { ExecOutcome, ToolResult } from "../spec/result.ts";
import { bytesOf, lineBreaksOf, truncate, wholeOf, type Budget, type Cuttable } from "./truncate.ts";

/** What a handler decides about its call's end, read from whatever it returned, and the outcome of its command. */
export type HandlerResult = Pick<Ended, "content" | "structured" | "ok"> & Pick<ToolResult, "exec">;

/** Stores it in a file of its own: all of it, or its first `bytes`. */
export type Spill = (callId: string, whole: string | Uint8Array) => Promise<Kept>;

/** Where the whole of a cut output is kept. */
export interface Kept {
  readonly path: string;
  readonly bytes: number;
}

export interface CutContext {
  readonly callId: string;
  readonly layout: ExecLayout;
  readonly spill: Spill | undefined;
}

export interface CutOutput {
  readonly parts: readonly Part[];
  /** How many bytes were left out; 0 if everything is there. */
  readonly bytes: number;
  /** Where the whole is, if it was kept. */
  readonly file?: string;
}

/** A handler's answer as parts for a model, within the budget. */
export async function cutOutput(output: HandlerResult, common: Budget, context: CutContext): Promise<CutOutput> {
  const { exec } = output;
  // A model may ask for less than the usual budget, never for more.
  const budget = { ...common, maxTokens: Math.min(common.maxTokens, exec?.maxTokens ?? Infinity) };
  const media = await replaceLargeMedia(output.content, budget, context);
  const tell = (note: string) => tellAll(exec, media.parts, media.tokensLeft, budget, context.layout, note);
  const plain = tell("");
  if (plain.bytes === 0) return { parts: plain.parts, bytes: media.bytes, ...(media.file ? { file: media.file } : {}) };
  const kept = exec ? await keepExec(exec, context) : await keepTexts(media.parts, context);
  const told = kept === undefined ? plain : tell(noteOf(kept.file, kept.total));
  const file = kept?.file.path ?? media.file;
  return { parts: told.parts, bytes: told.bytes + media.bytes, ...(file === undefined ? {} : { file }) };
}

function noteOf({ path, bytes }: Kept, total: number): string {
  return bytes >= total ? `, whole in ${path}` : `, the first ${bytes} bytes in ${path}`;
}

/** Everything in order. Each text gets what the texts before it left of the budget. */
function tellAll(
  exec: ExecOutcome | undefined,
  parts: readonly Part[],
  tokens: number,
  budget: Budget,
  layout: ExecLayout,
  note: string,
): { readonly parts: readonly Part[]; readonly bytes: number } {
  let left = { maxTokens: tokens, maxLines: budget.maxLines, maxBytes: budget.maxBytes };
  let bytes = 0;
  let before: string | undefined;
  const cut = (source: Cuttable): string => {
    // What a text took is counted when another one follows it, which is seldom.
    if (before !== undefined)
      left = {
        maxTokens: Math.max(0, left.maxTokens - estimateTokens(before)),
        maxLines: Math.max(0, left.maxLines - lineBreaksOf(before)),
        maxBytes: Math.max(0, left.maxBytes - bytesOf(before)),
      };
    const done = truncate(source, left, note);
    before = done.text;
    bytes += done.bytes;
    return done.text;
  };
  const laidOut = exec ? [text(layoutExec(exec, layout, cut))] : [];
  const rest = parts.map((part): Part => {
    if (part.type === "text") return { ...part, text: cut(part.text) };
    return part.type === "resource" && part.text !== undefined ? { ...part, text: cut(part.text) } : part;
  });
  return { parts: [...laidOut, ...rest], bytes };
}

interface KeptWhole {
  readonly file: Kept;
  /** Bytes of the whole output. */
  readonly total: number;
}

/** An output that was too long for memory was stored while it was read. A shorter one is stored now. */
async function keepExec({ output }: ExecOutcome, { callId, spill }: CutContext): Promise<KeptWhole | undefined> {
  if (typeof output !== "string" && output.kept) return { file: output.kept, total: output.totalBytes };
  const whole = wholeOf(output);
  if (whole === undefined || spill === undefined) return undefined;
  return keepNow((typeof output === "string" ? undefined : output.raw) ?? whole, callId, spill);
}

async function keepTexts(parts: readonly Part[], { callId, spill }: CutContext): Promise<KeptWhole | undefined> {
  if (spill === undefined) return undefined;
  const texts = parts.flatMap((part) =>
    part.type === "text" ? [part.text] : part.type === "resource" && part.text !== undefined ? [part.text] : [],
  );
  return keepNow(texts.join("\n"), callId, spill);
}

async function keepNow(whole: string | Uint8Array, callId: string, spill: Spill): Promise<KeptWhole> {
  const total = typeof whole === "string" ? Buffer.byteLength(whole) : whole.length;
  return { file: await spill(callId, whole), total };
}

interface Media {
  readonly parts: readonly Part[];
  readonly tokensLeft: number;
  readonly bytes: number;
  readonly file?: string;
}

/**
 * Data that a model cannot be given becomes a line that says what it is and where it is. The first
 * image is the answer itself, and is passed on.
 */
async function replaceLargeMedia(parts: readonly Part[], budget: Budget, context: CutContext): Promise<Media> {
  let tokensLeft = budget.maxTokens;
  let bytes = 0;
  let file: string | undefined;
  let shown = 0;
  const told: Part[] = [];
  for (const part of parts) {
    if (part.type === "text" || part.data === undefined) {
      told.push(part);
      continue;
    }
    const { data } = part;
    const size = Math.floor((data.length * 3) / 4);
    const isBlob = part.type === "resource";
    // Nobody looks at a blob, so its letters are counted like any text.
    const tokens = isBlob ? (data.length > budget.maxTokens * 4 ? Infinity : estimateTokens(data)) : imageTokens;
    const fits = size <= budget.maxMediaBytes && (tokens <= tokensLeft || (!isBlob && shown === 0));
    if (fits) {
      tokensLeft = Math.max(0, tokensLeft - tokens);
      if (!isBlob) shown++;
      told.push(part);
      continue;
    }
    const kept = await context.spill?.(context.callId, Buffer.from(data, "base64"));
    file ??= kept?.path;
    bytes += size;
    told.push(...replaced(part, size, kept));
  }
  return { parts: told, tokensLeft, bytes, ...(file === undefined ? {} : { file }) };
}

function replaced(part: Exclude<Part, { type: "text" }>, size: number, kept: Kept | undefined): readonly Part[] {
  const what = [part.type, part.mediaType ?? "", part.type === "resource" ? part.uri : ""].filter(
    (word) => word !== "",
  );
  const where = kept === undefined ? "" : noteOf(kept, size);
  const line = text(`[${what.join(" ")}: ${size} bytes, too large to show${where}]`);
  if (part.type !== "resource") return [line];
  const { data: _left, ...link } = part;
  return [link, line];
}

/** The form, chosen by a profile. */
export type ExecLayout = "plain" | "sections" | "codex" | "codex-json";

type CutText = (output: Cuttable) => string;

/** `cut` shortens the part that can be long. What frames it stays complete. */
export function layoutExec(told: ExecOutcome, layout: ExecLayout, cut: CutText): string {
  const outcome = { ...told, exitCode: exitCodeOf(told), ...defined({ notes: notesOf(told) }) };
  switch (layout) {
    case "sections":
      return sectionsLayout(outcome, cut);
    case "codex":
      return codexLayout(outcome, cut);
    case "codex-json":
      return codexJsonLayout(outcome, cut);
    case "plain":
      return plainLayout(outcome, cut);
  }
}

/** As a shell would report it: 124 for the time limit, and 128 plus the signal's number for a death by signal. */
export function exitCodeOf({ exitCode, signal, timedOut, sessionId }: ExecOutcome): number | null {
  if (sessionId !== undefined) return null;
  if (timedOut) return 124;
  // Names of signals, as the system has them.
  const number = signal ? (constants.signals as Readonly<Record<string, number>>)[signal] : undefined;
  return exitCode ?? (number === undefined ? null : 128 + number);
}

function notesOf({
  output,
  heldOpen,
  waitingForInput,
  sessionId,
  notes = [],
}: ExecOutcome): readonly string[] | undefined {
  const all = [
    ...(heldOpen ? ["a background process kept the output open; it was ended"] : []),
    ...(waitingForInput
      ? [
          sessionId === undefined
            ? "the command was waiting for input; none can be given here"
            : "the process is waiting for input",
        ]
      : []),
    ...(typeof output !== "string" && output.binary ? ["the output is not text"] : []),
    ...notes,
  ];
  return all.length === 0 ? undefined : all;
}

/** The shortest form that says everything: the output, and the exit code if it is not 0. */
function plainLayout(outcome: ExecOutcome, cut: CutText): string {
  const output = cut(outcome.output);
  const notes = [...(outcome.notes ?? [])];
  if (outcome.timedOut) notes.unshift(`command timed out after ${Math.round(outcome.durationMs)} milliseconds`);
  if (outcome.sessionId !== undefined) notes.push(`still running as session ${outcome.sessionId}`);
  else if (outcome.exitCode !== 0) notes.push(`exit code ${outcome.exitCode ?? "unknown"}`);
  const tail = notes.map((note) => `[${note}]`).join("\n");
  if (output === "") return tail === "" ? "[no output]" : tail;
  return tail === "" ? output : `${output}${output.endsWith("\n") ? "" : "\n"}${tail}`;
}

/** Three parts with a heading each: `stdout:`, `stderr:`, `exit_code:`. */
function sectionsLayout(outcome: ExecOutcome, cut: CutText): string {
  const lines = [];
  if (bytesOf(outcome.stdout) > 0) lines.push(`stdout:\n${cut(outcome.stdout)}`);
  if (bytesOf(outcome.stderr) > 0) lines.push(`stderr:\n${cut(outcome.stderr)}`);
  lines.push(`exit_code: ${outcome.exitCode ?? -1}`);
  return lines.join("\n");
}

/** The text layout of codex's shell_command. */
function codexLayout(outcome: ExecOutcome, cut: CutText): string {
  if (outcome.chunkId !== undefined) return codexSessionLayout(outcome, cut);
  const output = cut(outcome.output);
  // One decimal, or none if it would be zero.
  const lines = [
    `Exit code: ${outcome.exitCode ?? -1}`,
    `Wall time: ${Math.round(outcome.durationMs / 100) / 10} seconds`,
  ];
  if (output !== wholeOf(outcome.output)) lines.push(`Total output lines: ${lineBreaksOf(outcome.output) + 1}`);
  const timeout = outcome.timedOut ? `command timed out after ${Math.round(outcome.durationMs)} milliseconds\n` : "";
  return [...lines, "Output:", timeout + output, ...(outcome.notes ?? [])].join("\n");
}

/** The layout of codex's exec_command and write_stdin, whose processes may go on. */
function codexSessionLayout(outcome: ExecOutcome, cut: CutText): string {
  const state =
    outcome.sessionId === undefined
      ? `Process exited with code ${outcome.exitCode ?? -1}`
      : `Process running with session ID ${outcome.sessionId}`;
  return [
    `Chunk ID: ${outcome.chunkId}`,
    `Wall time: ${(outcome.durationMs / 1000).toFixed(4)} seconds`,
    state,
    `Original token count: ${Math.ceil(bytesOf(outcome.output) / 4)}`,
    "Output:",
    [cut(outcome.output), ...(outcome.notes ?? [])].join("\n"),
  ].join("\n");
}

/** The JSON layout of codex's older shell tool. */
function codexJsonLayout(outcome: ExecOutcome, cut: CutText): string {
  return JSON.stringify({
    output: cut(outcome.output),
    metadata: { exit_code: outcome.exitCode ?? -1, duration_seconds: Math.round(outcome.durationMs / 100) / 10 },
  });
}
