import { resolve } from "node:path";
import { defineTool } from "../../../index.ts";
import { editText } from "../../edit/edit.ts";
import { mcpText } from "../result.ts";

/** Writes a file's whole content, and creates the folders on the way. */
export default defineTool({
  name: "internal_file_write",
  group: "file",
  description: "Write a file: its whole content, or an addition at its end.",
  input: {
    type: "object",
    properties: {
      path: { type: "string", description: "The file" },
      content: { type: "string", description: "The text" },
      append: { type: "boolean", description: "Add it at the end (false: it is the whole file)" },
      overwrite_changed: { type: "boolean", description: "Write even if the file changed since it was last read" },
    },
    required: ["path", "content"],
    additionalProperties: false,
  },
  access: ({ path }, { cwd }) => ({ write: [resolve(cwd, path)] }),
  mutates: true,
  rehearsable: true,
  async run({ path, content, append = false, overwrite_changed: force = false }, { files }) {
    if (append && (await files.stat(path))) {
      await editText(files, path, (text) => text + content);
      return mcpText(`Added ${Buffer.byteLength(content)} bytes to ${path}.`);
    }
    await files.write(path, content, { parents: true, evenIfChanged: force });
    return mcpText(`Wrote ${Buffer.byteLength(content)} bytes to ${path}.`);
  },
});
