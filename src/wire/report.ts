/** An answer as one flat JSON object for programs and tests: what `callgate decode` prints. */
import { defined, parseJson, type Json, type JsonObject } from "../base/json.ts";
import type { Answer, CallItem, Item, ServerCallItem } from "../spec/model.ts";
import { thoughtsOf, wordsOf } from "./answer.ts";
import { json, word } from "./raw.ts";

export function reportAnswer(answer: Answer): JsonObject {
  const { items } = answer;
  const messages = items.filter((item) => item.type === "message");
  const refusal = messages.map((message) => message.refusal ?? "").join("");
  const serverCalls = items.filter((item) => item.type === "server_call").map(reportServerCall);
  const opaque = items.flatMap(reportOpaque);
  return defined({
    outcome: answer.outcome,
    text: messages.map(wordsOf).join(""),
    reasoning: items
      .filter((item) => item.type === "reasoning")
      .map(thoughtsOf)
      .join(""),
    refusal: refusal === "" ? null : refusal,
    calls: items.filter((item) => item.type === "call").map(reportCall),
    finish: answer.finish ?? null,
    usage: answer.usage === undefined ? null : reportUsage(answer.usage),
    error: answer.error === undefined ? null : json(answer.error),
    serverCalls: serverCalls.length === 0 ? undefined : serverCalls,
    opaque: opaque.length === 0 ? undefined : opaque,
    blockOrder: blockOrder(items),
  });
}

function reportUsage(usage: NonNullable<Answer["usage"]>): JsonObject {
  const { input, output, cached, cacheWritten, reasoning } = usage;
  return defined({ input, output, total: input + output, cached, cacheWritten: cacheWritten || undefined, reasoning });
}

function reportCall(call: CallItem): JsonObject {
  return defined({
    kind: call.kind,
    id: call.id,
    // Functions are answered by their call id alone; the native kinds have an item id of their own.
    itemId: call.kind === "function" || call.kind === "custom" ? undefined : call.itemId,
    name: call.name,
    namespace: call.namespace,
    arguments: call.arguments,
    input: inputOf(call),
    complete: call.complete,
    caller: call.caller,
    extra: call.extra?.fields,
  });
}

function inputOf(call: CallItem): Json {
  if (call.kind === "custom") return call.arguments;
  if (call.arguments.trim() === "") return call.complete ? {} : null;
  const parsed = parseJson(call.arguments);
  return parsed.ok ? parsed.value : null;
}

function reportServerCall(call: ServerCallItem): JsonObject {
  const type = word(call.raw["type"]) ?? call.name;
  const kind = type === "server_tool_use" ? call.name : type.replace(/_call$/, "");
  // Most kinds of server calls have no name besides their kind.
  return defined({ kind, id: call.id, name: word(call.raw["name"]), status: call.raw["status"] });
}

/** State that has to go back to the provider unchanged, under the names of its own wire. */
function reportOpaque(item: Item): readonly JsonObject[] {
  if (item.type === "other") return [item.raw];
  if ((item.type !== "reasoning" && item.type !== "compaction") || item.opaque === undefined) return [];
  const { kind, value } = item.opaque;
  if (kind === "signature") return [{ type: "thinking", signature: value }];
  if (kind === "redacted_thinking") return [{ type: "redacted_thinking", data: value }];
  return [{ type: item.type, ...(item.id === undefined ? {} : { id: item.id }), [kind]: value }];
}

const blocks: Partial<Record<Item["type"], string>> = {
  reasoning: "thinking",
  message: "text",
  call: "tool_use",
  server_call: "server_tool_use",
};

/** Where thoughts are signed, the signature also covers their place among the other blocks. */
function blockOrder(items: readonly Item[]): readonly string[] | undefined {
  const isSigned = items.some((item) => item.type === "reasoning" && item.opaque?.kind === "signature");
  return isSigned ? items.flatMap((item) => blocks[item.type] ?? []) : undefined;
}
