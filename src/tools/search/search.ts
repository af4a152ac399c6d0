/**
 * Text in files: ripgrep where it is, our own search where it is not, with the same answers. `search/`
 * knows no tool; it reads through the files it is given.
 */
import picomatch from "picomatch";
import { CallError, type ToolContext } from "../../index.ts";
import { createSearchPool, type SearchPool } from "./pool.ts";
import { findRipgrep, searchWithRipgrep } from "./ripgrep.ts";
import type { SearchRequest, SearchResult } from "./request.ts";
import { walkFiles, type Candidate } from "./walk.ts";

const timeoutMs = 30_000;
const maxFiles = 200_000;
const maxFileBytes = 64 * 1024 * 1024;
const linesPerFile = 50;

export async function search(request: SearchRequest, ctx: ToolContext): Promise<SearchResult> {
  const root = await ctx.files.resolve(request.path, "read");
  const ripgrep = await findRipgrep(ctx);
  if (ripgrep !== undefined) {
    const result = await searchWithRipgrep(ripgrep, { ...request, path: root }, ctx, timeoutMs);
    if (result) return result;
  }
  return searchHere({ ...request, path: root }, ctx);
}

async function searchHere(request: SearchRequest, ctx: ToolContext): Promise<SearchResult> {
  const { pattern, flags } = toRegExp(request);
  const found = await candidates(request, ctx);
  const ordered = found.toSorted((a, b) => b.modifiedMs - a.modifiedMs || (a.path < b.path ? -1 : 1));
  const job = {
    pattern,
    flags,
    paths: ordered.map(({ path }) => path),
    maxLines: request.lines ? linesPerFile : 0,
    maxFileBytes,
  };
  const answer = await poolOf(ctx).run(job, timeoutMs, ctx.signal);
  const hits = answer.hits.slice(0, request.limit).map(({ index, lines }) => ({ path: ordered[index]!.path, lines }));
  const notes = [
    ...(answer.skipped > 0 ? [`${answer.skipped} files were too large or could not be read`] : []),
    ...(found.length >= maxFiles ? [`only the first ${maxFiles} files were searched`] : []),
  ];
  return { hits, more: answer.hits.length > hits.length, notes };
}

async function candidates(request: SearchRequest, ctx: ToolContext): Promise<readonly Candidate[]> {
  const entry = await ctx.files.stat(request.path);
  if (entry?.type === "file") {
    return [{ path: entry.path, relative: entry.name, modifiedMs: entry.modifiedMs, sizeBytes: entry.sizeBytes }];
  }
  // A glob without a slash is meant for names at any depth, as in ripgrep.
  const accepts =
    request.include === undefined
      ? () => true
      : picomatch(request.include, { basename: !request.include.includes("/"), dot: true });
  return walkFiles(request.path, ctx, { maxFiles, accepts: (relative) => accepts(relative) });
}

/** Patterns are written in ripgrep's way: leading flags in parentheses, and bytes where they are not ASCII. */
function toRegExp(request: SearchRequest): { readonly pattern: string; readonly flags: string } {
  const inline = /^\(\?([imsx]+)\)/.exec(request.pattern);
  const letters = new Set(
    [...(inline?.[1] ?? ""), ...(request.ignoreCase ? ["i"] : [])].filter((letter) => "is".includes(letter)),
  );
  const bare = inline ? request.pattern.slice(inline[0].length) : request.pattern;
  // Files are searched as bytes, which is twice as fast as decoding them; so the pattern is bytes too.
  const pattern = Buffer.from(bare, "utf8").toString("latin1");
  const flags = [...letters].join("");
  try {
    RegExp(pattern, flags);
    return { pattern, flags };
  } catch (error) {
    throw new CallError(
      "invalid_input",
      `The pattern is not a regular expression: ${error instanceof Error ? error.message : String(error)}`,
      {
        hint: "Escape characters that are meant as they are: ( ) [ ] { } . * + ? ^ $ | \\",
      },
    );
  }
}

const poolKey = "search.pool";

/** One pool a session. */
function poolOf(ctx: ToolContext): SearchPool {
  // Only this function writes the key, so what is there is a pool.
  const known = ctx.session.get(poolKey) as SearchPool | undefined;
  if (known) return known;
  const pool = createSearchPool();
  ctx.session.set(poolKey, pool);
  return pool;
}
