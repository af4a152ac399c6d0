// A tool that says what it will touch: the gate decides about that, and ctx reaches exactly as far.
import { createEngine, defineTool } from "callgate";

const note = defineTool({
  name: "save_note",
  description: "Append a line to notes.txt.",
  input: { type: "object", properties: { line: { type: "string" } }, required: ["line"], additionalProperties: false },
  access: () => ({ read: ["notes.txt"], write: ["notes.txt"] }),
  async run({ line }, ctx) {
    const before = (await ctx.files.stat("notes.txt")) ? (await ctx.files.readText("notes.txt")).text : "";
    await ctx.files.write("notes.txt", `${before}${line}\n`);
    return `notes.txt has ${before.split("\n").length} lines`;
  },
});

const { mkdtemp, rm } = await import("node:fs/promises");
const workspace = await mkdtemp(`${(await import("node:os")).tmpdir()}/callgate-example-`);
const engine = createEngine({ tools: [note], workspace, approval: "never" });
for (const line of ["first", "second"]) console.log((await engine.call("save_note", { line })).content);
await engine.close();
await rm(workspace, { recursive: true });
