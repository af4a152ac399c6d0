import { CallError, defineTool } from "../../../index.ts";
import { mcpText } from "../result.ts";
import { findFormatter } from "./formatter.ts";

/** Runs the project's own formatter on a file. We have no opinion on how code should look. */
export default defineTool({
  name: "internal_code_format",
  group: "code",
  description: "Format a source file with the formatter the project uses.",
  input: {
    type: "object",
    properties: { path: { type: "string", description: "The source file" } },
    required: ["path"],
    additionalProperties: false,
  },
  access({ path }, { workspace, cwd }) {
    const found = findFormatter(path, workspace, cwd);
    return found ? { write: [found.path], commands: [{ argv: found.argv, cwd: workspace }] } : {};
  },
  mutates: true,
  timeoutMs: 60_000,
  async run({ path }, { files, exec, workspace, cwd }) {
    const found = findFormatter(path, workspace, cwd);
    if (!found) {
      throw new CallError("failed", `The project names no formatter for ${path}.`, {
        hint: "Format it by hand, or install one (prettier, oxfmt, biome, ruff, black, gofmt, rustfmt).",
      });
    }
    const before = (await files.readText(path)).version;
    const result = await exec.run({ argv: found.argv, cwd: workspace, timeoutMs: 50_000, keep: false });
    if (result.exitCode !== 0) {
      throw new CallError(
        "failed",
        `${found.name} ended with ${result.exitCode ?? result.signal}: ${result.output.head}${result.output.tail}`,
      );
    }
    const changed = (await files.readText(path)).version.token.split("#")[1] !== before.token.split("#")[1];
    return mcpText({ path, formatter: found.name, changed });
  },
});
