// A model's words, as they stream in, to text and calls. How the words are cut changes nothing.
import { createTextDecoder } from "callgate/dialect";

const decoder = createTextDecoder({
  dialect: "qwen3-coder",
  tools: [
    {
      name: "write_file",
      parameters: {
        type: "object",
        properties: { path: { type: "string" }, content: { type: "string" }, mode: { type: "integer" } },
      },
    },
  ],
  startsIn: "text",
});

const answer = `I will write it.
<tool_call>
<function=write_file>
<parameter=path>
tags.md
</parameter>
<parameter=content>
A value ends with </parameter>, but not here.
</parameter>
<parameter=mode>
420
</parameter>
</function>
</tool_call>`;

for (let at = 0; at < answer.length; at += 7) {
  for (const event of decoder.push(answer.slice(at, at + 7))) {
    if (event.type === "item.delta") process.stdout.write(event.delta);
  }
}
for (const event of decoder.end("stop")) {
  if (event.type === "item.done" && event.item.type === "call")
    console.log("\n", event.item.complete, event.item.arguments);
}
