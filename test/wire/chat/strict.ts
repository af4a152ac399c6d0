/** What strict Chat servers and chat templates refuse, as a check: the reasons, or none. */
import { isObject, type JsonObject } from "../../../src/base/json.ts";

const fields = new Set([
  "model",
  "messages",
  "tools",
  "tool_choice",
  "parallel_tool_calls",
  "stream",
  "stream_options",
  "max_tokens",
  "temperature",
  "top_p",
  "stop",
  "reasoning_effort",
  "response_format",
  "prompt_cache_key",
]);

type Message = {
  role: string;
  content: unknown;
  tool_calls?: readonly { id: string; function: { name: string; arguments: string } }[];
  tool_call_id?: string;
};

export function refusals(body: JsonObject): readonly string[] {
  const reasons: string[] = Object.keys(body)
    .filter((key) => !fields.has(key))
    .map((key) => `unknown field ${key}`);
  const messages = body["messages"] as unknown as readonly Message[]; // checked as it is read
  let open: string[] = [];
  for (const [at, message] of messages.entries()) {
    if (message.role === "system" && at > 0) reasons.push("system after the first message");
    if (message.role === "tool") {
      if (typeof message.content !== "string") reasons.push("tool content is not text");
      if (open[0] !== message.tool_call_id) reasons.push(`result of ${message.tool_call_id} without its call`);
      open = open.slice(1);
      continue;
    }
    if (open.length > 0) reasons.push(`unanswered ${open.join()}`);
    open = (message.tool_calls ?? []).map((call) => call.id);
    if (message.role === "assistant") reasons.push(...assistantFaults(message));
  }
  if (open.length > 0) reasons.push(`unanswered ${open.join()}`);
  return [...reasons, ...toolFaults(body)];
}

function assistantFaults(message: Message): readonly string[] {
  const isEmpty =
    message.content === null ||
    message.content === "" ||
    (Array.isArray(message.content) && message.content.length === 0);
  const reasons = isEmpty && message.tool_calls === undefined ? ["empty assistant message"] : [];
  for (const call of message.tool_calls ?? []) {
    if (!/^[a-zA-Z0-9_-]{1,64}$/.test(call.function.name)) reasons.push(`bad name ${call.function.name}`);
    try {
      if (!isObject(JSON.parse(call.function.arguments))) reasons.push("arguments are no object");
    } catch {
      reasons.push("arguments are no JSON");
    }
  }
  return reasons;
}

function toolFaults(body: JsonObject): readonly string[] {
  if (body["tools"] === undefined) return ["tool_choice", "parallel_tool_calls"].filter((key) => key in body);
  const tools = body["tools"] as unknown as readonly { function: { name: string; parameters: JsonObject } }[]; // checked as it is read
  const names = tools.map((tool) => tool.function.name);
  const reasons = new Set(names).size === names.length && names.length > 0 ? [] : ["duplicate or no tools"];
  for (const { function: fn } of tools) {
    if (!/^[a-zA-Z0-9_-]{1,64}$/.test(fn.name)) reasons.push(`bad name ${fn.name}`);
    if (
      fn.parameters["type"] !== "object" ||
      ["anyOf", "oneOf", "allOf", "enum", "not"].some((key) => key in fn.parameters)
    )
      reasons.push(`bad root of ${fn.name}`);
  }
  return reasons;
}
