import { resolve } from "node:path";
import { defineTool } from "../../../index.ts";
import { mcpText } from "../result.ts";
import { prepareDestination } from "./destination.ts";

/** Copies a file or a whole folder. What is already at the new place is never overwritten. */
export default defineTool({
  name: "internal_file_copy",
  group: "file",
  description: "Copy a file or folder to a new place.",
  input: {
    type: "object",
    properties: {
      source: { type: "string", description: "What to copy" },
      destination: { type: "string", description: "The new path" },
    },
    required: ["source", "destination"],
    additionalProperties: false,
  },
  access: ({ source, destination }, { cwd }) => ({ read: [resolve(cwd, source)], write: [resolve(cwd, destination)] }),
  mutates: true,
  async run({ source, destination }, { files, cwd }) {
    await prepareDestination(files, source, resolve(cwd, destination));
    await files.copy(source, destination);
    return mcpText(`Copied ${source} to ${destination}.`);
  },
});
