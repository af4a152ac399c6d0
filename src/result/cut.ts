/**
 * The one place where output for a model is cut. Texts, resources, blobs and media share one budget,
 * which is spent in order.
 */
import { text, type Part } from "../base/content.ts";
import { estimateTokens, imageTokens } from "../base/tokens.ts";
import type { ExecOutcome } from "../spec/tool.ts";
import { layoutExec, type ExecLayout } from "./layout.ts";
import type { PlainOutput } from "./output.ts";
import { bytesOf, lineBreaksOf, truncate, wholeOf, type Budget, type Cuttable } from "./truncate.ts";

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
export async function cutOutput(output: PlainOutput, common: Budget, context: CutContext): Promise<CutOutput> {
  const { exec } = output;
  // A model may ask for less than the usual budget, never for more.
  const budget = { ...common, maxTokens: Math.min(common.maxTokens, exec?.maxTokens ?? Infinity) };
  const media = await replaceLargeMedia(output.parts, budget, context);
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
