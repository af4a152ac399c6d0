import { createEngine, defineTool } from "callgate";

const number = { type: "number" } as const;
const input = { type: "object", properties: { a: number, b: number }, required: ["a", "b"] } as const;
const add = defineTool({ name: "add", description: "Add two numbers.", input, run: ({ a, b }) => `${a + b}` });
const engine = createEngine({ tools: [add] });
console.log((await engine.call("add", { a: 2, b: 40 })).text); // 42
