import { resolve } from "node:path";
import { CallError, defineTool } from "../../../index.ts";
import { mcpText } from "../result.ts";

/** Removes a file, a link or a folder. */
export default defineTool({
  name: "internal_file_delete",
  group: "file",
  description: "Delete a file or folder.",
  input: {
    type: "object",
    properties: {
      path: { type: "string", description: "The file or folder" },
      recursive: { type: "boolean", description: "A folder with everything in it (false)" },
    },
    required: ["path"],
    additionalProperties: false,
  },
  access: ({ path }, { cwd }) => ({ write: [resolve(cwd, path)] }),
  mutates: true,
  async run({ path, recursive = false }, { files }) {
    const entry = await files.stat(path);
    if (entry === undefined) throw new CallError("failed", `${path} does not exist.`);
    if (entry.type === "directory" && !recursive && (await files.list(path)).length > 0) {
      throw new CallError("failed", `${path} is a folder that is not empty.`, {
        hint: "Set recursive to delete it with everything in it.",
      });
    }
    await files.remove(path, { recursive });
    return mcpText(`Deleted ${path}.`);
  },
});
