import { extname, resolve } from "node:path";
import { CallError, defineTool } from "../../../index.ts";
import { mcpText } from "../result.ts";
import { outline } from "./outline.ts";

/** The outline of a source file: what it imports and what it declares, by line. */
export default defineTool({
  name: "internal_code_analyze",
  group: "code",
  description: "Outline a source file: language, line counts, imports and the symbols it declares with their lines.",
  input: {
    type: "object",
    properties: { path: { type: "string", description: "The source file" } },
    required: ["path"],
    additionalProperties: false,
  },
  access: ({ path }, { cwd }) => ({ read: [resolve(cwd, path)] }),
  parallel: true,
  mutates: false,
  async run({ path }, { files }) {
    const { text } = await files.readText(path);
    const found = outline(text, extname(path));
    if (found === undefined)
      throw new CallError("failed", `${path} is in no language this tool knows.`, { hint: "Read the file instead." });
    return mcpText({ path, ...found });
  },
});
