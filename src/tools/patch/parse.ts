/**
 * Turns the text of a patch into file changes, by the grammar that the model is shown. All ways in
 * which a patch can arrive use this one engine. It reads and writes only through the files it is
 * given.
 */
import { CallError } from "../../index.ts";

export interface Patch {
  readonly hunks: readonly Hunk[];
  /** What was removed around the patch: a fence, a here-document, a JSON wrapper. */
  readonly notes: readonly string[];
}

/** What a patch does to one file. */
export type Hunk = AddHunk | DeleteHunk | UpdateHunk;

interface AddHunk {
  readonly kind: "add";
  readonly path: string;
  readonly lines: readonly string[];
}

interface DeleteHunk {
  readonly kind: "delete";
  readonly path: string;
}

/** A file that is changed, and perhaps moved. */
export interface UpdateHunk {
  readonly kind: "update";
  readonly path: string;
  readonly moveTo?: string;
  readonly chunks: readonly Chunk[];
}

/** One place of a file: where it is (`anchors`), and the lines there. */
export interface Chunk {
  /** The texts after `@@`, outermost first. */
  readonly anchors: readonly string[];
  /** A line number from a unified-diff header (`@@ -12,3 …`), as a hint only. */
  readonly nearLine?: number;
  readonly lines: readonly ChunkLine[];
  readonly atEnd: boolean;
  /** The line in the patch, for messages. */
  readonly patchLine: number;
}

/** A line that stays, is added or is removed. */
export interface ChunkLine {
  readonly op: " " | "+" | "-";
  readonly text: string;
}

const begin = "*** Begin Patch";
const end = "*** End Patch";
const endOfFile = "*** End of File";
const headers = { add: "*** Add File: ", delete: "*** Delete File: ", update: "*** Update File: " } as const;
const moveHeader = "*** Move to: ";
const environmentHeader = "*** Environment ID: ";

/** The last patch that was read: it is asked for its paths before it is applied. Nobody else keeps it. */
let last: WeakRef<{ readonly source: string; readonly patch: Patch }> | undefined;

export function parsePatch(source: string): Patch {
  const known = last?.deref();
  if (known?.source === source) return known.patch;
  const read = { source, patch: readPatch(source) };
  last = new WeakRef(read);
  return read.patch;
}

function readPatch(source: string): Patch {
  const { text, notes } = unwrap(source);
  const split = text.split("\n");
  const lines = text.includes("\r") ? split.map((line) => (line.endsWith("\r") ? line.slice(0, -1) : line)) : split;
  if (lines[0]?.trim() !== begin) throw invalid(`the first line must be '${begin}'`, 1);
  if (lines.length < 2 || lines.at(-1)?.trim() !== end) throw invalid(`the last line must be '${end}'`, lines.length);
  const parser = createHunkParser();
  for (let index = 1; index < lines.length - 1; index++) parser.line(lines[index]!, index + 1);
  return { hunks: parser.end(lines.length), notes };
}

/** Removes what models put around a patch. The patch itself is never repaired. */
function unwrap(source: string): { readonly text: string; readonly notes: readonly string[] } {
  const notes: string[] = [];
  let text = source.trim();
  const json = fromJson(text);
  if (json !== undefined) {
    text = json.trim();
    notes.push("the patch came wrapped in JSON");
  }
  const fence = /^```[\w-]*\r?\n([\s\S]*?)\r?\n```$/.exec(text);
  if (fence) {
    text = fence[1]!.trim();
    notes.push("the patch came in a code fence");
  }
  const heredoc = /^(?:apply_?patch\s+)?<<-?\s*(['"]?)([\w.-]+)\1[^\S\n]*\r?\n([\s\S]*?)\r?\n\s*\2$/.exec(text);
  if (heredoc) {
    text = heredoc[3]!.trim();
    notes.push("the patch came as a here-document");
  }
  return { text, notes };
}

function fromJson(text: string): string | undefined {
  if (!text.startsWith("{")) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    for (const key of ["input", "patch"]) {
      const inner: unknown = Object.getOwnPropertyDescriptor(value, key)?.value;
      if (typeof inner === "string") return inner;
    }
  } catch {
    // Not complete JSON, so it is not a wrapper, and the patch parser says what is missing.
  }
  return undefined;
}

export interface HunkParser {
  line(text: string, number: number): void;
  /** The hunks, once the End marker is reached. */
  end(number: number): readonly Hunk[];
  /** The hunks seen so far, the last of them still open. */
  soFar(): readonly Hunk[];
}

/** A hunk under construction. */
type Open =
  | { kind: "add"; path: string; lines: string[]; blankAt?: number }
  | { kind: "delete"; path: string }
  | { kind: "update"; path: string; moveTo?: string; chunks: OpenChunk[]; headerLine: number };

interface OpenChunk {
  anchors: string[];
  nearLine?: number;
  lines: ChunkLine[];
  atEnd: boolean;
  patchLine: number;
}

/** Works line by line, so that the same code reads a complete patch and one that is still arriving. */
export function createHunkParser(): HunkParser {
  const done: Open[] = [];
  let hasEnvironment = false;

  const leave = (number: number) => {
    const open = done.at(-1);
    if (open?.kind === "update") closeUpdate(open, number);
  };

  const line = (text: string, number: number) => {
    const open = done.at(-1);
    const header = readHeader(open?.kind === "update" ? text.trimEnd() : text.trim(), number);
    if (header !== undefined) {
      leave(number);
      done.push(header);
      return;
    }
    if (open?.kind === "update") return updateLine(open, text, number);
    if (open?.kind === "add") return addLine(open, text, number);
    if (open === undefined && !hasEnvironment && text.trim().startsWith(environmentHeader)) {
      hasEnvironment = true;
      return;
    }
    // A blank line between two files says nothing.
    if (text.trim() === "" && open !== undefined) return;
    throw badHeader(text, number);
  };

  return {
    line,
    end(number) {
      leave(number);
      return done;
    },
    soFar: () => done,
  };
}

function readHeader(text: string, number: number): Open | undefined {
  if (!text.startsWith("*** ")) return undefined;
  for (const kind of ["add", "delete", "update"] as const) {
    if (!text.startsWith(headers[kind].trimEnd())) continue;
    const path = text.slice(headers[kind].length - 1).trim();
    if (path === "") throw invalid(`'${text.trim()}' names no file`, number);
    if (kind === "add") return { kind, path, lines: [] };
    return kind === "delete" ? { kind, path } : { kind, path, chunks: [], headerLine: number };
  }
  return undefined;
}

function addLine(open: Extract<Open, { kind: "add" }>, text: string, number: number): void {
  if (!text.startsWith("+")) {
    if (text.trim() !== "") throw badHeader(text, number);
    open.blankAt ??= number;
    return;
  }
  // Between two lines of a file a blank one without its '+' would be lost in silence.
  if (open.blankAt !== undefined) throw invalid("an empty line of a new file needs its '+'", open.blankAt);
  open.lines.push(text.slice(1));
}

function updateLine(open: Extract<Open, { kind: "update" }>, text: string, number: number): void {
  const chunk = open.chunks.at(-1);
  const op = text === "" ? " " : text[0];
  // No header begins with one of these.
  if (chunk?.atEnd !== true && (op === " " || op === "+" || op === "-")) {
    const target = chunk ?? newChunk(number);
    if (chunk === undefined) open.chunks.push(target);
    target.lines.push({ op, text: text.slice(1) });
    return;
  }
  const trimmed = text.trimEnd();
  if (trimmed.startsWith(moveHeader.trimEnd())) {
    const path = trimmed.slice(moveHeader.length - 1).trim();
    if (chunk !== undefined || open.moveTo !== undefined)
      throw invalid(`'${trimmed}' belongs right after the Update File line, once`, number);
    if (path === "") throw invalid(`'${trimmed}' names no file`, number);
    open.moveTo = path;
    return;
  }
  if (trimmed === "@@" || trimmed.startsWith("@@ ")) return openChunk(open, chunk, trimmed, number);
  if (trimmed === endOfFile) {
    if (chunk === undefined) return;
    if (chunk.lines.length === 0) throw invalid(`'${endOfFile}' comes before any line of its chunk`, number);
    chunk.atEnd = true;
    return;
  }
  if (chunk?.atEnd) {
    if (trimmed === "") return;
    throw invalid(`after '${endOfFile}' a chunk is over: expected '@@' or another file, found '${trimmed}'`, number);
  }
  // Diff programs write this below a last line; which newline the file ends with is kept anyway.
  if (trimmed === "\\ No newline at end of file") return;
  throw invalid(`'${trimmed}' begins with none of ' ' (kept), '-' (removed), '+' (added) and is no header`, number);
}

/** `@@`, `@@ text`, several stacked, or the header of a unified diff. */
function openChunk(
  open: Extract<Open, { kind: "update" }>,
  chunk: OpenChunk | undefined,
  text: string,
  number: number,
): void {
  const stacked = chunk !== undefined && chunk.lines.length === 0;
  const target = stacked ? chunk : newChunk(number);
  if (!stacked) open.chunks.push(target);
  const unified = /^@@ -(\d+)(?:,\d+)? \+\d+(?:,\d+)? @@(?: (.*))?$/.exec(text);
  if (unified) {
    target.nearLine = Number(unified[1]);
    return;
  }
  const anchor = text.slice(3);
  if (anchor.trim() !== "") target.anchors.push(anchor);
}

function newChunk(patchLine: number): OpenChunk {
  return { anchors: [], lines: [], atEnd: false, patchLine };
}

function closeUpdate(open: Extract<Open, { kind: "update" }>, number: number): void {
  if (open.chunks.length === 0 && open.moveTo === undefined) {
    throw invalid(`the update of '${open.path}' is empty`, open.headerLine);
  }
  if (open.chunks.at(-1)?.lines.length === 0) throw invalid("the '@@' before this line has no lines", number);
}

function badHeader(text: string, number: number): CallError {
  const valid = Object.values(headers).map((header) => `'${header}PATH'`);
  return invalid(`'${text.trim().slice(0, 200)}' is not a header; valid ones are ${valid.join(", ")}`, number);
}

function invalid(message: string, line: number): CallError {
  return new CallError("invalid_input", `The patch cannot be read: line ${line}: ${message}.`, {
    hint: `Form: '${begin}', then per file '${headers.update}PATH' ('${headers.add}PATH', '${headers.delete}PATH') and its lines, then '${end}'.`,
    data: { line },
  });
}
