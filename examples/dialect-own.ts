// A dialect is data. This one writes calls as <<name: JSON>>.
import { createEngine, defineTool } from "callgate";
import { decodeText, encodeCalls, teach, type Dialect } from "callgate/dialect";
import { createProviderModel, createTextModel } from "callgate/model";
import { createSession } from "callgate/session";
import { createScriptedModel, serveModel } from "callgate/testing";

const angle: Dialect = {
  name: "angle",
  title: "<<name: JSON>>",
  models: ["my model"],
  trust: "taught",
  blocks: [{ open: ["<<"], close: [">>"], bodies: [{ kind: "named", separator: [": "] }] }],
  reasoning: [{ open: ["<think>"], close: ["</think>"] }],
  results: ["<<result"],
  stop: ["<<result"],
  result: { role: "user", each: "<<result {id}\n{text}\n>>" },
};

const double = defineTool({
  name: "double",
  description: "Doubles a number.",
  input: { type: "object", properties: { a: { type: "number" } }, required: ["a"] },
  run: ({ a }) => `${a * 2}`,
});
const tools = [{ name: "double", parameters: { type: "object", properties: { a: { type: "number" } } } }];
const text = encodeCalls(angle, [{ name: "double", arguments: '{"a": 21}' }], tools);
console.log(text); // <<double: {"a": 21}>>
console.dir(decodeText(`Sure. ${text}`, { dialect: angle, tools }).items, { depth: null });
console.log(teach(angle, tools)); // what is written into the prompt

// A server whose model writes its calls like that; in real use the address of your own.
const server = await serveModel(createScriptedModel([{ text: `Sure. ${text}` }, { text: "It is 42." }]));
const http = await createProviderModel({ baseUrl: server.baseUrl, model: "my-model" });
const engine = createEngine({ tools: [double] });
const session = createSession({ id: "one", engine, model: createTextModel(http, angle) });
for await (const event of session.send("What is twice 21?")) {
  if (event.type === "call.ended") console.log(event.call.tool, event.call.content); // 42
  if (event.type === "turn.ended") console.log(event.text);
}
await session.close();
await engine.close();
http.close();
await server.close();
