// A folder of tool files: text/reverse.mjs becomes internal_text_reverse.
import { createEngine, loadTools } from "callgate";
import { fileURLToPath } from "node:url";

const folder = process.argv[2] ?? fileURLToPath(new URL("tools-folder", import.meta.url));
const { tools, groups, refused } = await loadTools(folder);
console.log(Object.fromEntries(groups), refused);
const engine = createEngine({ tools });
console.log((await engine.call("internal_text_reverse", { text: "gate" })).content);
await engine.close();
