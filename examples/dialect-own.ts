// A dialect is data. This one writes calls as <<name {…}>>, the arguments as JSON.
import { decodeText, encodeCall, teach, type Dialect } from "callgate/dialect";

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

const tools = [{ name: "add", parameters: { type: "object", properties: { a: { type: "number" } } } }];
const text = encodeCall(angle, { name: "add", arguments: '{"a": 1}' }, tools[0]);
console.log(text);
console.log(decodeText(`Sure. ${text}`, { dialect: angle, tools }).items);
console.log(teach(angle, tools));
