/** The files that a search looks into: no ignored ones, no hidden ones and no links. */
import { join, relative as relativePath, sep } from "node:path";
import ignore, { type Ignore } from "ignore";
import { CallError, type ToolContext } from "../../index.ts";

interface Folder {
  readonly path: string;
  readonly relative: string;
  /** The ignore files above and in it, outermost first. */
  readonly rules: readonly Rules[];
}

interface Rules {
  /**
   * If the ignore file is below the folder where the search begins: its path from there. If it is above that
   * folder, `above` is the path from the ignore file down to it.
   */
  readonly below: string;
  readonly above: string;
  readonly matcher: Ignore;
}

const ignoreFiles = [".gitignore", ".ignore"];

/** Files that one folder holds. */
export interface Found {
  readonly folder: string;
  readonly names: readonly string[];
}

/** The files below a folder, as a person would search them: no hidden ones, no ignored ones, no links. Folder by folder. */
export async function* walkFiles(
  root: string,
  ctx: Pick<ToolContext, "files" | "signal" | "workspace">,
  accepts: (relative: string) => boolean,
): AsyncGenerator<Found> {
  const folders: Folder[] = [{ path: root, relative: "", rules: await rulesAbove(root, ctx) }];
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    ctx.signal.throwIfAborted();
    const { names, below } = await visit(folder, ctx.files, accepts);
    folders.push(...below);
    if (names.length > 0) yield { folder: folder.path, names };
  }
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
      rules.push({ ...(await readRules(join(folder, name), "", files)), above });
    }
  }
  return rules;
}

async function visit(
  folder: Folder,
  files: ToolContext["files"],
  accepts: (relative: string) => boolean,
): Promise<{ readonly names: readonly string[]; readonly below: readonly Folder[] }> {
  const entries = await files.names(folder.path).catch((error: unknown) => {
    // The folder cannot be read or is gone by now, and the rest of the tree is still searched. Only for the root
    // this is an error.
    if (CallError.is(error) && folder.relative !== "") return [];
    throw error;
  });
  const own = entries.filter(({ name, type }) => type === "file" && ignoreFiles.includes(name));
  const added = await Promise.all(own.map(({ path }) => readRules(path, folder.relative, files)));
  const rules = [...folder.rules, ...added];
  const names: string[] = [];
  const below: Folder[] = [];
  for (const { name, type, path } of entries) {
    if (name.startsWith(".") || (type !== "file" && type !== "directory")) continue;
    const relative = folder.relative + name;
    if (isIgnored(rules, type === "directory" ? `${relative}/` : relative)) continue;
    if (type === "directory") below.push({ path, relative: `${relative}/`, rules });
    else if (accepts(relative)) names.push(name);
  }
  return { names, below };
}

async function readRules(path: string, below: string, files: ToolContext["files"]): Promise<Rules> {
  const bytes = await files.read(path);
  return { below, above: "", matcher: ignore().add(Buffer.from(bytes).toString("utf8")) };
}

/** The innermost ignore file that says anything about a path decides. */
function isIgnored(rules: readonly Rules[], relative: string): boolean {
  for (const { below, above, matcher } of rules.toReversed()) {
    const verdict = matcher.test(above + relative.slice(below.length));
    if (verdict.ignored || verdict.unignored) return verdict.ignored;
  }
  return false;
}
