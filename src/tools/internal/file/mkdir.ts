import { dirname, resolve } from "node:path";
import { CallError, defineTool } from "../../../index.ts";
import { mcpText } from "../result.ts";

/** Makes a folder, and the folders above it. */
export default defineTool({
  name: "internal_file_mkdir",
  group: "file",
  description: "Create a folder.",
  input: {
    type: "object",
    properties: {
      path: { type: "string", description: "The folder" },
      recursive: { type: "boolean", description: "Missing folders above it too (true)" },
    },
    required: ["path"],
    additionalProperties: false,
  },
  access: ({ path }, { cwd }) => ({ write: [resolve(cwd, path)] }),
  mutates: true,
  async run({ path, recursive = true }, { files }) {
    const above = dirname(path);
    if (!recursive && (await files.stat(above)) === undefined) {
      throw new CallError("failed", `${above} does not exist.`, { hint: "Set recursive to create it too." });
    }
    await files.mkdir(path, { recursive });
    return mcpText(`Created ${path}.`);
  },
});
