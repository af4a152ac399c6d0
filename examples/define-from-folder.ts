// A folder of tool files: text/reverse.mjs becomes internal_text_reverse. Run it from the repository.
import { createEngine, loadTools } from "callgate";

const { tools, groups, refused } = await loadTools("examples/tools-folder");
console.log(Object.fromEntries(groups), refused);
const engine = createEngine({ tools });
console.log((await engine.call("internal_text_reverse", { text: "gate" })).content);
await engine.close();
