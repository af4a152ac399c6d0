import OpenAI from "openai";
import { createKey, startGateway } from "callgate/gateway";
import { createOfflineModel, serveModel } from "callgate/testing";

// The offline model stands for any server that speaks Messages; the client speaks Chat Completions.
const upstream = await serveModel(createOfflineModel());
const key = createKey();
const gateway = await startGateway({
  routes: [{ match: "*", targets: [{ baseUrl: upstream.baseUrl, wire: "messages", model: "offline" }] }],
  keys: [key],
});

const client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: key });
const answer = await client.chat.completions.create({ model: "any", messages: [{ role: "user", content: "hello" }] });
console.log(answer.choices[0]?.message.content);

await gateway.close();
await upstream.close();
