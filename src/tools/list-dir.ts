/** `list_dir`: a folder's entries, as deep as asked. */
import { resolve } from "node:path";
import { CallError, defineTool, type ToolContext } from "../index.ts";

type Entry = Awaited<ReturnType<ToolContext["files"]["list"]>>[number];

const maxNameLength = 500;
/** A huge tree is cut off rather than walked to the end. */
const maxVisited = 50_000;
/** Listed, but not entered unless asked for by name, because they would crowd out everything else. */
const closed = new Set([".git", ".hg", ".svn", "node_modules"]);

/** A folder's entries, as deep as asked, with sizes and where links lead. */
export const listDir = defineTool({
  name: "list_dir",
  description: "List a folder: entries with sizes, '/' after folders, '@' after links.",
  input: {
    type: "object",
    properties: {
      dir_path: { type: "string", description: "The folder" },
      offset: { type: "integer", minimum: 1, description: "First entry, from 1" },
      limit: { type: "integer", minimum: 1, description: "How many entries (25)" },
      depth: { type: "integer", minimum: 1, description: "Levels deep (2)" },
    },
    required: ["dir_path"],
    additionalProperties: false,
  },
  access: ({ dir_path }, { cwd }) => ({ read: [resolve(cwd, dir_path)] }),
  parallel: true,
  mutates: false,
  group: "file",
  async run({ dir_path: path, offset = 1, limit = 25, depth = 2 }, ctx) {
    const root = await ctx.files.resolve(path, "read");
    const found = await walk(root, depth, offset - 1 + limit, ctx);
    if (offset > 1 && offset > found.length) {
      throw new CallError("invalid_input", `offset ${offset} is past the end: ${found.length} entries.`);
    }
    const shown = found.slice(offset - 1, offset - 1 + limit).toSorted((a, b) => (a.relative < b.relative ? -1 : 1));
    const more = found.length > offset - 1 + limit ? [`More than ${shown.length} entries found`] : [];
    return [`Absolute path: ${root}`, ...shown.map(showEntry), ...more].join("\n");
  },
});

interface Found {
  readonly entry: Entry;
  readonly relative: string;
  readonly level: number;
}

/** Level by level, so that near entries come first. Stops when more than `wanted` are known. */
async function walk(root: string, depth: number, wanted: number, ctx: ToolContext): Promise<readonly Found[]> {
  const found: Found[] = [];
  const folders: { readonly path: string; readonly relative: string; readonly level: number }[] = [
    { path: root, relative: "", level: 0 },
  ];
  for (let next = 0; next < folders.length && found.length <= wanted && found.length < maxVisited; next++) {
    ctx.signal.throwIfAborted();
    const folder = folders[next]!;
    for (const entry of await entriesOf(folder.path, next === 0, ctx)) {
      const relative = folder.relative + entry.name;
      found.push({ entry, relative, level: folder.level });
      if (entry.type === "directory" && folder.level + 1 < depth && !closed.has(entry.name)) {
        folders.push({ path: entry.path, relative: `${relative}/`, level: folder.level + 1 });
      }
    }
  }
  return found;
}

/** A folder below that may not be read is listed by its name, and does not affect the rest. */
async function entriesOf(path: string, isRoot: boolean, ctx: ToolContext): Promise<readonly Entry[]> {
  if (isRoot) return ctx.files.list(path);
  return ctx.files.list(path).catch((error: unknown) => {
    if (CallError.is(error)) return [];
    throw error;
  });
}

function showEntry({ entry, level }: Found): string {
  const name = entry.name.length > maxNameLength ? `${entry.name.slice(0, maxNameLength)}…` : entry.name;
  return "  ".repeat(level) + onOneLine(name) + suffix(entry);
}

/** Escapes line breaks in a name, which would otherwise look like two names. */
function onOneLine(name: string): string {
  return /\p{Cc}/u.test(name) ? JSON.stringify(name) : name;
}

function suffix(entry: Entry): string {
  switch (entry.type) {
    case "directory":
      return "/";
    case "link":
      return `@ -> ${onOneLine(entry.linkTarget ?? "?")}`;
    case "other":
      return "?";
    case "file":
      return ` (${showSize(entry.sizeBytes)})`;
  }
}

function showSize(bytes: number): string {
  if (bytes < 1_024) return `${bytes} B`;
  const units = ["KB", "MB", "GB", "TB"];
  let value = bytes / 1_024;
  let unit = 0;
  while (value >= 1_024 && unit < units.length - 1) {
    value /= 1_024;
    unit++;
  }
  return `${value.toFixed(1)} ${units[unit]}`;
}
