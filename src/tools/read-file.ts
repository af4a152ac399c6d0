import { resolve } from "node:path";
import { CallError, defineTool, type ToolContext } from "../index.ts";
import { indentationBlock, type IndentationOptions } from "./file/indentation.ts";
import { describeKind, isText, sniff } from "./file/sniff.ts";

const maxLineBytes = 500;
const defaultLimit = 2_000;

/** Reads a text file, whole or by lines. Reading some lines of a long file costs no more than those lines. */
export const readFile = defineTool({
  name: "read_file",
  description: "Read a text file with line numbers, whole or a part of it.",
  input: {
    type: "object",
    properties: {
      file_path: { type: "string", description: "The file" },
      offset: {
        type: "integer",
        description: "First line, from 1; -50: the last fifty lines",
      },
      limit: { type: "integer", minimum: 1, description: "How many lines (2000)" },
      mode: {
        type: "string",
        enum: ["slice", "indentation"],
        description: "slice: lines as they come; indentation: the block around a line",
      },
      indentation: {
        type: "object",
        properties: {
          anchor_line: { type: "integer", minimum: 1, description: "The line the block is built around (offset)" },
          max_levels: { type: "integer", minimum: 0, description: "How many levels of indentation outwards; 0 is all" },
          include_siblings: { type: "boolean", description: "Blocks beside it at the same level too" },
          include_header: { type: "boolean", description: "Comments above the block too (true)" },
          max_lines: { type: "integer", minimum: 1 },
        },
        additionalProperties: false,
      },
    },
    required: ["file_path"],
    additionalProperties: false,
  },
  unlisted: (_situation, short) => (short ? ["mode", "indentation"] : []),
  access: ({ file_path }, { cwd }) => ({ read: [resolve(cwd, file_path)] }),
  parallel: true,
  mutates: false,
  group: "file",
  async run({ file_path: path, offset = 1, limit = defaultLimit, mode = "slice", indentation }, ctx) {
    if (offset === 0) throw new CallError("invalid_input", "offset counts from 1; negative counts from the end.");
    if (mode === "indentation") return readBlock(path, offset, limit, indentation ?? {}, ctx);
    return readSlice(path, offset, limit, ctx);
  },
});

async function readSlice(path: string, offset: number, limit: number, ctx: ToolContext): Promise<string> {
  const to = offset < 0 ? Math.min(-1, offset + limit - 1) : offset + limit - 1;
  // A few bytes more than is shown, so that a cut falls between characters.
  const slice = await ctx.files.slice(path, offset, to, { maxLineBytes: maxLineBytes + 8 });
  const kind = sniff(slice.head);
  if (kind.type === "utf16") return showText((await ctx.files.readText(path)).text.split(/\r?\n/), offset, limit);
  if (!isText(kind)) throw notText(path, kind, slice.sizeBytes);
  if (slice.lines.length === 0 && slice.sizeBytes === 0) return "(The file is empty.)";
  if (slice.lines.length === 0)
    throw new CallError("invalid_input", `${path} has fewer than ${Math.abs(offset)} lines.`);
  const shown = slice.lines.map((line, index) => showLine(line, slice.first + index));
  if (slice.more && offset > 0) shown.push(`(More lines follow; the next is offset ${offset + slice.lines.length}.)`);
  return shown.join("\n");
}

async function readBlock(
  path: string,
  offset: number,
  limit: number,
  options: IndentationOptions,
  ctx: ToolContext,
): Promise<string> {
  const file = await ctx.files.readText(path);
  const kind = sniff(Buffer.from(file.text.slice(0, 512), "utf8"));
  if (!isText(kind)) throw notText(path, kind, file.text.length);
  const lines = file.text.split(/\r?\n/);
  if (lines.at(-1) === "") lines.pop();
  const anchor = options.anchor_line ?? offset;
  if (anchor < 1 || anchor > lines.length)
    throw new CallError("invalid_input", `${path} has no line ${anchor}; it has ${lines.length}.`);
  const { first, last } = indentationBlock(lines, anchor, limit, options);
  return showText(lines.slice(0, last), first, last - first + 1);
}

function showText(lines: readonly string[], offset: number, limit: number): string {
  const from = offset < 0 ? Math.max(0, lines.length + offset) : offset - 1;
  return lines
    .slice(from, from + limit)
    .map((line, index) => showLine(line, from + 1 + index))
    .join("\n");
}

function showLine(line: string, number: number): string {
  return `L${number}: ${cutBytes(line)}`;
}

/** At most 500 bytes, never half a character. */
function cutBytes(line: string): string {
  if (line.length * 3 <= maxLineBytes || Buffer.byteLength(line) <= maxLineBytes) return line;
  const bytes = Buffer.from(line);
  let end = maxLineBytes;
  while (end > 0 && (bytes[end]! & 0xc0) === 0x80) end--;
  return bytes.toString("utf8", 0, end);
}

function notText(path: string, kind: ReturnType<typeof sniff>, size: number): CallError {
  return new CallError("failed", `${path} is not text: ${describeKind(kind)}, ${size} bytes.`, {
    hint: kind.type === "image" ? "Use view_image to look at it." : "Use a command that understands this format.",
  });
}
