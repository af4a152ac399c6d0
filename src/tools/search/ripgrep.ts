/** The same search done by ripgrep. */
import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";
import { CallError, type ToolContext } from "../../index.ts";
import type { SearchHit, SearchRequest, SearchResult } from "./request.ts";

const pathKey = "search.ripgrep";

/**
 * Finds ripgrep: named by the host as the service `ripgrep` (`false` means none), on the PATH, or installed
 * beside us. It is looked for once per session.
 */
export async function findRipgrep(ctx: Pick<ToolContext, "session" | "service">): Promise<string | undefined> {
  if (ctx.session.has(pathKey)) {
    const known = ctx.session.get(pathKey);
    return typeof known === "string" ? known : undefined;
  }
  const named = ctx.service["ripgrep"];
  const found = named === false ? undefined : typeof named === "string" ? named : (onPath("rg") ?? (await installed()));
  ctx.session.set(pathKey, found);
  return found;
}

function onPath(name: string, path: string = process.env["PATH"] ?? ""): string | undefined {
  const names = process.platform === "win32" ? [`${name}.exe`] : [name];
  return path
    .split(delimiter)
    .filter((folder) => folder !== "")
    .flatMap((folder) => names.map((file) => join(folder, file)))
    .find(isProgram);
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    // It does not exist or we may not run it. In both cases the next place is tried.
    return false;
  }
}

async function installed(): Promise<string | undefined> {
  const name = "@vscode/ripgrep";
  try {
    const { rgPath } = (await import(name)) as { readonly rgPath?: unknown };
    return typeof rgPath === "string" && isProgram(rgPath) ? rgPath : undefined;
  } catch {
    // The package is optional. Without it, our own search is used.
    return undefined;
  }
}

/** Undefined: ripgrep could not run here, so another way is needed. */
export async function searchWithRipgrep(
  program: string,
  request: SearchRequest,
  ctx: ToolContext,
  timeoutMs: number,
): Promise<SearchResult | undefined> {
  const argv = [program, ...toArguments(request), "--regexp", request.pattern, "--", request.path];
  const result = await ctx.exec
    .run({ argv, timeoutMs, maxOutputBytes: 8 * 1024 * 1024, keep: false })
    .catch((error: unknown) => {
      if (CallError.is(error) && error.code !== "aborted") return undefined;
      throw error;
    });
  // 0 found, 1 nothing found, 2 an error of its own; anything else means that it did not run (a sandbox may hide it).
  if (result?.timedOut) throw new CallError("timeout", `The search did not end within ${timeoutMs} ms.`);
  if (result === undefined || result.denied || result.exitCode === null || result.exitCode > 2) {
    // Not tried again in this session.
    ctx.session.set(pathKey, undefined);
    return undefined;
  }
  // With `--no-messages`, an error without a message means files that may not be read, and those are not to be found
  // anyway.
  const complaint = (result.stderr.head + result.stderr.tail).trim();
  if (result.exitCode === 2 && complaint !== "") throw new CallError("invalid_input", `ripgrep: ${complaint}`);
  const found = readHits(result.stdout.head + result.stdout.tail, request.lines);
  const hits = request.lines ? found : await newestFirst(found, ctx);
  return { hits: hits.slice(0, request.limit), more: hits.length > request.limit, notes: [] };
}

function toArguments(request: SearchRequest): readonly string[] {
  return [
    "--no-config",
    "--no-require-git",
    "--no-messages",
    "--color=never",
    ...(request.ignoreCase ? ["--ignore-case"] : []),
    ...(request.include === undefined ? [] : ["--glob", request.include]),
    // Names end with NUL, so that no name can look like something else.
    "--null",
    ...(request.lines
      ? // Sorted by ripgrep, because so much may be found that only the first of it is kept.
        ["--sortr=modified", "--line-number", "--with-filename", "--no-heading", "--max-columns=2000", "--max-count=50"]
      : ["--files-with-matches"]),
  ];
}

/** To sort, ripgrep searches with one thread and takes three times as long; a list of names is sorted here instead. */
async function newestFirst(hits: readonly SearchHit[], ctx: ToolContext): Promise<readonly SearchHit[]> {
  // A file that has disappeared in the meantime, or whose name is not valid text, is listed last.
  const timeOf = async ({ path }: SearchHit) => (await ctx.files.stat(path).catch(() => undefined))?.modifiedMs ?? 0;
  const dated = await Promise.all(hits.map(async (hit) => ({ hit, at: await timeOf(hit) })));
  return dated.toSorted((a, b) => b.at - a.at || (a.hit.path < b.hit.path ? -1 : 1)).map(({ hit }) => hit);
}

function readHits(output: string, lines: boolean): readonly SearchHit[] {
  if (!lines) return output.split("\0").flatMap((path) => (path === "" ? [] : [{ path, lines: [] }]));
  const byPath = new Map<string, { number: number; text: string }[]>();
  for (const row of output.split("\n")) {
    const match = /^([^\0]+)\0(\d+):(.*)$/.exec(row);
    if (!match) continue;
    const list = byPath.get(match[1]!) ?? [];
    list.push({ number: Number(match[2]), text: match[3]! });
    byPath.set(match[1]!, list);
  }
  return [...byPath].map(([path, found]) => ({ path, lines: found }));
}
