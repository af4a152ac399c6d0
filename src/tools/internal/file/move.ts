import { resolve } from "node:path";
import { defineTool } from "../../../index.ts";
import { mcpText } from "../result.ts";
import { prepareDestination } from "./destination.ts";

/** Moves a file or folder. What is already at the new place is never overwritten. */
export default defineTool({
  name: "internal_file_move",
  group: "file",
  description: "Move a file or folder to a new place.",
  input: {
    type: "object",
    properties: {
      source: { type: "string", description: "What to move" },
      destination: { type: "string", description: "The new path" },
    },
    required: ["source", "destination"],
    additionalProperties: false,
  },
  access: ({ source, destination }, { cwd }) => ({ write: [resolve(cwd, source), resolve(cwd, destination)] }),
  mutates: true,
  async run({ source, destination }, { files, cwd }) {
    await prepareDestination(files, source, resolve(cwd, destination));
    await files.move(source, destination);
    return mcpText(`Moved ${source} to ${destination}.`);
  },
});
