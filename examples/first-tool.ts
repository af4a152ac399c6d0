import { createEngine, defineTool } from "callgate";

const add = defineTool({
  name: "add",
  description: "Add two numbers.",
  input: { type: "object", properties: { a: { type: "number" }, b: { type: "number" } }, required: ["a", "b"] },
  run: ({ a, b }) => `${a + b}`,
});
const engine = createEngine({ tools: [add] });
console.log((await engine.call("add", { a: 2, b: 40 })).text); // 42
