/** One answer, recorded from a Chat server, told to a client that speaks Anthropic Messages. */
import { answerToEvents, codecs, decodeRecording, encodeSse } from "callgate/wire";

const recorded = [
  `data: {"choices":[{"index":0,"delta":{"content":"Looking."}}]}`,
  `data: {"choices":[{"index":0,"delta":{"tool_calls":[{"id":"call_a","function":{"name":"get_weather","arguments":{"city":"Oslo"}}}]},"finish_reason":"stop"}]}`,
  `data: [DONE]`,
].join("\n\n");

const answer = decodeRecording(codecs.chat, [recorded], { declared: ["get_weather"] });
console.log(answer.finish, JSON.stringify(answer.items));

const encoder = codecs.messages.createEncoder({ model: "my-model" });
console.log(encodeSse(answerToEvents(answer).flatMap((event) => encoder.push(event))));
