/** Read, patch, edit and search a folder through the built-in file tools. */
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createEngine } from "callgate";
import { applyPatch, grepFiles, readFile, strReplaceEditor } from "callgate/tools";

const workspace = mkdtempSync(join(tmpdir(), "callgate-example-"));
writeFileSync(join(workspace, "greet.ts"), 'export function greet() {\n  return "hello";\n}\n');

const engine = createEngine({
  workspace,
  tools: [applyPatch, grepFiles, readFile, strReplaceEditor],
  approval: "never",
});
const patch = `*** Begin Patch
*** Update File: greet.ts
@@ export function greet() {
-  return "hello";
+  return "good morning";
*** Add File: notes/todo.md
+- greet in French
*** End Patch`;

const patched = await engine.call("apply_patch", patch);
const edited = await engine.call("str_replace_editor", {
  command: "str_replace",
  path: "greet.ts",
  old_str: "morning",
  new_str: "evening",
});
const outside = await engine.call("apply_patch", patch.replace("notes/todo.md", "../todo.md"));
const found = await engine.call("grep_files", { pattern: "good \\w+", lines: true });

for (const { ok, content } of [patched, edited, outside, found]) console.log(ok, JSON.stringify(content));
console.log(readFileSync(join(workspace, "greet.ts"), "utf8"));
await engine.close();
