// Code mode: the model writes a script that calls tools; each of its calls is judged and recorded as any call.
import { createEngine, defineTool } from "callgate";
import { createSession } from "callgate/session";
import { createScriptedModel } from "callgate/testing";
import { addCodeMode } from "callgate/tools";

const price = defineTool({
  name: "price",
  description: "The price of an article.",
  input: { type: "object", properties: { article: { type: "string" } }, required: ["article"] },
  mutates: false,
  run: ({ article }) => String(article.length * 10),
});
const engine = createEngine({ tools: [price] });
addCodeMode(engine.registry);

// What a model would write.
const code = `
  const articles = ["apple", "pear", "plum"];
  const prices = await Promise.all(articles.map((article) => tools.price({ article })));
  return prices.map(Number).reduce((sum, one) => sum + one, 0);
`;
const model = createScriptedModel([{ calls: [{ name: "run_code", input: { code } }] }, { text: "130 in all." }]);
const session = createSession({ id: "shop", engine, model });
for await (const event of session.send("What do they cost together?")) {
  if (event.type === "call.ended") console.log(event.call.tool, event.call.content);
}
await session.close();
await engine.close();
