import { join, relative as relativePath, sep } from "node:path";
import ignore, { type Ignore } from "ignore";
import { CallError, type ToolContext } from "../../index.ts";

/** A file the search may look into. */
export interface Candidate {
  readonly path: string;
  /** From the folder the search began in. */
  readonly relative: string;
  readonly modifiedMs: number;
  readonly sizeBytes: number;
}

export interface WalkOptions {
  readonly maxFiles: number;
  /** Files whose relative path it refuses are left out. */
  readonly accepts: (relative: string) => boolean;
}

interface Folder {
  readonly path: string;
  readonly relative: string;
  /** The ignore files above and in it, outermost first. */
  readonly rules: readonly Rules[];
}

interface Rules {
  /** Where the ignore file lies below the search's beginning, or the way down to it from above. */
  readonly below: string;
  readonly above: string;
  readonly matcher: Ignore;
}

const ignoreFiles = [".gitignore", ".ignore"];

/** Files below a folder, as a person would search them: no hidden ones, no ignored ones, no links. */
export async function walkFiles(
  root: string,
  ctx: Pick<ToolContext, "files" | "signal" | "workspace">,
  options: WalkOptions,
): Promise<readonly Candidate[]> {
  const found: Candidate[] = [];
  const folders: Folder[] = [{ path: root, relative: "", rules: await rulesAbove(root, ctx) }];
  for (let folder = folders.pop(); folder !== undefined && found.length < options.maxFiles; folder = folders.pop()) {
    ctx.signal.throwIfAborted();
    await visit(folder, folders, found, ctx.files, options);
  }
  return found;
}

/** The ignore files of the workspace above the folder where the search begins. */
async function rulesAbove(
  root: string,
  { files, workspace }: Pick<ToolContext, "files" | "workspace">,
): Promise<readonly Rules[]> {
  const way = relativePath(workspace, root).split(sep);
  if (way[0] === "" || way[0] === "..") return [];
  const rules: Rules[] = [];
  for (let depth = 0; depth < way.length; depth++) {
    const folder = join(workspace, ...way.slice(0, depth));
    const above = `${way.slice(depth).join("/")}/`;
    for (const name of ignoreFiles) {
      if ((await files.stat(join(folder, name)))?.type !== "file") continue;
      rules.push({ below: "", above, matcher: ignore().add((await files.readText(join(folder, name))).text) });
    }
  }
  return rules;
}

async function visit(
  folder: Folder,
  folders: Folder[],
  found: Candidate[],
  files: ToolContext["files"],
  options: WalkOptions,
): Promise<void> {
  const entries = await files.list(folder.path).catch((error: unknown) => {
    // Unreadable or gone meanwhile: the rest of the tree is still worth searching. The root itself is not excused.
    if (CallError.is(error) && folder.relative !== "") return [];
    throw error;
  });
  const own = entries.filter(({ name, type }) => type === "file" && ignoreFiles.includes(name));
  const added = await Promise.all(
    own.map(async ({ path }) => ({
      below: folder.relative,
      above: "",
      matcher: ignore().add((await files.readText(path)).text),
    })),
  );
  const rules = [...folder.rules, ...added];
  for (const { name, type, path, modifiedMs, sizeBytes } of entries) {
    if (name.startsWith(".") || (type !== "file" && type !== "directory")) continue;
    const relative = folder.relative + name;
    if (isIgnored(rules, type === "directory" ? `${relative}/` : relative)) continue;
    if (type === "directory") folders.push({ path, relative: `${relative}/`, rules });
    else if (options.accepts(relative)) found.push({ path, relative, modifiedMs, sizeBytes });
  }
}

/** The innermost ignore file that says anything about a path decides. */
function isIgnored(rules: readonly Rules[], relative: string): boolean {
  for (const { below, above, matcher } of rules.toReversed()) {
    const verdict = matcher.test(above + relative.slice(below.length));
    if (verdict.ignored || verdict.unignored) return verdict.ignored;
  }
  return false;
}
