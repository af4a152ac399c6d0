import { resolve } from "node:path";
import { CallError, defineTool } from "../../../index.ts";
import { mcpText } from "../result.ts";

/** Lines of the project that match, by file. */
export default defineTool({
  name: "internal_code_search",
  group: "code",
  description: "Search the project's code; answers with files, line numbers and lines.",
  input: {
    type: "object",
    properties: {
      query: { type: "string", description: "The text to find, or a regular expression with regex" },
      path: { type: "string", description: "File or folder (the project's root)" },
      include: { type: "string", description: "Glob for the files, such as '*.ts'" },
      regex: { type: "boolean", description: "query is a regular expression (false)" },
      ignore_case: { type: "boolean" },
      limit: { type: "integer", minimum: 1, maximum: 2000, description: "How many files (50)" },
    },
    required: ["query"],
    additionalProperties: false,
  },
  access: ({ path = "." }, { workspace }) => ({ read: [resolve(workspace, path)] }),
  parallel: true,
  mutates: false,
  timeoutMs: 60_000,
  async run({ query, path = ".", include, regex = false, ignore_case: ignoreCase = false, limit = 50 }, ctx) {
    if (query === "") throw new CallError("invalid_input", "The query is empty.");
    const pattern = regex ? query : query.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
    const request = {
      pattern,
      path: resolve(ctx.workspace, path),
      ignoreCase,
      lines: true,
      limit,
      ...(include ? { include } : {}),
    };
    // Loaded with the first search, because most sessions start without one.
    const { search } = await import("../../search/search.ts");
    const { hits, more, notes } = await search(request, ctx);
    const matches = hits.map((hit) => ({
      file: hit.path,
      lines: hit.lines.map(({ number, text }) => ({ line: number, text })),
    }));
    return mcpText({
      query,
      files: matches.length,
      matches,
      ...(more ? { more } : {}),
      ...(notes.length > 0 ? { notes } : {}),
    });
  },
});
