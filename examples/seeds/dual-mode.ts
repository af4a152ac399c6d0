/** One method, two forms: a function call and a tag of its own; the model uses either. */
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createEngine, createRegistry, openapi, toolSchemas, xml } from "callgate";
import { findDialect } from "callgate/dialect";
import { createSession } from "callgate/session";
import { createScriptedModel } from "callgate/testing";

const row = (id: string, ...words: readonly unknown[]) => console.log(id, ...words);
const workspace = mkdtempSync(join(tmpdir(), "callgate-dual-"));
const file = join(workspace, "file.txt");
writeFileSync(file, "one old text, two\n");

class SandboxFilesTool {
  calls = 0;
  readonly folder: string;

  constructor(options: { readonly folder: string }) {
    this.folder = options.folder;
  }

  @openapi({
    description: "文件内容的字符串替换编辑器",
    path: "要编辑的文件路径",
    old_str: "要替换的确切字符串",
    new_str: "替换后的新字符串",
  })
  @xml({ name: "str_replace_editor", attributes: ["command", "path"], elements: ["old_str", "new_str"] })
  str_replace_editor({ path, old_str, new_str }: { path: string; old_str: string; new_str: string }) {
    this.calls++;
    const content = readFileSync(join(this.folder, path), "utf8");
    if (!content.includes(old_str)) return { error: `未找到字符串: ${old_str}` };
    writeFileSync(join(this.folder, path), content.replace(old_str, new_str));
    return { output: `成功替换 ${path} 中的内容` };
  }

  @openapi({
    description: "Ask the user.",
    parameters: { text: "the question", attachments: "files" },
    required: ["text"],
  })
  @xml({
    tag_name: "ask",
    mappings: [
      { param_name: "text", node_type: "content", path: "." },
      { param_name: "attachments", node_type: "attribute", path: ".", required: false },
    ],
  })
  ask({ text }: { text: string }) {
    return `asked: ${text} (${++this.calls})`;
  }
}

row(
  "D1",
  toolSchemas(SandboxFilesTool.prototype.str_replace_editor)
    .map(({ type }) => type)
    .join(" "),
);
row(
  "D8",
  Object.keys(toolSchemas(SandboxFilesTool)).join(" "),
  Object.keys(toolSchemas(new SandboxFilesTool({ folder: "." }))).length,
);
const registry = createRegistry().register(SandboxFilesTool, { with: { folder: workspace } });
row(
  "D3",
  createRegistry()
    .register(SandboxFilesTool, { only: ["ask"], with: { folder: workspace } })
    .list().length,
);
row(
  "D5",
  registry.find("str_replace_editor") === registry.findByTag("str_replace_editor"),
  registry.openapiSchemas().length === 2,
);
const engine = createEngine({ registry, workspace, approval: "auto", sandbox: "none", offer: { profile: "dual" } });

const model = createScriptedModel([
  {
    text: '<str_replace_editor command="str_replace" path="file.txt">\n    <old_str>old text</old_str>\n    <new_str>new text</new_str>\n</str_replace_editor>',
  },
  {
    calls: [
      { name: "str_replace_editor", input: { command: "str_replace", path: "file.txt", old_str: "two", new_str: "2" } },
    ],
  },
  { text: '<ask attachments="a.png">Ready?</ask>' },
  { text: "done" },
]);
const session = createSession({ id: "dual", engine, model });
const results: string[] = [];
for await (const event of session.send("replace")) if (event.type === "call.ended") results.push(String(event.call.ok));
row("D6", "D11", results.join(" "), readFileSync(file, "utf8").trim());
row("D2", JSON.stringify(model.requests.at(-1)?.input.at(-1)).includes("asked: Ready? (3)"));
row("D4", (model.requests[0]?.instructions ?? "").includes("<old_str>"));
row("D11", (model.requests[0]?.tools ?? []).length > 0, "native tools beside the taught form");
row(
  "D9",
  (
    await engine.call("str_replace_editor", {
      command: "str_replace",
      path: "file.txt",
      old_str: "absent",
      new_str: "",
    })
  ).text,
);
engine.registry.add({
  name: "late_tool",
  description: "x",
  input: { type: "object", properties: {} },
  run: () => "late",
});
row(
  "D10",
  session.tools().some(({ name }) => name === "late_tool"),
);
row("D7", findDialect("xml")?.name, findDialect("function-calls-xml")?.name);
await session.close();
await engine.close();
