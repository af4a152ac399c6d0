import { resolve } from "node:path";
import { CallError, defineTool } from "../index.ts";
import type { SearchHit } from "./search/request.ts";

/** Files that contain a pattern, newest first; with the lines if asked. */
export const grepFiles = defineTool({
  name: "grep_files",
  description:
    "Find files whose text matches a regular expression, newest first. Ignored and hidden files are left out.",
  input: {
    type: "object",
    properties: {
      pattern: { type: "string", description: "Regular expression" },
      include: { type: "string", description: "Glob, such as '*.ts'" },
      path: { type: "string", description: "File or folder (the working folder)" },
      limit: { type: "integer", minimum: 1, maximum: 2000, description: "How many files (100)" },
      lines: { type: "boolean", description: "Matching lines with numbers" },
    },
    required: ["pattern"],
    additionalProperties: false,
  },
  access: ({ path = "." }, { cwd }) => ({ read: [resolve(cwd, path)] }),
  parallel: true,
  mutates: false,
  group: "file",
  timeoutMs: 60_000,
  async run({ pattern, include, path = ".", limit = 100, lines = false }, ctx) {
    if (pattern.trim() === "") throw new CallError("invalid_input", "The pattern is empty.");
    const request = {
      pattern: pattern.trim(),
      path,
      lines,
      limit,
      ...(include?.trim() ? { include: include.trim() } : {}),
    };
    // Loaded with the first search, because most sessions start without one.
    const { search } = await import("./search/search.ts");
    const { hits, more, notes } = await search(request, ctx);
    if (hits.length === 0) return ["No matches found.", ...notes.map((note) => `(${note})`)].join("\n");
    const rest = more ? [`(More than ${hits.length} files match; narrow the pattern or the path.)`] : [];
    return [...hits.flatMap(showHit), ...rest, ...notes.map((note) => `(${note})`)].join("\n");
  },
});

function showHit({ path, lines }: SearchHit): readonly string[] {
  return [path, ...lines.map(({ number, text }) => `  ${number}: ${text.slice(0, 500)}`)];
}
