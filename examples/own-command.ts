// A tool that runs a command: what it says it will run is what the gate decides about, and what the sandbox is built for.
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createEngine, defineTool } from "callgate";
import { toCommandResult } from "callgate/tools";

const countLines = defineTool({
  name: "count_lines",
  description: "Count the lines of a file.",
  input: { type: "object", properties: { file: { type: "string" } }, required: ["file"] },
  access: ({ file }) => ({ commands: [{ argv: ["wc", "-l", "--", file] }] }),
  run: async ({ file }, ctx) => toCommandResult(await ctx.exec.run({ argv: ["wc", "-l", "--", file] })),
});

const workspace = mkdtempSync(join(tmpdir(), "callgate-example-"));
writeFileSync(join(workspace, "a.txt"), "one\ntwo\n");
const engine = createEngine({ workspace, tools: [countLines] });
for (const file of ["a.txt", "missing.txt"]) {
  const { ok, exitCode, content } = await engine.call("count_lines", { file });
  console.log(file, ok, exitCode, content);
}
await engine.close();
