// A model that only writes text, given tools: taught by the prompt, its calls read back as items.
import { toTextRequest, wrapTextCalls } from "callgate/dialect";

const request = {
  model: "any",
  input: [{ type: "message", role: "user", content: [{ type: "text", text: "What is the weather in Paris?" }] }],
  tools: [
    {
      kind: "function",
      name: "get_weather",
      description: "The weather of a city.",
      parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
    },
  ],
} as const;

// What to send: no tools, a prompt that teaches them, and where to stop.
const sent = toTextRequest(request, "function-calls-xml");
console.log(sent.instructions, sent.stop);

// What comes back, here written by hand: plain text.
async function* answer() {
  const words =
    '<function_calls>\n<invoke name="get_weather">\n<parameter name="city">Paris</parameter>\n</invoke>\n</function_calls>';
  yield { type: "item.started", index: 0, item: { type: "message", role: "assistant", content: [] } } as const;
  yield { type: "item.delta", index: 0, field: "text", delta: words } as const;
  yield { type: "answer.ended", answer: { outcome: "ok", finish: "stop" } } as const;
}

for await (const event of wrapTextCalls(answer(), {
  dialect: "function-calls-xml",
  tools: request.tools,
  history: request.input,
})) {
  if (event.type === "item.done") console.log(event.item);
}
