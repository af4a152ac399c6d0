/**
 * Text in files: ripgrep where it is, our own search where it is not, with the same answers. `search/`
 * knows no tool; it reads through the files it is given.
 */
import { basename, dirname } from "node:path";
import picomatch from "picomatch";
import { CallError, type ToolContext } from "../../index.ts";
import { createSearchPool, type SearchPool } from "./pool.ts";
import { findRipgrep, searchWithRipgrep } from "./ripgrep.ts";
import type { SearchRequest, SearchResult } from "./request.ts";
import { walkFiles, type Found } from "./walk.ts";
import type { FolderFiles, WorkerHit } from "./worker.ts";

const timeoutMs = 30_000;
const maxFiles = 200_000;
const maxFileBytes = 64 * 1024 * 1024;
/** The limit for a file that was itself named as the place to search. */
const maxSingleBytes = 1024 * 1024 * 1024;
const linesPerFile = 50;
const batchSize = 400;

export async function search(request: SearchRequest, ctx: ToolContext): Promise<SearchResult> {
  const root = await ctx.files.resolve(request.path, "read");
  const entry = await ctx.files.stat(root);
  // Reading a pipe or a device could block for ever.
  if (entry?.type === "other") throw new CallError("denied", `${request.path} is neither a file nor a folder.`);
  if (entry?.type === "file" && entry.sizeBytes > maxSingleBytes)
    throw new CallError("failed", `${request.path} is too large to search (${entry.sizeBytes} bytes).`);
  const ripgrep = await findRipgrep(ctx);
  if (ripgrep !== undefined) {
    const result = await searchWithRipgrep(ripgrep, { ...request, path: root }, ctx, timeoutMs);
    if (result) return result;
  }
  return searchHere({ ...request, path: root }, ctx);
}

async function searchHere(request: SearchRequest, ctx: ToolContext): Promise<SearchResult> {
  const { pattern, flags } = toRegExp(request);
  const run = poolOf(ctx).start(timeoutMs, ctx.signal);
  const maxLines = request.lines ? linesPerFile : 0;
  const answers: Promise<readonly WorkerHit[]>[] = [];
  let files = 0;
  let skipped = 0;
  const job = { pattern, flags, literal: literalOf(pattern, flags), maxLines, maxFileBytes };
  const look = async (folders: readonly FolderFiles[]): Promise<readonly WorkerHit[]> => {
    const answer = await run.send({ ...job, folders });
    skipped += answer.skipped;
    return answer.hits;
  };
  try {
    // The thread reads one batch while the next is still being listed.
    for await (const batch of batches(candidates(request, ctx))) {
      const answer = look(batch.folders);
      // It may fail while the walk is still going on. The error is reported below, where all jobs are awaited.
      answer.catch(() => undefined);
      answers.push(answer);
      files += batch.count;
      if (files >= maxFiles) break;
    }
    const found = (await Promise.all(answers))
      .flat()
      .toSorted((a, b) => b.modifiedMs - a.modifiedMs || (a.path < b.path ? -1 : 1));
    const hits = found.slice(0, request.limit).map(({ path, lines }) => ({ path, lines }));
    const notes = [
      ...(skipped > 0 ? [`${skipped} files were too large or could not be read`] : []),
      ...(files >= maxFiles ? [`only the first ${files} files were searched`] : []),
    ];
    return { hits, more: found.length > hits.length, notes };
  } finally {
    run.finish();
  }
}

interface Batch {
  readonly folders: readonly FolderFiles[];
  /** The number of files in all of these folders. */
  readonly count: number;
}

/** Puts so many files into one job that handing them over costs little compared with reading them. */
async function* batches(source: AsyncIterable<Found>): AsyncGenerator<Batch> {
  let folders: FolderFiles[] = [];
  let count = 0;
  for await (const { folder, names } of source) {
    folders.push({ folder, names: names.join("/") });
    count += names.length;
    if (count < batchSize) continue;
    yield { folders, count };
    folders = [];
    count = 0;
  }
  if (count > 0) yield { folders, count };
}

async function* candidates(request: SearchRequest, ctx: ToolContext): AsyncGenerator<Found> {
  const entry = await ctx.files.stat(request.path);
  if (entry?.type === "file") {
    yield { folder: dirname(entry.path), names: [basename(entry.path)] };
    return;
  }
  const { include } = request;
  // A glob without a slash is meant for names at any depth, as in ripgrep.
  const accepts =
    include === undefined ? () => true : picomatch(include, { basename: !include.includes("/"), dot: true });
  yield* walkFiles(request.path, ctx, (relative) => accepts(relative));
}

/** Patterns are written in ripgrep's way: leading flags in parentheses, and bytes where they are not ASCII. */
function toRegExp(request: SearchRequest): { readonly pattern: string; readonly flags: string } {
  const inline = /^\(\?([imsx]+)\)/.exec(request.pattern);
  const asked = `${inline?.[1] ?? ""}${request.ignoreCase ? "i" : ""}`;
  const bare = inline ? request.pattern.slice(inline[0].length) : request.pattern;
  // Files are searched as bytes, which is twice as fast as decoding them; so the pattern is bytes too.
  const pattern = Buffer.from(bare, "utf8").toString("latin1");
  const flags = ["i", "s"].filter((letter) => asked.includes(letter)).join("");
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

/**
 * A text that every match contains, or an empty text if none is obvious. Searching bytes for a text is much
 * faster than for a pattern, and most files contain neither.
 */
export function literalOf(pattern: string, flags: string): string {
  if (flags.includes("i")) return "";
  let longest = "";
  let run = "";
  const endRun = () => {
    if (run.length > longest.length) longest = run;
    run = "";
  };
  for (const [, escaped, plain, count] of pattern.matchAll(/(?:\\([^])|([^]))([*+?]\??)?/g)) {
    // With a group, a class, alternatives, or an escape that stands for another character, no text is obvious.
    if (escaped === undefined ? /[()[\]{}|]/.test(plain!) : /[^\WbBdDsSwW]/.test(escaped)) return "";
    const isItself = escaped === undefined ? !/[.^$]/.test(plain!) : !/\w/.test(escaped);
    if (isItself && (count === undefined || count.startsWith("+"))) run += escaped ?? plain;
    if (!isItself || count !== undefined) endRun();
  }
  endRun();
  return fromRarest(longest);
}

/** The characters of source code, the most frequent first. */
const frequent = " etaoinrslcdupm_fgh().,;:=\"'/-0123456789bvywkx{}[]<>STCEARINLPDMOFU";

/**
 * Bytes are searched for the first character of a text, so the search is faster if that is a rare one.
 * Frequent ones are cut off for that, but at least half of the text stays, so that it still excludes most
 * files.
 */
function fromRarest(text: string): string {
  const rank = (at: number) => (frequent.indexOf(text[at]!) + frequent.length) % frequent.length;
  let rarest = 0;
  for (let at = 1; at <= text.length / 2; at++) if (rank(at) > rank(rarest)) rarest = at;
  return text.slice(rarest);
}

const poolKey = "search.pool";

/** There is one pool per session. */
function poolOf(ctx: ToolContext): SearchPool {
  // Only this function writes the key, so what is there is a pool.
  const known = ctx.session.get(poolKey) as SearchPool | undefined;
  if (known) return known;
  const pool = createSearchPool();
  ctx.session.set(poolKey, pool);
  return pool;
}
