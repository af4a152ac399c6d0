/** Five hundred tools behind a search: the model is told of two, and calls what it finds. The model here is scripted. */
import { addToolSearch, createEngine, defineTool } from "callgate";
import { createSession } from "callgate/session";
import { createScriptedModel } from "callgate/testing";

const words = ["invoice", "parcel", "customer", "voucher", "ticket"];
const tools = Array.from({ length: 500 }, (_, index) => {
  const server = `shop${Math.floor(index / 5)}`;
  const name = `find_${words[index % 5]}`;
  return defineTool({
    name: `${server}/${name}`,
    origin: { server, name },
    description: `Finds a ${words[index % 5]} in ${server} by its number, with its date, its state and whom it belongs to.`,
    input: { type: "object", properties: { number: { type: "string", description: "As it is printed." } } },
    run: ({ number }) => `${server}: ${words[index % 5]} ${number}`,
  });
});
const engine = createEngine({ tools, workspace: "." });
addToolSearch(engine.registry);

const model = createScriptedModel([
  { calls: [{ name: "tool_search", input: { query: "shop7 parcel" } }] },
  { calls: [{ name: "call_tool", input: { name: "shop7/find_parcel", arguments: { number: "12" } } }] },
  { text: "Found." },
]);
const session = createSession({ id: "many", engine, model });
console.log(session.tools().map((tool) => tool.name));
for await (const event of session.send("Where is parcel 12 of shop 7?"))
  if (event.type === "call.ended") console.log(event.call.tool, event.call.ok);
await session.close();
await engine.close();
