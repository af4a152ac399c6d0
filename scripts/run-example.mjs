// Runs one example: `callgate` in it means this tree. node scripts/run-example.mjs examples/first-tool.ts
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { rolldown } from "rolldown";
import { lowerDecorators } from "./decorators.mjs";

const [file] = process.argv.slice(2);
const root = process.cwd();
const entry = (path) => join(root, "src", path);
const folders = ["tools", "gate", "wire", "dialect", "template", "model", "session", "store", "mcp", "testing"];
const adapters = ["agents", "langchain", "from"];
// Inside the tree, so that packages an example uses (zod, …) are found.
const out = mkdtempSync(join(root, "node_modules/.example-"));
try {
  const bundle = await rolldown({
    input: resolve(file),
    platform: "node",
    plugins: [lowerDecorators()],
    external: (id) => !id.startsWith(".") && !id.startsWith("/") && !id.startsWith("callgate"),
    resolve: {
      alias: {
        ...Object.fromEntries(folders.map((folder) => [`callgate/${folder}`, entry(`${folder}/index.ts`)])),
        ...Object.fromEntries(adapters.map((name) => [`callgate/${name}`, entry(`adapters/${name}.ts`)])),
        "callgate/ai-sdk": entry("adapters/ai-sdk/index.ts"),
        "callgate/ui": entry("adapters/ui/index.ts"),
        "callgate/sandbox": entry("runtime/sandbox/sandbox.ts"),
        callgate: entry("index.ts"),
      },
    },
    onLog() {},
  });
  await bundle.write({ dir: out, format: "esm", entryFileNames: "example.mjs" });
  if (process.env.EXAMPLE_CWD) {
    cpSync("examples", join(process.env.EXAMPLE_CWD, "examples"), { recursive: true });
    process.chdir(process.env.EXAMPLE_CWD);
  }
  await import(pathToFileURL(join(out, "example.mjs")).href);
} finally {
  rmSync(out, { recursive: true, force: true });
}
