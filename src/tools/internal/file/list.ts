/** `internal_file_list`: a folder's entries, the whole tree if asked. */
import { relative, resolve } from "node:path";
import { CallError, defineTool, type ToolContext } from "../../../index.ts";
import { mcpText } from "../result.ts";

/** More entries than this would only fill the context. */
const maxEntries = 5_000;

/** A folder's entries: name, path, type, size, time of last change; the whole tree if asked. */
export default defineTool({
  name: "internal_file_list",
  group: "file",
  description: "List a folder: name, path, type, size and time of the last change of each entry.",
  input: {
    type: "object",
    properties: {
      path: { type: "string", description: "The folder (the project's root)" },
      recursive: { type: "boolean", description: "Folders below too (false)" },
    },
    additionalProperties: false,
  },
  access: ({ path = "." }, { workspace }) => ({ read: [resolve(workspace, path)] }),
  parallel: true,
  mutates: false,
  async run({ path = ".", recursive = false }, ctx) {
    const root = await ctx.files.resolve(resolve(ctx.workspace, path), "read");
    const found = await collect(root, recursive, ctx);
    const entries = found.slice(0, maxEntries);
    return mcpText({
      path: root,
      count: entries.length,
      ...(found.length > maxEntries ? { more: true } : {}),
      entries,
    });
  },
});

interface Listed {
  readonly name: string;
  readonly path: string;
  readonly type: string;
  readonly size: number;
  readonly modified: string;
}

async function collect(root: string, recursive: boolean, ctx: ToolContext): Promise<readonly Listed[]> {
  const found: Listed[] = [];
  const folders = [root];
  for (let folder = folders.pop(); folder !== undefined && found.length <= maxEntries; folder = folders.pop()) {
    ctx.signal.throwIfAborted();
    const entries = await ctx.files.list(folder).catch((error: unknown) => {
      // A folder below that may not be read is still listed by its parent. Only a failure at the root ends the call.
      if (CallError.is(error) && folder !== root) return [];
      throw error;
    });
    for (const { name, path, type, sizeBytes, modifiedMs } of entries) {
      found.push({
        name,
        path: relative(ctx.workspace, path),
        type,
        size: sizeBytes,
        modified: new Date(modifiedMs).toISOString(),
      });
      if (recursive && type === "directory") folders.push(path);
    }
  }
  return found.toSorted((a, b) => (a.path < b.path ? -1 : 1));
}
