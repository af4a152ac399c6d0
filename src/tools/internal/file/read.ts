import { resolve } from "node:path";
import { CallError, defineTool } from "../../../index.ts";
import { describeKind, isText, sniff } from "../../file/sniff.ts";
import { mcpText } from "../result.ts";

/** A text file's content as it is, without line numbers. */
export default defineTool({
  name: "internal_file_read",
  group: "file",
  description: "Read a text file.",
  input: {
    type: "object",
    properties: {
      path: { type: "string", description: "The file" },
      offset: { type: "integer", minimum: 1, description: "First line, counted from 1" },
      limit: { type: "integer", minimum: 1, description: "How many lines" },
    },
    required: ["path"],
    additionalProperties: false,
  },
  access: ({ path }, { cwd }) => ({ read: [resolve(cwd, path)] }),
  parallel: true,
  mutates: false,
  async run({ path, offset, limit }, { files }) {
    const head = await files.slice(path, 1, 1, { maxLineBytes: 512 });
    const kind = sniff(head.head);
    if (!isText(kind))
      throw new CallError("failed", `${path} is not text: ${describeKind(kind)}, ${head.sizeBytes} bytes.`);
    if (offset === undefined && limit === undefined) return mcpText((await files.readText(path)).text);
    const from = offset ?? 1;
    const to = limit === undefined ? Number.MAX_SAFE_INTEGER : from + limit - 1;
    return mcpText((await files.slice(path, from, to)).lines.join("\n"));
  },
});
